/* PTX as compilers write it: the programs of tests/sim/programs, with the results that the host computes. */
#include "tests/sim/ptx/ptx_warp.h"
#include "tests/sim/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BUFFERS = 3 };

/* The kernel's buffers, the result last. */
typedef struct buffers {
    void *memory[BUFFERS];
    size_t size[BUFFERS];
} buffers;

static const char *const texts[] = {"nvcc-O0", "nvcc-O3", "clang-O0", "clang-O3"};
static ptx_program *programs[4];
static uint64_t seed;

static void *buffer_add(buffers *all, size_t size) {
    int i = 0;
    while (all->memory[i])
        i++;
    all->memory[i] = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(all->memory[i]);
    all->size[i] = size;
    uint8_t *bytes = all->memory[i];
    for (size_t j = 0; j < size; j++)
        bytes[j] = (uint8_t)harness_random(&seed);
    return bytes;
}

static void buffers_free(buffers *all) {
    for (int i = 0; i < BUFFERS; i++)
        free(all->memory[i]);
}

typedef struct context {
    const buffers *all;
    uint8_t *globals;
    size_t global_bytes;
} context;

static bool find(void *pointer, uint64_t address, sim_region *out_region) {
    const context *c = pointer;
    for (int i = 0; i <= BUFFERS; i++) {
        uint64_t base = (uintptr_t)(i == BUFFERS ? (void *)c->globals : c->all->memory[i]);
        size_t size = i == BUFFERS ? c->global_bytes : c->all->size[i];
        if (!base || address - base >= size) continue;
        *out_region = (sim_region){.base = base, .size = size};
        return true;
    }
    return false;
}

/* The module's variables with their initial values, as a driver puts them. */
static uint8_t *globals_new(const ptx_program *program) {
    uint8_t *globals = aligned_alloc(256, (program->global_bytes + 256) / 256 * 256);
    assert_non_null(globals);
    memset(globals, 0, program->global_bytes);
    for (const ptx_variable *v = program->module->variables; v; v = v->next)
        if ((v->space == PTX_SPACE_GLOBAL || v->space == PTX_SPACE_CONST) && v->initial)
            memcpy(globals + v->offset, v->initial, v->size);
    return globals;
}

/* parameters: the pointers to buffers, then these words. */
static void launch(size_t text, const char *kernel, const uint32_t grid[2], const uint32_t block[2], buffers *all,
                   const uint32_t words[2]) {
    uint64_t parameters[BUFFERS + 1] = {0};
    int count = 0;
    for (; count < BUFFERS && all->memory[count]; count++)
        parameters[count] = (uintptr_t)all->memory[count];
    if (words) memcpy(&parameters[count], words, 8);
    context around = {all, globals_new(programs[text]), programs[text]->global_bytes};
    ptx_launch launched = {.program = programs[text],
                           .code = ptx_program_find(programs[text], kernel),
                           .grid = {grid[0], grid[1], 1},
                           .block = {block[0], block[1], 1},
                           .parameters = (const uint8_t *)parameters,
                           .globals = (uintptr_t)around.globals,
                           .find = find,
                           .find_context = &around,
                           .seed = harness_random(&seed),
                           .budget = 1 << 22,
                           .threads = 2};
    assert_non_null(launched.code);
    sim_counters counters = {0};
    sim_report report;
    if (!ptx_launch_run(&launched, &counters, &report)) fail_msg("%s: %s", texts[text], report.text);
    free(around.globals);
}

#define EACH_TEXT(text) for (size_t text = 0; text < sizeof texts / sizeof *texts; text++)

static void reduction(void **state) {
    (void)state;
    enum { N = 1000, THREADS = 256, BLOCKS = 4 };
    EACH_TEXT(text) {
        buffers all = {0};
        float *in = buffer_add(&all, N * sizeof *in), *out = buffer_add(&all, BLOCKS * sizeof *out);
        for (int i = 0; i < N; i++)
            in[i] = (float)(harness_random(&seed) % 1000); /* sums are exact in any order */
        launch(text, "reduce", (uint32_t[]){BLOCKS, 1}, (uint32_t[]){THREADS, 1}, &all, (uint32_t[]){N, 0});
        for (int b = 0; b < BLOCKS; b++) {
            float sum = 0;
            for (int i = b * THREADS; i < (b + 1) * THREADS && i < N; i++)
                sum += in[i];
            if (sum != out[b]) fail_msg("%s: %g, must be %g", texts[text], (double)out[b], (double)sum);
        }
        buffers_free(&all);
    }
}

static void transposition(void **state) {
    (void)state;
    enum { ROWS = 37, COLUMNS = 50 };
    EACH_TEXT(text) {
        buffers all = {0};
        uint32_t *in = buffer_add(&all, sizeof(uint32_t[ROWS][COLUMNS]));
        uint32_t *out = buffer_add(&all, sizeof(uint32_t[ROWS][COLUMNS]));
        launch(text, "transpose", (uint32_t[]){4, 3}, (uint32_t[]){16, 16}, &all, (uint32_t[]){ROWS, COLUMNS});
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                assert_int_equal(out[j * ROWS + i], in[i * COLUMNS + j]);
        buffers_free(&all);
    }
}

