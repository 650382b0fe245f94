/* What amax, quantize_fp8, quantize_int8 and quantize_nvfp4 touch of a transposed tensor, counted, on simulated
 * devices: each element is read once, or twice for scales of rows for which a block has no memory, in full sectors and,
 * but for NVFP4, without meeting a bank of shared memory twice. Blocks of 128 x 128, and
 * long rows, are read once of any tensor.
 *
 * KILN_SIM_DEVICES names the devices; unset, one of each way to compile. */
#include "tests/assert_ok.h"
#include "tests/sim/tests/operators/each_device.h"

enum { ROWS = 128, COLS = 256, GROUP = 128, ELEMENT = 2, SECTOR = 32, WIDE = 1024 };
enum { LONG_ROWS = 4, LONG_COLS = 16384 };
enum { CLUSTER_ROWS = 32, CLUSTER_COLS = 2048 }; /* a tile for each block of a cluster */

static void *x, *codes, *scales, *amax;

static void *zeros(uint64_t size) {
    void *memory;
    assert_ok(kiln_memory_alloc(device, size, &memory));
    assert_ok(kiln_fill(&stream, memory, 0, size));
    return memory;
}

static int setup(void **state) {
    if (each_device_setup(state) != 0) return -1;
    x = zeros(ROWS * WIDE * ELEMENT);
    codes = zeros(ROWS * WIDE);
    scales = zeros(ROWS * COLS);
    amax = zeros(ROWS * sizeof(float));
    return 0;
}

static int teardown(void **state) {
    kiln_memory_free(device, x);
    kiln_memory_free(device, codes);
    kiln_memory_free(device, scales);
    kiln_memory_free(device, amax);
    return each_device_teardown(state);
}

/* Of the last call. */
static sim_counters counted(const char *kernel) {
    static sim_launch launch;
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim.launches(), 1);
    assert_true(sim.launch(0, &launch));
    assert_true(launch.executed);
    assert_string_equal(launch.kernel, kernel);
    sim.reset();
    return launch.counters;
}

/* x of f16, whose rows are adjacent, or with an empty `kernel` columns. */
static sim_counters quantized(bool fp8, int64_t rows, int64_t cols, int64_t scale_rows, int64_t scale_cols,
                              const char *kernel) {
    const int64_t row_stride = *kernel ? 1 : cols, col_stride = *kernel ? rows : 1;
    const kiln_quantize_fp8_params of_fp8 = {.codes = codes,
                                             .scales = scales,
                                             .x = x,
                                             .rows = rows,
                                             .cols = cols,
                                             .scale_rows = scale_rows,
                                             .scale_cols = scale_cols,
                                             .x_stride = row_stride,
                                             .x_col_stride = col_stride};
    const kiln_quantize_int8_params of_int8 = {.codes = codes,
                                               .scales = scales,
                                               .x = x,
                                               .rows = rows,
                                               .cols = cols,
                                               .scale_rows = scale_rows,
                                               .scale_cols = scale_cols,
                                               .x_stride = row_stride,
                                               .x_col_stride = col_stride};
    char name[64];
    snprintf(name, sizeof name, "kiln_quantize_%s%s_f16", fp8 ? "fp8" : "int8", kernel);
    sim.reset();
    assert_ok(fp8 ? kiln_quantize_fp8_f16(&stream, &of_fp8) : kiln_quantize_int8_f16(&stream, &of_int8));
    return counted(name);
}

static void groups_are_read_once(void **state) {
    (void)state;
    const uint64_t size = ROWS * COLS, written = size + ROWS * COLS / GROUP * sizeof(float);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        const sim_counters c = quantized(fp8, ROWS, COLS, ROWS, COLS / GROUP, "_transposed");
        assert_int_equal(c.global_read_bytes, size * ELEMENT);
        assert_int_equal(c.global_written_bytes, written);
        assert_int_equal(c.shared_conflicts, 0);
        /* Blocks side by side write to the same sectors of scales. */
        const uint64_t of_scales = COLS / GROUP * (ROWS * COLS / GROUP * sizeof(float)) / SECTOR;
        assert_int_equal(c.global_sectors, size * (ELEMENT + 1) / SECTOR + of_scales);
    }
}

static void blocks_are_read_once(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        const sim_counters c = quantized(i / 2, ROWS, COLS, 1, COLS / GROUP, i % 2 ? "_transposed" : "");
        assert_int_equal(c.global_read_bytes, ROWS * COLS * ELEMENT);
        assert_int_equal(c.global_written_bytes, ROWS * COLS + COLS / GROUP * sizeof(float));
        assert_int_equal(c.shared_conflicts, 0);
    }
}

