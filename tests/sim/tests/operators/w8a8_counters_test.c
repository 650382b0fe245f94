/* What gemm_int8 and gemm_fp8 touch by matrix units, counted, on simulated devices. On AMD chips tiles read each factor
 * as often as they must, few rows read the weights once, every code is multiplied once by the unit that the chip has
 * for it, and no access meets a bank of LDS twice. On NVIDIA's no stage of gemm_int8's small tile adds to the
 * conflicts.
 *
 * KILN_SIM_DEVICES names the devices; unset, one of each kind of unit. */
#include "tests/assert_ok.h"
#include "tests/sim/tests/operators/each_device.h"
#include <stdio.h>
#include <string.h>

enum {
    GROUP = 128,
    ELEMENT = 2,
    THREADS = 256,
    BEGINNING = 40 /* bytes of arguments that a thread reads for itself, which say where its row and its scale are */
};

/* Both operators' params have the same fields at the same places. */
typedef kiln_status (*operator_function)(kiln_stream *stream, const kiln_gemm_fp8_params *params);

static kiln_status int8_as_fp8(kiln_stream *of, const kiln_gemm_fp8_params *params) {
    kiln_gemm_int8_params same;
    _Static_assert(sizeof same == sizeof *params, "one struct for both");
    memcpy(&same, params, sizeof same);
    return kiln_gemm_int8_f16(of, &same);
}

typedef struct operation {
    const char *name;
    operator_function call;
} operation;

static const operation operations[] = {{"gemm_int8", int8_as_fp8}, {"gemm_fp8", kiln_gemm_fp8_f16}};

static void *zeros(uint64_t size) {
    void *memory;
    assert_ok(kiln_memory_alloc(device, size, &memory));
    assert_ok(kiln_fill(&stream, memory, 0, size));
    return memory;
}

/* Counts one product of zeros, by the kernel of that name. A scale is of a row, or where grouped of its 128 columns. */
static sim_counters product(const operation *o, const char *kernel, kiln_gemm_tile tile, uint64_t m, uint64_t n,
                            uint64_t k, bool grouped) {
    static sim_launch launch;
    char name[64];
    const uint64_t groups = grouped ? k / GROUP : 1;
    void *a = zeros(m * k), *b = zeros(n * k), *d = zeros(m * n * ELEMENT), *scales = zeros((m + n) * groups * 4);
    const kiln_gemm_fp8_params params = {.d = d,
                                         .a = a,
                                         .b = b,
                                         .a_scales = scales,
                                         .b_scales = (float *)scales + m * groups,
                                         .m = (int64_t)m,
                                         .n = (int64_t)n,
                                         .k = (int64_t)k,
                                         .a_scale_cols = (int64_t)groups,
                                         .b_scale_cols = (int64_t)groups,
                                         .tile = (int32_t)tile};
    assert_ok(o->call(&stream, &params)); /* the first use loads */
    assert_ok(kiln_stream_sync(&stream));
    sim.reset();
    assert_ok(o->call(&stream, &params));
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim.launches(), 1);
    assert_true(sim.launch(0, &launch));
    assert_true(launch.executed);
    snprintf(name, sizeof name, "kiln_%s_%s_f16", o->name, kernel);
    assert_string_equal(launch.kernel, name);
    kiln_memory_free(device, a);
    kiln_memory_free(device, b);
    kiln_memory_free(device, d);
    kiln_memory_free(device, scales);
    return launch.counters;
}

static bool is(const char *target) {
    return strncmp(info.target.processor, target, strlen(target)) == 0;
}

/* Products of codes that one instruction makes: 32x32x8 and 16x16x16 on gfx90a, twice as many of bytes on gfx942, and
 * 16x16x16 on the others. */
static uint64_t multiplied(bool rows) {
    const uint64_t few = 16 * 16 * 16, many = 32 * 32 * 8;
    if (is("gfx942")) return 2 * (rows ? few : many);
    return is("gfx90a") && !rows ? many : few;
}

