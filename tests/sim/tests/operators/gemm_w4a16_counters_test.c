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

/* Counts one product of zeros, f16. */
static sim_counters product(kiln_w4a16_layout layout, kiln_w4a16_tile tile, uint64_t m, uint64_t n, uint64_t k) {
    static sim_launch launch;
    void *a = zeros(m * k * ELEMENT), *weights = zeros(n * k / 2), *scales = zeros(n * (k / GROUP) * ELEMENT);
    void *d = zeros(m * n * ELEMENT);
    const kiln_gemm_w4a16_params params = {.d = d,
                                           .a = a,
                                           .weights = weights,
                                           .scales = scales,
                                           .m = (int64_t)m,
                                           .n = (int64_t)n,
                                           .k = (int64_t)k,
                                           .group = GROUP,
                                           .weight_layout = (int32_t)layout,
                                           .tile = (int32_t)tile};
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
    return launch.counters;
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
        const sim_counters c = product(KILN_W4A16_CANONICAL, KILN_W4A16_TILE_AUTO, m, N, K);
        assert_int_equal(c.global_read_bytes, N * K / 2 + m * K * ELEMENT * N / COLUMNS + N * K / CHUNK * ELEMENT);
        assert_int_equal(c.global_written_bytes, m * N * ELEMENT);
    }
}

/* Each block of 32 columns reads the rows of a, and each lane four scales for 128 elements. */
static void packed_rows_read_the_weights_once(void **state) {
    (void)state;
    enum { N = 96, K = 2048, BLOCK_COLUMNS = 32 };
    for (uint64_t m = 5; m <= 13 && takes_packed(); m += 8) {
        const uint64_t blocks = N / BLOCK_COLUMNS, scales = K / STEP * LANES * 4 * ELEMENT;
        const sim_counters c = product(KILN_W4A16_SM80_V1, KILN_W4A16_TILE_AUTO, m, N, K);
        assert_int_equal(c.global_read_bytes, N * K / 2 + blocks * (m * K * ELEMENT + scales));
        assert_int_equal(c.global_written_bytes, m * N * ELEMENT);
    }
}

/* Each tile of d reads its rows of both factors, and no stage of k adds to the conflicts. */
static void packed_tiles_read_each_factor_once(void **state) {
    (void)state;
    for (int tile = KILN_W4A16_TILE_64; tile <= KILN_W4A16_TILE_128 && takes_packed(); tile++) {
        const uint64_t side = tile == KILN_W4A16_TILE_64 ? 64 : 128, k = 512;
        const uint64_t warp_scales = side / 64 * 2 * 2 * LANES * ELEMENT; /* of a stage */
        const uint64_t tile_bytes = side * k * ELEMENT + side * k / 2 + k / STAGE * WARPS * warp_scales;
        const sim_counters c = product(KILN_W4A16_SM80_V1, (kiln_w4a16_tile)tile, 2 * side, side, k);
        assert_int_equal(c.global_read_bytes, 2 * tile_bytes);
        assert_int_equal(c.global_written_bytes, 2 * side * side * ELEMENT);
        assert_int_equal(product(KILN_W4A16_SM80_V1, (kiln_w4a16_tile)tile, 2 * side, side, 2 * k).shared_conflicts,
                         c.shared_conflicts);
    }
}

static int run_group(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_read_the_weights_once),
        cmocka_unit_test(packed_rows_read_the_weights_once),
        cmocka_unit_test(packed_tiles_read_each_factor_once),
    };
    return cmocka_run_group_tests_name(info.name, tests, each_device_setup, each_device_teardown);
}

int main(int argc, char **argv) {
    (void)argc;
    return each_device(argv, "sm_75,sm_90,sm_120,gfx90a,gfx1030,gfx1201", run_group);
}
