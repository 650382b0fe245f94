#include "tests/sim/tests/common/programs_host.h"
#include "tests/sim/core/sim_float.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const programs_machine *machine;
static uint64_t seed;

static uint64_t random_next(void) {
    return sim_random(&seed);
}

static void *buffer_add(programs_buffers *all, size_t size) {
    int i = 0;
    while (all->memory[i])
        i++;
    all->memory[i] = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(all->memory[i]);
    all->size[i] = size;
    uint8_t *bytes = all->memory[i];
    for (size_t j = 0; j < size; j++)
        bytes[j] = (uint8_t)random_next();
    return bytes;
}

static void buffers_free(programs_buffers *all) {
    for (int i = 0; i < PROGRAMS_BUFFERS; i++)
        free(all->memory[i]);
}

bool programs_find(const programs_buffers *all, uint64_t address, sim_region *out_region) {
    for (int i = 0; i < PROGRAMS_BUFFERS; i++) {
        uint64_t base = (uintptr_t)all->memory[i];
        if (!base || address - base >= all->size[i]) continue;
        *out_region = (sim_region){.base = base, .size = all->size[i]};
        return true;
    }
    return false;
}

static void launch(size_t variant, const char *kernel, const uint32_t grid[2], const uint32_t group[2],
                   const programs_buffers *all, const uint32_t words[2]) {
    programs_launch launched = {.kernel = kernel,
                                .grid = {grid[0], grid[1]},
                                .group = {group[0], group[1]},
                                .buffers = all,
                                .seed = random_next()};
    int count = 0;
    for (; count < PROGRAMS_BUFFERS && all->memory[count]; count++)
        launched.parameters[count] = (uintptr_t)all->memory[count];
    launched.parameter_bytes = (size_t)count * 8;
    if (words) {
        memcpy(&launched.parameters[count], words, 8);
        launched.parameter_bytes += 8;
    }
    machine->launch(variant, &launched);
}

#define EACH_VARIANT(variant) for (size_t variant = 0; variant < machine->variants; variant++)

static void reduction(void **state) {
    (void)state;
    enum { N = 1000, THREADS = 256, BLOCKS = 4 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        float *in = buffer_add(&all, N * sizeof *in), *out = buffer_add(&all, BLOCKS * sizeof *out);
        for (int i = 0; i < N; i++)
            in[i] = (float)(random_next() % 1000); /* sums are exact in any order */
        launch(variant, "reduce", (uint32_t[]){BLOCKS, 1}, (uint32_t[]){THREADS, 1}, &all, (uint32_t[]){N, 0});
        for (int b = 0; b < BLOCKS; b++) {
            float sum = 0;
            for (int i = b * THREADS; i < (b + 1) * THREADS && i < N; i++)
                sum += in[i];
            if (sum != out[b]) fail_msg("%s: %g, must be %g", machine->name(variant), (double)out[b], (double)sum);
        }
        buffers_free(&all);
    }
}

static void transposition(void **state) {
    (void)state;
    enum { ROWS = 37, COLUMNS = 50 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint32_t *in = buffer_add(&all, sizeof(uint32_t[ROWS][COLUMNS]));
        uint32_t *out = buffer_add(&all, sizeof(uint32_t[ROWS][COLUMNS]));
        launch(variant, "transpose", (uint32_t[]){4, 3}, (uint32_t[]){16, 16}, &all, (uint32_t[]){ROWS, COLUMNS});
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                assert_int_equal(out[j * ROWS + i], in[i * COLUMNS + j]);
        buffers_free(&all);
    }
}

static void histogram(void **state) {
    (void)state;
    enum { N = 3000, THREADS = 128 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint32_t wanted[256] = {0};
        uint8_t *in = buffer_add(&all, N);
        uint32_t *out = buffer_add(&all, sizeof wanted);
        memset(out, 0, sizeof wanted);
        for (int i = 0; i < N; i++) {
            in[i] &= (uint8_t)(i % 2 ? 255 : 3);
            wanted[in[i]]++;
        }
        launch(variant, "histogram", (uint32_t[]){(N + THREADS - 1) / THREADS, 1}, (uint32_t[]){THREADS, 1}, &all,
               (uint32_t[]){N, 0});
        assert_memory_equal(out, wanted, sizeof wanted);
        buffers_free(&all);
    }
}