static void tiles_read_each_factor_once(void **state) {
    (void)state;
    enum { DOWN = 2, ACROSS = 3, K = 3 * GROUP };
    if (info.backend != KILN_BACKEND_ROCM) return;
    static const struct {
        const char *kernel;
        kiln_gemm_tile tile;
        uint64_t side;
    } tiles[] = {{"mma_large", KILN_GEMM_TILE_LARGE, 128}, {"mma_small", KILN_GEMM_TILE_SMALL, 64}};
    for (int i = 0; i < 8; i++) {
        const operation *o = &operations[i % 2];
        const bool grouped = i & 2;
        const uint64_t side = tiles[i / 4].side, m = DOWN * side, n = ACROSS * side;
        const sim_counters c = product(o, tiles[i / 4].kernel, tiles[i / 4].tile, m, n, K, grouped);
        const uint64_t codes = (uint64_t)K * DOWN * ACROSS * 2 * side;
        assert_int_equal(c.matrix_instructions, m * n * K / multiplied(false));
        assert_int_equal(c.shared_conflicts, 0);
        assert_int_equal(c.global_written_bytes, m * n * ELEMENT);
        /* And scales, which come with each stage of at least 32 columns, or two for each result. */
        const uint64_t groups = DOWN * ACROSS, scales = grouped ? groups * (K / 32) * THREADS : m * n * 2;
        assert_in_range(c.global_read_bytes, codes, codes + scales * sizeof(float) + groups * THREADS * BEGINNING);
    }
}

static void rows_read_the_weights_once(void **state) {
    (void)state;
    enum { SIDE = 16, N = 3 * SIDE, K = 9 * GROUP };
    if (info.backend != KILN_BACKEND_ROCM) return;
    for (int i = 0; i < 4; i++) {
        const operation *o = &operations[i % 2];
        const bool grouped = i & 2;
        const sim_counters c = product(o, "mma_rows_16", KILN_GEMM_TILE_AUTO, SIDE, N, K, grouped);
        const uint64_t again = is("gfx11") ? 2 : 1; /* both halves of a wave have the same rows */
        const uint64_t codes = again * K * (N + N / SIDE * SIDE);
        assert_int_equal(c.matrix_instructions, (uint64_t)SIDE * N * K / multiplied(true));
        assert_int_equal(c.shared_conflicts, 0);
        assert_int_equal(c.global_written_bytes, SIDE * N * ELEMENT);
        if (!grouped) assert_int_equal(c.global_read_bytes, codes + SIDE * N * 2 * sizeof(float));
    }
}

static void stages_meet_no_bank_twice(void **state) {
    (void)state;
    enum { DOWN = 2 * 64, ACROSS = 128, K = 2 * GROUP, PRODUCTS = 16 * 8 * 32 };
    if (info.backend != KILN_BACKEND_CUDA) return;
    const uint64_t products = info.target.compute_capability < 80 ? PRODUCTS / 4 : PRODUCTS;
    for (int grouped = 0; grouped < 2; grouped++) {
        const sim_counters c = product(operations, "mma_small", KILN_GEMM_TILE_SMALL, DOWN, ACROSS, K, grouped);
        const uint64_t again =
            product(operations, "mma_small", KILN_GEMM_TILE_SMALL, DOWN, ACROSS, 2 * K, grouped).shared_conflicts;
        assert_int_equal(c.matrix_instructions * products, DOWN * ACROSS * K);
        assert_int_equal(again, c.shared_conflicts);
    }
}

static int run_group(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_meet_no_bank_twice),
        cmocka_unit_test(tiles_read_each_factor_once),
        cmocka_unit_test(rows_read_the_weights_once),
    };
    return cmocka_run_group_tests_name(info.name, tests, each_device_setup, each_device_teardown);
}

int main(int argc, char **argv) {
    (void)argc;
    return each_device(argv, "sm_75,sm_80,gfx90a,gfx942,gfx1100,gfx1201", run_group);
}