static void long_rows_are_read_once(void **state) {
    (void)state;
    const uint64_t size = LONG_ROWS * LONG_COLS, of_scales = LONG_ROWS * sizeof(float);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        const sim_counters c = quantized(fp8, LONG_ROWS, LONG_COLS, LONG_ROWS, 1, "");
        assert_int_equal(c.global_read_bytes, size * ELEMENT);
        assert_int_equal(c.global_written_bytes, size + of_scales);
        assert_int_equal(c.shared_conflicts, 0);
    }
}

/* 32 at a time take 64 KiB. */
static void rows_are_read_once_where_there_is_memory(void **state) {
    (void)state;
    const bool held = info.max_shared_bytes > 128 << 10;
    const uint64_t size = ROWS * WIDE * ELEMENT;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        const sim_counters c = quantized(fp8, ROWS, WIDE, ROWS, 1, "_transposed");
        assert_in_range(c.global_read_bytes, size, held ? size : 2 * size - 1);
        assert_int_equal(c.global_written_bytes, ROWS * WIDE + ROWS * sizeof(float));
        assert_int_equal(c.shared_conflicts, 0);
    }
}

static void clusters_read_long_rows_once(void **state) {
    (void)state;
    const bool clusters = info.backend == KILN_BACKEND_CUDA && info.target.compute_capability == 90;
    const char *kernel = clusters ? "_transposed_cluster" : "_transposed";
    const uint64_t size = CLUSTER_ROWS * CLUSTER_COLS, read = size * ELEMENT, of_scales = CLUSTER_ROWS * sizeof(float);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        const sim_counters c = quantized(fp8, CLUSTER_ROWS, CLUSTER_COLS, CLUSTER_ROWS, 1, kernel);
        assert_in_range(c.global_read_bytes, read, clusters ? read : 2 * read - 1);
        assert_int_equal(c.global_written_bytes, size + of_scales);
        assert_int_equal(c.global_sectors, (c.global_read_bytes + size + of_scales) / SECTOR);
        assert_int_equal(c.shared_conflicts, 0);
    }
}

static void magnitudes_are_found_in_one_read(void **state) {
    (void)state;
    const kiln_amax_params params = {.y = amax,
                                     .x = x,
                                     .rows = ROWS,
                                     .cols = WIDE,
                                     .scale_rows = ROWS,
                                     .scale_cols = 1,
                                     .x_stride = 1,
                                     .x_col_stride = ROWS};
    sim.reset();
    assert_ok(kiln_amax_f16(&stream, &params));
    const sim_counters c = counted("kiln_amax_transposed_f16");
    assert_int_equal(c.global_read_bytes, ROWS * WIDE * ELEMENT);
    assert_int_equal(c.global_written_bytes, ROWS * sizeof(float));
    assert_int_equal(c.global_sectors, (ROWS * WIDE * ELEMENT + ROWS * sizeof(float)) / SECTOR);
    assert_int_equal(c.shared_conflicts, 0);
}

static void pairs_are_made_in_one_read(void **state) {
    (void)state;
    const uint64_t size = ROWS * COLS;
    const kiln_quantize_nvfp4_params params = {.codes = codes,
                                               .scales = scales,
                                               .x = x,
                                               .amax = amax,
                                               .rows = ROWS,
                                               .cols = COLS,
                                               .scale_rows = ROWS,
                                               .scale_cols = COLS / 16,
                                               .global_rows = ROWS,
                                               .x_stride = 1,
                                               .x_col_stride = ROWS};
    sim.reset();
    assert_ok(kiln_quantize_nvfp4_f16(&stream, &params));
    const sim_counters c = counted("kiln_quantize_nvfp4_transposed_f16");
    assert_int_equal(c.global_read_bytes,
                     size * ELEMENT + ROWS * COLS / GROUP * sizeof(float)); /* and each row's amax */
    assert_int_equal(c.global_written_bytes, size / 2 + size / 16);
}

static int run_group(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_read_once),         cmocka_unit_test(blocks_are_read_once),
        cmocka_unit_test(long_rows_are_read_once),      cmocka_unit_test(rows_are_read_once_where_there_is_memory),
        cmocka_unit_test(clusters_read_long_rows_once), cmocka_unit_test(magnitudes_are_found_in_one_read),
        cmocka_unit_test(pairs_are_made_in_one_read),
    };
    return cmocka_run_group_tests_name(info.name, tests, setup, teardown);
}

int main(int argc, char **argv) {
    (void)argc;
    return each_device(argv, "sm_75,sm_80,sm_90,sm_100,gfx90a,gfx942,gfx1100,gfx1201", run_group);
}