static void scan(void **state) {
    (void)state;
    enum { THREADS = 256, BLOCKS = 3 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint32_t *in = buffer_add(&all, THREADS * BLOCKS * 4), *out = buffer_add(&all, THREADS * BLOCKS * 4), sum = 0;
        launch(variant, "scan", (uint32_t[]){BLOCKS, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (int i = 0; i < THREADS * BLOCKS; i++) {
            sum = i % THREADS ? sum + in[i] : in[i];
            assert_int_equal(out[i], sum);
        }
        buffers_free(&all);
    }
}

static void multiplication(void **state) {
    (void)state;
    enum { N = 29 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        float *a = buffer_add(&all, sizeof(float[N][N])), *b = buffer_add(&all, sizeof(float[N][N]));
        float *c = buffer_add(&all, sizeof(float[N][N]));
        for (int i = 0; i < N * N; i++) {
            a[i] = (float)(random_next() % 64) - 32; /* sums are exact in any order */
            b[i] = (float)(random_next() % 64) - 32;
        }
        launch(variant, "multiply", (uint32_t[]){4, 4}, (uint32_t[]){8, 8}, &all, (uint32_t[]){N, 0});
        for (int i = 0; i < N * N; i++) {
            float sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i / N * N + k] * b[k * N + i % N];
            assert_true(c[i] == sum);
        }
        buffers_free(&all);
    }
}

static void recursion(void **state) {
    (void)state;
    static const uint32_t fibonacci[10] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34};
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint32_t *out = buffer_add(&all, 64 * sizeof *out);
        launch(variant, "recursion", (uint32_t[]){1, 1}, (uint32_t[]){64, 1}, &all, NULL);
        for (int i = 0; i < 64; i++)
            assert_int_equal(out[i], fibonacci[i % 10]);
        buffers_free(&all);
    }
}

static int32_t choose(int32_t x, int thread) {
    static const int32_t weights[8] = {3, -1, 4, 1, -5, 9, 2, 6};
    switch (x & 15) {
    case 0:
        return x + 1;
    case 1:
        return (int32_t)((uint32_t)x * 3);
    case 2:
        return -x;
    case 3:
        return x / 7;
    case 4:
        return x % 7;
    case 5:
        return x >> 3;
    case 6:
        return (int32_t)((uint32_t)x << 3);
    case 7:
        return x ^ 0x55;
    case 8:
        return weights[thread % 8];
    case 9:
        return x > 0 ? __builtin_popcount((uint32_t)x) : 0;
    default:
        return x > 0 ? 1000 : -1000;
    }
}

static uint32_t operation(uint32_t which, uint32_t a, uint32_t b) {
    return which == 0 ? a + b : which == 1 ? a - b : a * b;
}

