/* What gemm_w4a16's images touch, counted, on simulated devices of both vendors: few rows read the weights once, in
 * either layout, and the tiles of matrix units read each factor as often as they must and meet no bank twice.
 *
 * KILN_SIM_DEVICES names the devices; unset, some architectures of each vendor. */
#include "tests/assert_ok.h"
#include "tests/sim/tests/operators/each_device.h"
#include <kiln/w4a16.h>

enum { GROUP = 128, ELEMENT = 2, LANES = 32, WARPS = 8, CHUNK = 32, STEP = 128, STAGE = 64, COLUMNS = 4 };

static void *zeros(uint64_t size) {
    void *memory;
    assert_ok(kiln_memory_alloc(device, size, &memory));
    assert_ok(kiln_fill(&stream, memory, 0, size));
    return memory;
}

/* Counts one product of zeros, f16; `added`: with zeros to add to the weights; `scaled`: with pre_scale. */
static sim_launch launch_of(kiln_gemm_w4a16_params params, bool added, bool scaled) {
    static sim_launch launch;
    const uint64_t m = (uint64_t)params.m, n = (uint64_t)params.n, k = (uint64_t)params.k;
    const uint64_t rows = params.gated ? 2 * n : n;
    void *a = zeros(m * k * ELEMENT), *weights = zeros(rows * k / 2);
    void *scales = zeros(rows * (k / (uint64_t)params.group) * ELEMENT), *d = zeros(m * n * ELEMENT);
    params.d = d;
    params.a = a;
    params.weights = weights;
    params.scales = scales;
    params.zeros = added ? scales : NULL;
    params.pre_scale = scaled ? a : NULL;
    assert_ok(kiln_gemm_w4a16_f16(&stream, &params)); /* the first use loads */
    assert_ok(kiln_stream_sync(&stream));
    sim.reset();
    assert_ok(kiln_gemm_w4a16_f16(&stream, &params));
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim.launches(), 1);
    assert_true(sim.launch(0, &launch));
    assert_true(launch.executed);
    kiln_memory_free(device, a);
    kiln_memory_free(device, weights);
    kiln_memory_free(device, scales);
    kiln_memory_free(device, d);
    return launch;
}

/* Of small groups one with zeros to add. */
static sim_counters product_of_groups(kiln_w4a16_layout layout, kiln_w4a16_tile tile, uint64_t m, uint64_t n,
                                      uint64_t k, uint64_t group) {
    const kiln_gemm_w4a16_params params = {.m = (int64_t)m,
                                           .n = (int64_t)n,
                                           .k = (int64_t)k,
                                           .group = (int64_t)group,
                                           .weight_layout = (int32_t)layout,
                                           .tile = (int32_t)tile};
    return launch_of(params, group < GROUP, false).counters;
}

static sim_counters product(kiln_w4a16_layout layout, kiln_w4a16_tile tile, uint64_t m, uint64_t n, uint64_t k) {
    return product_of_groups(layout, tile, m, n, k, GROUP);
}

static bool takes_packed(void) {
    kiln_w4a16_layout layout;
    assert_ok(kiln_w4a16_layout_of(&stream, &layout));
    return layout == KILN_W4A16_SM80_V1;
}

/* Each subgroup reads a for its columns, and a scale for each chunk of them. */
static void rows_read_the_weights_once(void **state) {
    (void)state;
    enum { N = 64, K = 1024 };
    for (uint64_t m = 1; m <= 8; m += 7) {
        const sim_counters c = product(KILN_W4A16_CANONICAL, KILN_W4A16_TILE_PORTABLE, m, N, K);
        assert_int_equal(c.global_read_bytes, N * K / 2 + m * K * ELEMENT * N / COLUMNS + N * K / CHUNK * ELEMENT);
        assert_int_equal(c.global_written_bytes, m * N * ELEMENT);
    }
}

