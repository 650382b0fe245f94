/* The kernels of tests/sim/tests/programs/serving.cu, as nvcc writes them without and with optimisation, against the
 * host. */
#include "tests/sim/core/sim_float.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include "tests/sim/tests/ptx/ptx_text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { TEXTS = 2, THREADS = 128, BUFFERS = 4, SEEDS = 3 };

static ptx_text texts[TEXTS] = {{"serving.nvcc-O0", 80, NULL}, {"serving.nvcc-O3", 80, NULL}};
static uint64_t seed;

typedef struct buffer {
    void *memory;
    size_t size;
} buffer;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    for (const buffer *b = context; b < (const buffer *)context + BUFFERS; b++) {
        *out_region = (sim_region){(uintptr_t)b->memory, b->size, NULL, false};
        if (address - out_region->base < b->size) return true;
    }
    return false;
}

/* Launches a kernel of which the buffers are the parameters, but the last may be a number. */
static void run(size_t text, const char *kernel, uint32_t columns, uint32_t rows, buffer *all, uint32_t number) {
    uint64_t parameters[BUFFERS];
    for (int i = 0; i < BUFFERS; i++)
        parameters[i] = all[i].memory ? (uintptr_t)all[i].memory : number;
    ptx_launch launch = {.program = texts[text].program,
                         .code = ptx_program_find(texts[text].program, kernel),
                         .grid = {columns, rows, 1},
                         .block = {THREADS, 1, 1},
                         .parameters = (const uint8_t *)parameters,
                         .find = find,
                         .find_context = all,
                         .seed = sim_random(&seed),
                         .budget = 1 << 24,
                         .threads = 2};
    launch.sum_mode = (sim_sum_mode)(launch.seed % SIM_SUM_MODES);
    sim_counters counters = {0};
    sim_report report;
    assert_non_null(launch.code);
    if (!ptx_launch_run(&launch, &counters, &report)) fail_msg("%s: %s", texts[text].name, report.text);
}

static void blocks_look_back(void **state) {
    (void)state;
    enum { BLOCKS = 30, N = BLOCKS * THREADS };
    static uint32_t in[N], out[N], states[BLOCKS], sums[BLOCKS * 2];
    for (int i = 0; i < SEEDS * TEXTS; i++) {
        buffer all[BUFFERS] = {{in, sizeof in}, {out, sizeof out}, {states, sizeof states}, {sums, sizeof sums}};
        uint32_t sum = 0;
        for (int j = 0; j < N; j++)
            in[j] = (uint32_t)sim_random(&seed);
        memset(states, 0, sizeof states);
        run((size_t)i % TEXTS, "look_back", BLOCKS, 1, all, 0);
        for (int j = 0; j < N; j++)
            assert_int_equal(out[j], sum += in[j]);
    }
}

static void weights_are_unpacked(void **state) {
    (void)state;
    enum { N = 2 * THREADS };
    static uint32_t in[N], out[N * 4];
    for (size_t text = 0; text < TEXTS; text++) {
        buffer all[BUFFERS] = {{in, sizeof in}, {out, sizeof out}};
        for (int i = 0; i < N; i++)
            in[i] = (uint32_t)sim_random(&seed);
        run(text, "unpack", 2, 1, all, 0);
        for (uint32_t i = 0; i < N * 8; i++) {
            uint32_t number = in[i / 8] >> (i % 8 / 2 * 4 + i % 2 * 16) & 15;
            uint32_t wanted = (uint32_t)sim_encode(SIM_f16, number, SIM_ROUND_ZERO, false);
            assert_int_equal(out[i / 2] >> i % 2 * 16 & 0xffff, wanted);
        }
    }
}

static void products_are_copied_ahead(void **state) {
    (void)state;
    enum { N = 128 };
    static uint16_t a[N * N], b[N * N];
    static float x[N * N], y[N * N], c[N * N];
    for (int i = 0; i < N * N; i++) { /* sums are exact in any order */
        x[i] = (float)(sim_random(&seed) % 17) - 8;
        y[i] = (float)(sim_random(&seed) % 17) - 8;
        a[i] = (uint16_t)sim_encode(SIM_f16, (double)x[i], SIM_ROUND_ZERO, false);
        b[i] = (uint16_t)sim_encode(SIM_f16, (double)y[i], SIM_ROUND_ZERO, false);
    }
    for (size_t text = 0; text < TEXTS; text++) {
        buffer all[BUFFERS] = {{a, sizeof a}, {b, sizeof b}, {c, sizeof c}};
        run(text, "multiply", N / 64, N / 64, all, N);
        for (int i = 0; i < N * N; i++) {
            float sum = 0;
            for (int k = 0; k < N; k++)
                sum += x[i / N * N + k] * y[k * N + i % N];
            assert_true(c[i] == sum);
        }
    }
}

static int load_all(void **state) {
    (void)state;
    return ptx_texts_load(texts, TEXTS);
}

static int free_all(void **state) {
    (void)state;
    return ptx_texts_free(texts, TEXTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_look_back),
        cmocka_unit_test(weights_are_unpacked),
        cmocka_unit_test(products_are_copied_ahead),
    };
    seed = harness_seed();
    return cmocka_run_group_tests_name("ptx_serving", tests, load_all, free_all);
}
