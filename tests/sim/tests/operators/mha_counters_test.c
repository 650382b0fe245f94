/* What mha's tuned kernels touch, counted, on simulated devices of both vendors: a block reads its queries and each
 * tile of keys and values once, no tile of keys adds to the conflicts: copies, ldmatrix and products have none, and
 * AMD's matrix units do each product once, those of mha_paged too. counters_test has the portable kernel.
 *
 * KILN_SIM_DEVICES names the devices; unset, some that have such kernels. KILN_TEST_PRECISION limits the tests to one
 * precision. */
#include "tests/assert_ok.h"
#include "tests/sim/tests/operators/each_device.h"

enum { ELEMENT = 2, ROWS = 128 /* of a block of prefill */ };

typedef struct precision {
    const char *name;
    kiln_status (*mha)(kiln_stream *stream, const kiln_mha_params *params);
    kiln_status (*mha_paged)(kiln_stream *stream, const kiln_mha_paged_params *params);
} precision;

static const precision precisions[] = {{"f16", kiln_mha_f16, kiln_mha_paged_f16},
                                       {"bf16", kiln_mha_bf16, kiln_mha_paged_bf16}};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static bool wanted(const precision *p) {
    const char *name = getenv("KILN_TEST_PRECISION");
    return !name || !strcmp(p->name, name);
}

static void *zeros(uint64_t size) {
    void *memory;
    assert_ok(kiln_memory_alloc(device, size, &memory));
    assert_ok(kiln_fill(&stream, memory, 0, size));
    return memory;
}

/* Whether the device multiplies by warpgroups. */
static bool has_wgmma(void) {
    return info.target.compute_capability == 90;
}

/* A kernel of the image that was chosen; absent if it has none of that name. */
static kiln_kernel_info told_of(const precision *p, const char *kernel) {
    extern const kiln_bundle kiln__bundle_mha;
    kiln_part part;
    kiln_image image;
    const kiln_module *module;
    char name[64];
    snprintf(name, sizeof name, "kiln_%s_%s", kernel, p->name);
    assert_ok(kiln_bundle_find_part(&kiln__bundle_mha, p->name, &part));
    assert_ok(kiln_module_get(device, &kiln__bundle_mha, p->name, &module));
    assert_ok(kiln_module_get_image(module, &image));
    for (uint32_t i = 0; i < part.kernel_count; i++) {
        const kiln_kernel_info told = kiln_image_kernel(&part, &image, i);
        if (strcmp(told.name, name) == 0) return told;
    }
    return (kiln_kernel_info){.absent = true};
}

/* The warps of its blocks; 0 if it is absent. */
static uint64_t warps_of(const precision *p, const char *kernel) {
    const kiln_kernel_info told = told_of(p, kernel);
    return told.absent ? 0 : told.max_threads / 32;
}

/* What the one launch counted, which must be this kernel's. */
static sim_counters launched(const precision *p, const char *kernel) {
    static sim_launch launch;
    char name[64];
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim.launches(), 1);
    assert_true(sim.launch(0, &launch));
    snprintf(name, sizeof name, "kiln_%s_%s", kernel, p->name);
    assert_string_equal(launch.kernel, name);
    assert_true(launch.executed);
    return launch.counters;
}

/* Counts one call on zeros, of one head of k and v, which must launch this kernel. */
static sim_counters attend(const precision *p, const char *kernel, uint64_t tokens, uint64_t heads, uint64_t keys,
                           uint64_t head_dim) {
    void *q = zeros(tokens * heads * head_dim * ELEMENT), *out = zeros(tokens * heads * head_dim * ELEMENT);
    void *k = zeros(keys * head_dim * ELEMENT), *v = zeros(keys * head_dim * ELEMENT);
    kiln_mha_params params = {.out = out,
                              .q = q,
                              .k = k,
                              .v = v,
                              .tokens = (int64_t)tokens,
                              .kv_tokens = (int64_t)keys,
                              .batch = 1,
                              .heads = (int64_t)heads,
                              .kv_heads = 1,
                              .head_dim = (int64_t)head_dim};
    assert_ok(p->mha(&stream, &params)); /* the first use loads */
    assert_ok(kiln_stream_sync(&stream));
    sim.reset();
    assert_ok(p->mha(&stream, &params));
    const sim_counters counters = launched(p, kernel);
    kiln_memory_free(device, q);
    kiln_memory_free(device, k);
    kiln_memory_free(device, v);
    kiln_memory_free(device, out);
    return counters;
}

