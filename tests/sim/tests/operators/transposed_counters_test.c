/* What amax, quantize_fp8, quantize_int8 and quantize_nvfp4 touch of a transposed tensor, counted, on simulated
 * devices: each element is read once, or twice for scales of rows that take several tiles, in full sectors and, but for
 * NVFP4, without meeting a bank of shared memory twice.
 *
 * KILN_SIM_DEVICES names the devices; unset, one of each way to compile. */
#include "tests/assert_ok.h"
#include "tests/sim/tests/operators/each_device.h"

enum { ROWS = 128, COLS = 256, GROUP = 128, ELEMENT = 2, SECTOR = 32, WIDE = 1024 };

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

static sim_counters quantized(bool fp8, int64_t cols, int64_t scale_rows, int64_t scale_cols) {
    const kiln_quantize_fp8_params of_fp8 = {.codes = codes,
                                             .scales = scales,
                                             .x = x,
                                             .rows = ROWS,
                                             .cols = cols,
                                             .scale_rows = scale_rows,
                                             .scale_cols = scale_cols,
                                             .x_stride = 1,
                                             .x_col_stride = ROWS};
    const kiln_quantize_int8_params of_int8 = {.codes = codes,
                                               .scales = scales,
                                               .x = x,
                                               .rows = ROWS,
                                               .cols = cols,
                                               .scale_rows = scale_rows,
                                               .scale_cols = scale_cols,
                                               .x_stride = 1,
                                               .x_col_stride = ROWS};
    sim.reset();
    assert_ok(fp8 ? kiln_quantize_fp8_f16(&stream, &of_fp8) : kiln_quantize_int8_f16(&stream, &of_int8));
    return counted(fp8 ? "kiln_quantize_fp8_transposed_f16" : "kiln_quantize_int8_transposed_f16");
}

static void groups_are_read_once(void **state) {
    (void)state;
    const uint64_t size = ROWS * COLS, written = size + ROWS * COLS / GROUP * sizeof(float);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        const sim_counters c = quantized(fp8, COLS, ROWS, COLS / GROUP);
        assert_int_equal(c.global_read_bytes, size * ELEMENT);
        assert_int_equal(c.global_written_bytes, written);
        assert_int_equal(c.shared_conflicts, 0);
        /* Blocks side by side write to the same sectors of scales. */
        const uint64_t of_scales = COLS / GROUP * (ROWS * COLS / GROUP * sizeof(float)) / SECTOR;
        assert_int_equal(c.global_sectors, size * (ELEMENT + 1) / SECTOR + of_scales);
    }
}

static void rows_and_blocks_of_several_tiles_are_read_twice_at_most(void **state) {
    (void)state;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        const sim_counters row = quantized(fp8, WIDE, ROWS, 1), block = quantized(fp8, COLS, 1, COLS / GROUP);
        assert_in_range(row.global_read_bytes, ROWS * WIDE * ELEMENT, 2 * ROWS * WIDE * ELEMENT - 1);
        assert_in_range(block.global_read_bytes, ROWS * COLS * ELEMENT, 2 * ROWS * COLS * ELEMENT - 1);
        assert_int_equal(row.global_written_bytes, ROWS * WIDE + ROWS * sizeof(float));
        assert_int_equal(block.global_written_bytes, ROWS * COLS + COLS / GROUP * sizeof(float));
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
        cmocka_unit_test(groups_are_read_once),
        cmocka_unit_test(rows_and_blocks_of_several_tiles_are_read_twice_at_most),
        cmocka_unit_test(magnitudes_are_found_in_one_read),
        cmocka_unit_test(pairs_are_made_in_one_read),
    };
    return cmocka_run_group_tests_name(info.name, tests, setup, teardown);
}

int main(int argc, char **argv) {
    (void)argc;
    return each_device(argv, "sm_75,sm_80,sm_90,sm_100,gfx90a,gfx942,gfx1100,gfx1201", run_group);
}