/* Each block of 32 columns reads the rows of a, and each lane the scale of a column for 128 elements. */
static void packed_rows_read_the_weights_once(void **state) {
    (void)state;
    enum { N = 96, K = 2048, BLOCK_COLUMNS = 32 };
    for (uint64_t m = 5; m <= 13 && takes_packed(); m += 8) {
        const uint64_t blocks = N / BLOCK_COLUMNS, scales = K / STEP * LANES * ELEMENT;
        const sim_counters c = product(KILN_W4A16_SM80_V1, KILN_W4A16_TILE_AUTO, m, N, K);
        assert_int_equal(c.global_read_bytes, N * K / 2 + blocks * (m * K * ELEMENT + scales));
        assert_int_equal(c.global_written_bytes, m * N * ELEMENT);
    }
}

/* What the table says of a kernel in the image that was chosen; false where it has none. */
static bool find_kernel(const char *kernel, kiln_kernel_info *out_info) {
    extern const kiln_bundle kiln__bundle_gemm_w4a16;
    kiln_part part;
    kiln_image image;
    const kiln_module *module;
    assert_ok(kiln_bundle_find_part(&kiln__bundle_gemm_w4a16, "f16", &part));
    assert_ok(kiln_module_get(device, &kiln__bundle_gemm_w4a16, "f16", &module));
    assert_ok(kiln_module_get_image(module, &image));
    for (uint32_t i = 0; i < part.kernel_count; i++) {
        *out_info = kiln_image_kernel(&part, &image, i);
        if (strcmp(out_info->name, kernel) == 0 && !out_info->absent) return true;
    }
    return false;
}

/* Where panels of them are copied, scales and zeros of small groups are read once too, and no bank is met twice. */
static void packed_rows_read_small_groups_once(void **state) {
    (void)state;
    enum { N = 96, K = 6144, BLOCK_COLUMNS = 32 };
    static const char *const kernels[] = {"kiln_gemm_w4a16_mma_rows_8_f16", "kiln_gemm_w4a16_mma_rows_16_f16"};
    for (uint64_t i = 0; i < 4; i++) {
        const uint64_t m = i / 2 ? 13 : 5, group = i % 2 ? 32 : 64, scales = N * (K / group) * ELEMENT;
        kiln_kernel_info told;
        if (!find_kernel(kernels[i / 2], &told) || !told.stage_bytes) continue;
        const sim_counters c = product_of_groups(KILN_W4A16_SM80_V1, KILN_W4A16_TILE_AUTO, m, N, K, group);
        assert_int_equal(c.global_read_bytes, N * K / 2 + N / BLOCK_COLUMNS * m * K * ELEMENT + 2 * scales);
        assert_int_equal(
            c.shared_conflicts,
            product_of_groups(KILN_W4A16_SM80_V1, KILN_W4A16_TILE_AUTO, m, N, 2 * K, group).shared_conflicts);
    }
}

/* Where a cluster of two blocks shares a, each reads its half once for all tiles of columns, of which a warp has one;
 * with zeros to add or factors, too. No step of k adds to the conflicts. */
static void packed_rows_read_a_once_for_a_cluster(void **state) {
    (void)state;
    enum { K = 256, TILES = 8, COLS = 32 };
    static const char *const kernels[] = {"kiln_gemm_w4a16_mma_shared_8_f16", "kiln_gemm_w4a16_mma_shared_16_f16"};
    const uint64_t clusters = (uint64_t)info.multiprocessors / 2;
    for (int64_t i = 0; i < 6; i++) {
        kiln_gemm_w4a16_params params = {.n = (int64_t)clusters * TILES * COLS, .k = K, .group = GROUP};
        const bool zeros = i / 2 == 1, factors = i / 2 == 2;
        kiln_kernel_info told;
        if (!find_kernel(kernels[i % 2], &told)) continue;
        params.weight_layout = KILN_W4A16_SM80_V1;
        params.m = 1 + 8 * (i % 2);
        const sim_launch one = launch_of(params, zeros, factors);
        assert_string_equal(one.kernel, kernels[i % 2]);
        assert_int_equal(one.grid[0], 2 * clusters);
        params.m += 7;
        const sim_counters c = launch_of(params, zeros, factors).counters;
        assert_int_equal(c.global_read_bytes - one.counters.global_read_bytes, clusters * 7 * K * ELEMENT);
        params.k = 2 * K;
        const uint64_t more = launch_of(params, zeros, factors).counters.shared_conflicts;
        if (!factors) assert_int_equal(more, c.shared_conflicts);
    }
}