static void calls_of_addresses(void **state) {
    (void)state;
    enum { THREADS = 80 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint32_t *in = buffer_add(&all, THREADS * 4), *out = buffer_add(&all, THREADS * 4);
        launch(variant, "dispatch", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (uint32_t i = 0; i < THREADS; i++) {
            uint32_t x = in[i], area = x % 5 ? x * i : x * x + i;
            assert_int_equal(out[i], operation(x % 3, x, i) + 3 * operation(i % 2 ? 2 : 1, x, 7) + 5 * area);
        }
        buffers_free(&all);
    }
}

static void variables_of_the_module(void **state) {
    (void)state;
    enum { THREADS = 64 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint32_t *out = buffer_add(&all, THREADS * 4), sums[4] = {1, 10, 100, 1000};
        for (uint32_t i = 0; i < THREADS; i++)
            sums[i % 4] += i;
        for (int again = 0; again < 2; again++) {
            launch(variant, "tally", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
            for (uint32_t i = 0; i < THREADS; i++)
                assert_int_equal(out[i], sums[(i + 1) % 4]);
        }
        buffers_free(&all);
    }
}

static void choices(void **state) {
    (void)state;
    enum { THREADS = 512 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        int32_t *in = buffer_add(&all, THREADS * sizeof *in), *out = buffer_add(&all, THREADS * sizeof *out);
        launch(variant, "choose", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(out[i], choose(in[i], i));
        buffers_free(&all);
    }
}

static int ascending(const void *a, const void *b) {
    return *(const int16_t *)a - *(const int16_t *)b;
}

static void arrays_in_registers(void **state) {
    (void)state;
    enum { THREADS = 64, EACH = 16 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint32_t *in = buffer_add(&all, THREADS * EACH * 4), *places = buffer_add(&all, EACH * 4);
        uint32_t *out = buffer_add(&all, THREADS * EACH * 4);
        launch(variant, "mix", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (uint32_t i = 0; i < THREADS; i++) {
            uint32_t *own = &in[i * EACH];
            for (uint32_t p = 0; p + 1 < EACH; p++)
                own[places[p] & 15] += own[places[p + 1] & 15] * 3;
        }
        assert_memory_equal(out, in, THREADS * EACH * 4);
        buffers_free(&all);
    }
}

static void sorting(void **state) {
    (void)state;
    enum { THREADS = 96 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        int16_t *in = buffer_add(&all, THREADS * 32), *out = buffer_add(&all, THREADS * 32);
        launch(variant, "sort", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (int i = 0; i < THREADS; i++)
            qsort(in + i * 16, 16, sizeof *in, ascending);
        assert_memory_equal(in, out, THREADS * 32);
        buffers_free(&all);
    }
}

static void wide_arithmetic(void **state) {
    (void)state;
    enum { THREADS = 64 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint64_t *a = buffer_add(&all, THREADS * 8), *b = buffer_add(&all, THREADS * 8);
        uint64_t *out = buffer_add(&all, THREADS * 24);
        launch(variant, "wide", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (int i = 0; i < THREADS; i++) {
            uint64_t x = a[i], y = b[i] | 1;
            assert_true(out[i * 3] == (uint64_t)((unsigned __int128)x * y >> 64));
            assert_true(out[i * 3 + 1] == x / y);
            assert_true(out[i * 3 + 2] == (uint64_t)((int64_t)x % (int64_t)y));
        }
        buffers_free(&all);
    }
}

static void matrix_multiplication(void **state) {
    (void)state;
    enum { N = 64 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        double a[N * N], b[N * N];
        uint16_t *left = buffer_add(&all, N * N * sizeof *left), *right = buffer_add(&all, N * N * sizeof *right);
        float *out = buffer_add(&all, N * N * sizeof *out);
        for (int i = 0; i < N * N; i++) { /* sums are exact in any order */
            a[i] = (double)(random_next() % 33) - 16;
            b[i] = (double)(random_next() % 33) - 16;
            left[i] = (uint16_t)sim_encode(SIM_f16, a[i], SIM_ROUND_ZERO, false);
            right[i] = (uint16_t)sim_encode(SIM_f16, b[i], SIM_ROUND_ZERO, false);
        }
        launch(variant, "multiply_matrices", (uint32_t[]){N / 32, N / 32}, (uint32_t[]){128, 1}, &all,
               (uint32_t[]){N, 0});
        for (int i = 0; i < N * N; i++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i / N * N + k] * b[k * N + i % N];
            if ((double)out[i] != sum)
                fail_msg("%s: element %d is %g, must be %g", machine->name(variant), i, (double)out[i], sum);
        }
        buffers_free(&all);
    }
}

/* The programs' own register machine. */
static uint32_t interpret(const uint8_t *steps, uint32_t out, uint32_t count, uint32_t thread, uint32_t threads) {
    uint32_t r[4] = {thread, thread * 7 + 1, thread ^ 0x1234, 99};
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *step = steps + (i * threads + thread) * 4;
        uint32_t a = r[step[1] & 3], b = r[step[2] & 3];
        const uint32_t values[12] = {a + b,       a - b,         a * b,
                                     a / (b | 1), a << (b & 31), a >> (b & 31),
                                     0,           out + b,       (uint32_t)__builtin_popcount(a) + b,
                                     a & b,       a | ~b,        0};
        uint32_t operation = step[0] % 12;
        if (operation == 6)
            out = a;
        else if (operation == 11)
            out += a;
        else
            r[step[3] & 3] = values[operation];
    }
    return out + r[0] + r[1] + r[2] + r[3];
}

static void interpretation(void **state) {
    (void)state;
    enum { THREADS = 80, STEPS = 40 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint32_t wanted[THREADS];
        uint8_t *steps = buffer_add(&all, THREADS * STEPS * 4);
        uint32_t *out = buffer_add(&all, sizeof wanted);
        for (uint32_t i = 0; i < THREADS; i++)
            wanted[i] = interpret(steps, out[i], STEPS, i, THREADS);
        launch(variant, "interpret", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, (uint32_t[]){STEPS, 0});
        assert_memory_equal(out, wanted, sizeof wanted);
        buffers_free(&all);
    }
}

static void copies_of_structures(void **state) {
    (void)state;
    enum { THREADS = 96 };
    EACH_VARIANT(variant) {
        programs_buffers all = {0};
        uint32_t *in = buffer_add(&all, THREADS * 4), *out = buffer_add(&all, THREADS * 4);
        launch(variant, "copy_structures", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (uint32_t i = 0; i < THREADS; i++) {
            uint32_t x = in[i], weight = x % 100 + x + i % 4 + (uint32_t)((uint64_t)x * x >> 32) + 7;
            assert_int_equal(out[i], weight + (x % 2 ? x : 1));
        }
        buffers_free(&all);
    }
}

char *programs_read(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is missing; the tests run in the root folder", path);
    char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *out_size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

int programs_test(const char *name, const programs_machine *tested) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduction),
        cmocka_unit_test(transposition),
        cmocka_unit_test(histogram),
        cmocka_unit_test(scan),
        cmocka_unit_test(multiplication),
        cmocka_unit_test(recursion),
        cmocka_unit_test(calls_of_addresses),
        cmocka_unit_test(variables_of_the_module),
        cmocka_unit_test(choices),
        cmocka_unit_test(arrays_in_registers),
        cmocka_unit_test(sorting),
        cmocka_unit_test(wide_arithmetic),
        cmocka_unit_test(interpretation),
        cmocka_unit_test(matrix_multiplication),
        cmocka_unit_test(copies_of_structures),
    };
    machine = tested;
    seed = harness_seed();
    return cmocka_run_group_tests_name(name, tests, tested->setup, tested->teardown);
}
