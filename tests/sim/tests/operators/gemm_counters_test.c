/* What gemm's images touch, counted, on simulated devices of both vendors: tiles read each factor as often as they must
 * and meet no bank twice, gemm_rows reads the weights once.
 *
 * KILN_SIM_DEVICES names the devices; unset, some architectures of each vendor. KILN_TEST_PRECISION limits the tests to
 * one precision. */
#include "tests/assert_ok.h"
#include "tests/sim/tests/operators/each_device.h"

enum {
    TILE = 64,     /* of a group in gemm_tiles */
    COLUMNS = 4,   /* of a subgroup in gemm_rows */
    SUBGROUP = 32, /* threads */
    VECTOR = 16    /* bytes that a thread reads at a time */
};

typedef struct precision {
    const char *name;
    uint64_t element; /* bytes */
    kiln_status (*gemm)(kiln_stream *stream, const kiln_gemm_params *params);
} precision;

static const precision precisions[] = {
    {"f32", 4, kiln_gemm_f32}, {"f16", 2, kiln_gemm_f16}, {"bf16", 2, kiln_gemm_bf16}};
static const precision *const precisions_end = precisions + sizeof precisions / sizeof *precisions;

/* The first from p on that is to be tested; precisions_end without. */
static const precision *tested(const precision *p) {
    const char *wanted = getenv("KILN_TEST_PRECISION");
    while (wanted && p < precisions_end && strcmp(p->name, wanted) != 0)
        p++;
    return p;
}

static void *zeros(size_t size) {
    void *memory;
    assert_ok(kiln_memory_alloc(device, size, &memory));
    assert_ok(kiln_fill(&stream, memory, 0, size));
    return memory;
}

/* Counts one product of zeros. */
static sim_counters product_by(const precision *p, kiln_gemm_tile tile, uint64_t m, uint64_t n, uint64_t k) {
    static sim_launch launch;
    void *a = zeros(m * k * p->element), *b = zeros(n * k * p->element), *d = zeros(m * n * p->element);
    kiln_gemm_params params = {.d = d, .a = a, .b = b, .batch = 1, .m = (int64_t)m, .n = (int64_t)n, .k = (int64_t)k};
    params.tile = (int32_t)tile;
    params.compute = p->element == 4 && tile >= KILN_GEMM_TILE_SMALL ? KILN_GEMM_COMPUTE_TF32 : KILN_GEMM_COMPUTE_F32;
    assert_ok(p->gemm(&stream, &params)); /* the first use loads */
    assert_ok(kiln_stream_sync(&stream));
    sim.reset();
    assert_ok(p->gemm(&stream, &params));
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim.launches(), 1);
    assert_true(sim.launch(0, &launch));
    assert_true(launch.executed);
    kiln_memory_free(device, a);
    kiln_memory_free(device, b);
    kiln_memory_free(device, d);
    return launch.counters;
}

static sim_counters product(const precision *p, uint64_t m, uint64_t n, uint64_t k) {
    return product_by(p, KILN_GEMM_TILE_PORTABLE, m, n, k);
}

/* Each tile of d reads its rows of a and of b. */
static void tiles_read_each_factor_once(void **state) {
    (void)state;
    enum { M = 2 * TILE, N = 3 * TILE, K = 160 };
    for (const precision *p = tested(precisions); p < precisions_end; p = tested(p + 1)) {
        sim_counters c = product(p, M, N, K);
        assert_int_equal(c.global_read_bytes, p->element * K * (M / TILE) * (N / TILE) * 2 * TILE);
        assert_int_equal(c.global_written_bytes, p->element * M * N);
    }
}

static void tiles_meet_no_bank_twice(void **state) {
    (void)state;
    for (const precision *p = tested(precisions); p < precisions_end; p = tested(p + 1))
        assert_int_equal(product(p, 2 * TILE, TILE, 256).shared_conflicts, 0);
}

/* What the table says of a kernel in the image that was chosen; false where it has none. */
static bool find_kernel(const precision *p, const char *kernel, kiln_kernel_info *out_info) {
    extern const kiln_bundle kiln__bundle_gemm;
    kiln_part part;
    kiln_image image;
    const kiln_module *module;
    char name[64];
    snprintf(name, sizeof name, "kiln_%s_%s", kernel, p->name);
    assert_ok(kiln_bundle_find_part(&kiln__bundle_gemm, p->name, &part));
    assert_ok(kiln_module_get(device, &kiln__bundle_gemm, p->name, &module));
    assert_ok(kiln_module_get_image(module, &image));
    for (uint32_t i = 0; i < part.kernel_count; i++) {
        const kiln_kernel_info told = kiln_image_kernel(&part, &image, i);
        if (strcmp(told.name, name) != 0 || told.absent) continue;
        *out_info = told;
        return true;
    }
    return false;
}