/* Each tile of d reads its weights, and a cluster of tiles its rows of a; each of `lanes` lanes reads `scales` in
 * `scale_depth` of k. No stage of k adds to the conflicts. */
static void tiles_read_each_factor_once(const char *kernel, kiln_w4a16_tile tile, uint64_t lanes, uint64_t scales,
                                        uint64_t scale_depth) {
    kiln_kernel_info told;
    if (!find_kernel(kernel, &told)) return;
    const uint64_t rows = told.tile[0], cols = told.tile[1], cluster = told.cluster ? told.cluster : 1, k = 512;
    const uint64_t m = tile ? 2 * rows : rows, n = 2 * cols, tiles = m / rows * 2;
    const uint64_t tile_bytes =
        rows * k * ELEMENT / cluster + cols * k / 2 + k / scale_depth * lanes * scales * ELEMENT;
    const sim_counters c = product(KILN_W4A16_SM80_V1, tile, m, n, k);
    assert_int_equal(c.global_read_bytes, tiles * tile_bytes);
    assert_int_equal(c.global_written_bytes, m * n * ELEMENT);
    assert_int_equal(product(KILN_W4A16_SM80_V1, tile, m, n, 2 * k).shared_conflicts, c.shared_conflicts);
}

/* mma.sync: both halves of a stage have scales, of 2 or 4 rows of weights. wgmma: a lane has two rows of weights. */
static void packed_tiles_read_each_factor_once(void **state) {
    (void)state;
    tiles_read_each_factor_once("kiln_gemm_w4a16_mma_64_f16", KILN_W4A16_TILE_64, WARPS * LANES, 4, STAGE);
    tiles_read_each_factor_once("kiln_gemm_w4a16_mma_128_f16", KILN_W4A16_TILE_128, WARPS * LANES, 8, STAGE);
    tiles_read_each_factor_once("kiln_gemm_w4a16_wgmma_32_f16", KILN_W4A16_TILE_AUTO, 2 * WARPS * LANES, 2, GROUP);
    tiles_read_each_factor_once("kiln_gemm_w4a16_wgmma_64_f16", KILN_W4A16_TILE_64, 2 * WARPS * LANES, 2, GROUP);
    tiles_read_each_factor_once("kiln_gemm_w4a16_wgmma_128_f16", KILN_W4A16_TILE_128, 12 * LANES, 2, GROUP);
    tiles_read_each_factor_once("kiln_gemm_w4a16_wgmma_256_f16", KILN_W4A16_TILE_256, WARPS * LANES, 2, GROUP);
}

/* Each block of 16 columns by matrix units reads its weights and the rows of a, and each lane a scale for each group of
 * what its wave does of k. No bank is met twice. Tiles that no kernel has for so few rows are not asked for. */
static void unit_rows_read_the_weights_once(void **state) {
    (void)state;
    enum { N = 48, K = 1024, STEP_OF_WAVE = 128 };
    static const int64_t groups[] = {GROUP, 64, 32};
    const uint64_t halves = strstr(info.name, "gfx11") ? 2 : 1; /* of a wave, which read the same of a */
    kiln_kernel_info told;
    for (int i = 0; i < 3 && find_kernel("kiln_gemm_w4a16_mma_few_f16", &told); i++) {
        kiln_gemm_w4a16_params params = {.m = i ? 16 : 1, .n = N, .k = K, .group = groups[i]};
        params.tile = i ? KILN_W4A16_TILE_AUTO : KILN_W4A16_TILE_64;
        const uint64_t m = (uint64_t)params.m, blocks = N / told.tile[1], wave_depth = i ? 32 : STEP_OF_WAVE;
        const uint64_t threads = told.max_threads, turns = K / told.tile[2];
        const uint64_t scales = turns * threads * (STEP_OF_WAVE / wave_depth) * ELEMENT;
        const sim_counters c = launch_of(params, false, false).counters;
        assert_int_equal(c.global_read_bytes, N * K / 2 + blocks * (halves * m * K * ELEMENT + scales));
        assert_int_equal(c.global_written_bytes, m * N * ELEMENT);
        assert_int_equal(c.shared_conflicts, 0);
    }
}