static void histogram(void **state) {
    (void)state;
    enum { N = 3000, THREADS = 128 };
    EACH_TEXT(text) {
        buffers all = {0};
        uint32_t wanted[256] = {0};
        uint8_t *in = buffer_add(&all, N);
        uint32_t *out = buffer_add(&all, sizeof wanted);
        memset(out, 0, sizeof wanted);
        for (int i = 0; i < N; i++) {
            in[i] &= (uint8_t)(i % 2 ? 255 : 3);
            wanted[in[i]]++;
        }
        launch(text, "histogram", (uint32_t[]){(N + THREADS - 1) / THREADS, 1}, (uint32_t[]){THREADS, 1}, &all,
               (uint32_t[]){N, 0});
        assert_memory_equal(out, wanted, sizeof wanted);
        buffers_free(&all);
    }
}

static void scan(void **state) {
    (void)state;
    enum { THREADS = 256, BLOCKS = 3 };
    EACH_TEXT(text) {
        buffers all = {0};
        uint32_t *in = buffer_add(&all, THREADS * BLOCKS * 4), *out = buffer_add(&all, THREADS * BLOCKS * 4), sum = 0;
        launch(text, "scan", (uint32_t[]){BLOCKS, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
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
    EACH_TEXT(text) {
        buffers all = {0};
        float *a = buffer_add(&all, sizeof(float[N][N])), *b = buffer_add(&all, sizeof(float[N][N]));
        float *c = buffer_add(&all, sizeof(float[N][N]));
        for (int i = 0; i < N * N; i++) {
            a[i] = (float)(harness_random(&seed) % 64) - 32; /* sums are exact in any order */
            b[i] = (float)(harness_random(&seed) % 64) - 32;
        }
        launch(text, "multiply", (uint32_t[]){4, 4}, (uint32_t[]){8, 8}, &all, (uint32_t[]){N, 0});
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
    EACH_TEXT(text) {
        buffers all = {0};
        uint32_t *out = buffer_add(&all, 64 * sizeof *out);
        launch(text, "recursion", (uint32_t[]){1, 1}, (uint32_t[]){64, 1}, &all, NULL);
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

static void choices(void **state) {
    (void)state;
    enum { THREADS = 512 };
    EACH_TEXT(text) {
        buffers all = {0};
        int32_t *in = buffer_add(&all, THREADS * sizeof *in), *out = buffer_add(&all, THREADS * sizeof *out);
        launch(text, "choose", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(out[i], choose(in[i], i));
        buffers_free(&all);
    }
}

static int ascending(const void *a, const void *b) {
    return *(const int16_t *)a - *(const int16_t *)b;
}

static void sorting(void **state) {
    (void)state;
    enum { THREADS = 96 };
    EACH_TEXT(text) {
        buffers all = {0};
        int16_t *in = buffer_add(&all, THREADS * 32), *out = buffer_add(&all, THREADS * 32);
        launch(text, "sort", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (int i = 0; i < THREADS; i++)
            qsort(in + i * 16, 16, sizeof *in, ascending);
        assert_memory_equal(in, out, THREADS * 32);
        buffers_free(&all);
    }
}

static void wide_arithmetic(void **state) {
    (void)state;
    enum { THREADS = 64 };
    EACH_TEXT(text) {
        buffers all = {0};
        uint64_t *a = buffer_add(&all, THREADS * 8), *b = buffer_add(&all, THREADS * 8);
        uint64_t *out = buffer_add(&all, THREADS * 24);
        launch(text, "wide", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, NULL);
        for (int i = 0; i < THREADS; i++) {
            uint64_t x = a[i], y = b[i] | 1;
            assert_true(out[i * 3] == (uint64_t)((unsigned __int128)x * y >> 64));
            assert_true(out[i * 3 + 1] == x / y);
            assert_true(out[i * 3 + 2] == (uint64_t)((int64_t)x % (int64_t)y));
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
    EACH_TEXT(text) {
        buffers all = {0};
        uint32_t wanted[THREADS];
        uint8_t *steps = buffer_add(&all, THREADS * STEPS * 4);
        uint32_t *out = buffer_add(&all, sizeof wanted);
        for (uint32_t i = 0; i < THREADS; i++)
            wanted[i] = interpret(steps, out[i], STEPS, i, THREADS);
        launch(text, "interpret", (uint32_t[]){1, 1}, (uint32_t[]){THREADS, 1}, &all, (uint32_t[]){STEPS, 0});
        assert_memory_equal(out, wanted, sizeof wanted);
        buffers_free(&all);
    }
}

static char *read_text(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is missing", path);
    char *text = malloc(1 << 20);
    assert_non_null(text);
    *out_size = fread(text, 1, 1 << 20, file);
    fclose(file);
    return text;
}

static int load_all(void **state) {
    (void)state;
    seed = harness_seed();
    EACH_TEXT(text) {
        char path[128], why[512] = "";
        size_t size;
        snprintf(path, sizeof path, "tests/sim/programs/programs.%s.ptx", texts[text]);
        char *bytes = read_text(path, &size);
        programs[text] = ptx_program_load(bytes, size, 80, why, sizeof why);
        if (!programs[text]) fail_msg("%s: %s", path, why);
        free(bytes);
    }
    return 0;
}

static int free_all(void **state) {
    (void)state;
    EACH_TEXT(text)
    ptx_program_free(programs[text]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduction),      cmocka_unit_test(transposition),  cmocka_unit_test(histogram),
        cmocka_unit_test(scan),           cmocka_unit_test(multiplication), cmocka_unit_test(recursion),
        cmocka_unit_test(choices),        cmocka_unit_test(sorting),        cmocka_unit_test(wide_arithmetic),
        cmocka_unit_test(interpretation),
    };
    return cmocka_run_group_tests_name("ptx_programs", tests, load_all, free_all);
}