/* Each tile of d reads its rows of a and of b, and no step of k adds to the conflicts: copies and ldmatrix have none.
 * On AMD nothing has: lanes leave their own sums in shared memory. */
static void matrix_tiles(const precision *p, const char *kernel, kiln_gemm_tile by) {
    kiln_kernel_info told;
    if (!find_kernel(p, kernel, &told)) return;
    const uint32_t *tile = told.tile;
    const uint64_t m = 2 * tile[0], n = 2 * tile[1], k = 4 * tile[2];
    const sim_counters c = product_by(p, by, m, n, k);
    assert_int_equal(c.global_read_bytes, p->element * k * 4 * (tile[0] + tile[1]));
    assert_int_equal(c.global_written_bytes, p->element * m * n);
    if (info.backend == KILN_BACKEND_ROCM) assert_int_equal(c.shared_conflicts, 0);
    assert_int_equal(product_by(p, by, m, n, 2 * k).shared_conflicts, c.shared_conflicts);
}

/* The same of kernels that copy by tensor maps: a cluster reads its rows of b once, and shared memory, which copies
 * fill and products read, is otherwise left alone. */
static void mapped_tiles(const precision *p, const char *kernel, kiln_gemm_tile by) {
    kiln_kernel_info told;
    if (!find_kernel(p, kernel, &told)) return;
    const uint32_t *tile = told.tile, cluster = told.cluster ? told.cluster : 1;
    const uint64_t m = 2 * tile[0], n = 2 * tile[1], k = 4 * tile[2];
    const sim_counters c = product_by(p, by, m, n, k);
    assert_int_equal(c.global_read_bytes, p->element * k * 4 * (tile[0] + tile[1] / cluster));
    assert_int_equal(c.global_written_bytes, p->element * m * n);
    assert_int_equal(c.shared_conflicts, 0);
}

static void matrix_tiles_read_each_factor_once(void **state) {
    (void)state;
    kiln_kernel_info told;
    for (const precision *p = tested(precisions); p < precisions_end; p = tested(p + 1)) {
        matrix_tiles(p, "gemm_mma_large", KILN_GEMM_TILE_LARGE);
        matrix_tiles(p, "gemm_mma_small", KILN_GEMM_TILE_SMALL);
        mapped_tiles(p, "gemm_wgmma_large", KILN_GEMM_TILE_LARGE);
        mapped_tiles(p, "gemm_wgmma_medium", KILN_GEMM_TILE_MEDIUM);
        mapped_tiles(p, find_kernel(p, "gemm_wgmma_small_2", &told) ? "gemm_wgmma_small_2" : "gemm_wgmma_small",
                     KILN_GEMM_TILE_SMALL); /* the first where there are two tiles of rows */
    }
}

/* The weights are read once, whatever the number of rows; each subgroup reads these for its columns. All threads read
 * 16 bytes at a time, and a subgroup writes its results together. */
static void rows_read_the_weights_once(void **state) {
    (void)state;
    enum { N = 96, K = 1024 };
    for (const precision *p = tested(precisions); p < precisions_end; p = tested(p + 1))
        for (uint64_t m = 1; m <= 8; m += 7) {
            sim_counters c = product(p, m, N, K);
            uint64_t bytes = p->element * K * (N + m * N / COLUMNS), lanes = bytes / VECTOR + N / COLUMNS * SUBGROUP;
            assert_int_equal(c.global_read_bytes, bytes);
            assert_int_equal(c.global_requests, lanes / (uint64_t)info.wave_size);
            assert_int_equal(c.global_written_bytes, p->element * m * N);
        }
}

static int run_group(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_read_each_factor_once),
        cmocka_unit_test(tiles_meet_no_bank_twice),
        cmocka_unit_test(matrix_tiles_read_each_factor_once),
        cmocka_unit_test(rows_read_the_weights_once),
    };
    return cmocka_run_group_tests_name(info.name, tests, each_device_setup, each_device_teardown);
}

int main(int argc, char **argv) {
    (void)argc;
    return each_device(argv, "sm_75,sm_90,sm_120,gfx90a,gfx942,gfx1030,gfx1201", run_group);
}