/* Rows that are normalised are read once for squares and once for products, and factors for each row; pre_scale alone
 * by each half of the block, which do every other row. Of gated calls a block has 8 columns. One launch, in which no
 * bank is met twice. */
static void unit_rows_read_factors_with_rows(void **state) {
    (void)state;
    enum { N = 24, K = 1024, M = 3 };
    static const uint64_t rows[] = {3 * M, 4 * M, M + 2};
    kiln_kernel_info told;
    if (!find_kernel("kiln_gemm_w4a16_mma_few_f16", &told)) return;
    void *norm = zeros(K * ELEMENT);
    for (int i = 0; i < 3; i++) {
        kiln_gemm_w4a16_params params = {.m = M, .n = N, .k = K, .group = GROUP, .gated = 1};
        if (i < 2) params.norm_weight = norm;
        const uint64_t blocks = 2 * N / told.tile[1], scales = K / told.tile[2] * told.max_threads * ELEMENT;
        const sim_launch launch = launch_of(params, false, i);
        assert_string_equal(launch.kernel, "kiln_gemm_w4a16_mma_few_f16");
        assert_int_equal(launch.counters.global_read_bytes, N * K + blocks * (rows[i] * K * ELEMENT + scales));
        assert_int_equal(launch.counters.global_written_bytes, M * N * ELEMENT);
        assert_int_equal(launch.counters.shared_conflicts, 0);
    }
    kiln_memory_free(device, norm);
}

/* Each tile of d by matrix units reads its rows of a, its canonical weights and, each thread, a scale for a group. No
 * bank is met twice. */
static void unit_tiles_read_each_factor_once(void **state) {
    (void)state;
    enum { THREADS = WARPS * LANES, K = 256 };
    static const char *const kernels[] = {"kiln_gemm_w4a16_mma_small_f16", "kiln_gemm_w4a16_mma_large_f16"};
    static const kiln_w4a16_tile tiles[] = {KILN_W4A16_TILE_64, KILN_W4A16_TILE_128};
    for (int i = 0; i < 2; i++) {
        kiln_kernel_info told;
        if (!find_kernel(kernels[i], &told)) continue;
        const uint64_t rows = told.tile[0], cols = told.tile[1];
        const sim_counters c = product(KILN_W4A16_CANONICAL, tiles[i], 2 * rows, cols, K);
        assert_int_equal(c.global_read_bytes, 2 * (rows * K * ELEMENT + cols * K / 2 + K / GROUP * THREADS * ELEMENT));
        assert_int_equal(c.global_written_bytes, 2 * rows * cols * ELEMENT);
        assert_int_equal(c.shared_conflicts, 0);
    }
}

static int run_group(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_read_the_weights_once),         cmocka_unit_test(packed_rows_read_the_weights_once),
        cmocka_unit_test(packed_rows_read_small_groups_once), cmocka_unit_test(packed_rows_read_a_once_for_a_cluster),
        cmocka_unit_test(packed_tiles_read_each_factor_once), cmocka_unit_test(unit_rows_read_the_weights_once),
        cmocka_unit_test(unit_rows_read_factors_with_rows),   cmocka_unit_test(unit_tiles_read_each_factor_once),
    };
    return cmocka_run_group_tests_name(info.name, tests, each_device_setup, each_device_teardown);
}

int main(int argc, char **argv) {
    (void)argc;
    return each_device(argv, "sm_75,sm_90,sm_120,gfx90a,gfx1030,gfx1201", run_group);
}