/* The same of mha_paged, whose cache has one block, which holds all keys. */
static sim_counters attend_paged(const precision *p, const char *kernel, uint64_t tokens, uint8_t keys,
                                 uint64_t head_dim) {
    enum { BLOCK = 256, SOME = 64 };
    void *q = zeros(tokens * head_dim * ELEMENT), *out = zeros(tokens * head_dim * ELEMENT);
    void *cache = zeros(BLOCK * head_dim * ELEMENT), *numbers = zeros(SOME), *length = zeros(SOME);
    kiln_mha_paged_params params = {.out = out,
                                    .q = q,
                                    .k_cache = cache,
                                    .v_cache = cache,
                                    .block_table = numbers,
                                    .seqlens_k = length,
                                    .tokens = (int64_t)tokens,
                                    .blocks = 1,
                                    .block_size = BLOCK,
                                    .batch = 1,
                                    .max_blocks_per_seq = 1,
                                    .heads = 1,
                                    .kv_heads = 1,
                                    .head_dim = (int64_t)head_dim};
    assert_ok(kiln_fill(&stream, length, keys, 1));
    assert_ok(p->mha_paged(&stream, &params)); /* the first use loads */
    assert_ok(kiln_stream_sync(&stream));
    sim.reset();
    assert_ok(p->mha_paged(&stream, &params));
    const sim_counters counters = launched(p, kernel);
    kiln_memory_free(device, q);
    kiln_memory_free(device, cache);
    kiln_memory_free(device, numbers);
    kiln_memory_free(device, length);
    kiln_memory_free(device, out);
    return counters;
}

/* Twice the keys have no more conflicts in shared memory, but for one in a tile where heads end inside a row. Both
 * halves of a wave of gfx11 read whole queries, but for heads beyond 128, whose queries pass through shared memory. */
static void prefill_reads_each_tile_once(void **state) {
    (void)state;
    static const struct {
        const char *kernel, *wgmma;
        uint64_t head_dim;
    } cases[] = {{"mha_prefill_64", "mha_wgmma_64", 64},
                 {"mha_prefill_96", "mha_wgmma_96", 80},
                 {"mha_prefill_128", "mha_wgmma_128", 128},
                 {"mha_prefill_256", "mha_wgmma_256", 136}};
    enum { KEYS = 256, TILE_KEYS = 64, WIDE = 128 };
    for (size_t i = 0; i < PRECISIONS * sizeof cases / sizeof *cases; i++) {
        const precision *p = &precisions[i % PRECISIONS];
        const uint64_t size = cases[i / PRECISIONS].head_dim;
        const char *kernel = has_wgmma() ? cases[i / PRECISIONS].wgmma : cases[i / PRECISIONS].kernel;
        if (!wanted(p) || !warps_of(p, kernel)) continue;
        const uint64_t rows = 2 * told_of(p, kernel).tile[0];
        const sim_counters c = attend(p, kernel, rows, 1, KEYS, size);
        const uint64_t reads = strncmp(info.target.processor, "gfx11", 5) == 0 && size <= WIDE ? 2 : 1;
        assert_int_equal(c.global_read_bytes, ELEMENT * size * (reads * rows + 2 * 2 * KEYS));
        assert_int_equal(c.global_written_bytes, ELEMENT * size * rows);
        const sim_counters twice = attend(p, kernel, rows, 1, 2 * KEYS, size);
        assert_true(twice.shared_conflicts <= c.shared_conflicts + KEYS / TILE_KEYS);
    }
}

/* v_mfma 32x32x8 by waves of 64, v_wmma 16x16x16 by those of 32. Whatever heads mha has a kernel for, mha_paged has. */
static void each_product_is_done_once(void **state) {
    (void)state;
    static const struct {
        const char *kernel, *paged;
        uint64_t head_dim;
    } cases[] = {{"mha_prefill_64", "mha_paged_prefill_64", 64},
                 {"mha_prefill_96", "mha_paged_prefill_96", 96},
                 {"mha_prefill_128", "mha_paged_prefill_128", 128},
                 {"mha_prefill_256", "mha_paged_prefill_256", 256}};
    enum { KEYS = 192 };
    if (info.backend != KILN_BACKEND_ROCM) return;
    const uint64_t products = info.wave_size == 64 ? 32 * 32 * 8 : 16 * 16 * 16;
    for (size_t i = 0; i < PRECISIONS * sizeof cases / sizeof *cases; i++) {
        const precision *p = &precisions[i % PRECISIONS];
        const uint64_t size = cases[i / PRECISIONS].head_dim;
        if (!wanted(p) || !warps_of(p, cases[i / PRECISIONS].kernel)) continue;
        const sim_counters both[] = {attend(p, cases[i / PRECISIONS].kernel, ROWS, 1, KEYS, size),
                                     attend_paged(p, cases[i / PRECISIONS].paged, ROWS, KEYS, size)};
        for (int paged = 0; paged < 2; paged++) {
            assert_int_equal(both[paged].shared_conflicts, 0);
            assert_int_equal(both[paged].matrix_instructions * products, 2 * ROWS * KEYS * size);
        }
    }
}

/* The queries are read by each warp that has keys, those of rows that do not exist as well; on AMD once a block, those
 * that exist. Clusters are of 8 blocks. On AMD each key and each value is in products of 16 x 16 x 16 once, with heads
 * filled up to 128 elements or 256. */
static void decode_reads_each_key_once(void **state) {
    (void)state;
    static const struct {
        const char *kernel;
        uint64_t head_dim, blocks;
    } cases[] = {{"mha_decode_128", 64, 1},         {"mha_decode_128", 128, 1},
                 {"mha_decode_256", 136, 1},        {"mha_decode_256", 256, 1},
                 {"mha_decode_cluster_128", 64, 8}, {"mha_decode_cluster_128", 128, 8},
                 {"mha_decode_cluster_256", 256, 8}};
    enum { KEYS = 1024, HEADS = 4, FRAGMENT_ROWS = 16, NARROW = 128 };
    for (size_t i = 0; i < PRECISIONS * sizeof cases / sizeof *cases; i++) {
        const precision *p = &precisions[i % PRECISIONS];
        const bool amd = info.backend == KILN_BACKEND_ROCM;
        const uint64_t size = cases[i / PRECISIONS].head_dim, warps = warps_of(p, cases[i / PRECISIONS].kernel);
        const uint64_t queries = amd ? HEADS : cases[i / PRECISIONS].blocks * warps * FRAGMENT_ROWS;
        if (!wanted(p) || !warps) continue;
        const sim_counters c = attend(p, cases[i / PRECISIONS].kernel, 1, HEADS, KEYS, size);
        assert_int_equal(c.global_read_bytes, ELEMENT * size * (queries + 2 * KEYS));
        assert_int_equal(c.global_written_bytes, ELEMENT * size * HEADS);
        if (amd) {
            const uint64_t filled_up = size <= NARROW ? NARROW : 2 * NARROW;
            assert_int_equal(c.matrix_instructions * 16 * 16 * 16, 2 * FRAGMENT_ROWS * KEYS * filled_up);
            assert_int_equal(c.shared_conflicts, 0);
        }
        const sim_counters twice = attend(p, cases[i / PRECISIONS].kernel, 1, HEADS, 2 * KEYS, size);
        assert_true(twice.shared_conflicts <= c.shared_conflicts);
    }
}

static int run_group(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefill_reads_each_tile_once),
        cmocka_unit_test(each_product_is_done_once),
        cmocka_unit_test(decode_reads_each_key_once),
    };
    return cmocka_run_group_tests_name(info.name, tests, each_device_setup, each_device_teardown);
}

int main(int argc, char **argv) {
    (void)argc;
    return each_device(argv, "sm_75,sm_80,sm_90,sm_120,gfx90a,gfx942,gfx1100,gfx1201", run_group);
}
