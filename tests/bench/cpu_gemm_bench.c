/* gemm_f32 on the CPU against OpenBLAS and against the peak of the processor, and gemm_bf16 by dot products of 16-bit
 * numbers, where the processor has AVX-512 BF16, and by AMX, where it has that, against f32 arithmetic and against
 * theirs; square products:
 *
 *   cpu_gemm_bench [--json] [LEVEL]     LEVEL: x86-64-v2, ...; default: the best of this machine
 *
 *   GF/s   2 n^3 operations per second, in the best of the rounds
 *   peak   the same in percent of what fused multiply-adds in registers reach, times the threads
 *   ratio  kiln's GF/s by OpenBLAS's, or by its own of bf16 in f32 arithmetic; behind it that of a round, in the middle
 *          and at the ends
 *
 * In a round the peak, kiln and OpenBLAS take turns, so that other work on the machine disturbs them alike. One thread
 * is measured in its processor time, more threads by the clock. Then each first waits until the other's threads sleep:
 * OpenBLAS's keep a processor busy for some 25 ms after a product, and would take it from kiln's. OpenBLAS is opened at
 * run time (Debian's libopenblas0-pthread), and told to use the same level of instructions. */
#include "tests/bench/rounds.h"
#include <dlfcn.h>
#include <kiln/ops.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include "kernels/arch/amx.h"
#include "loader/cpu/cpu_amx.h"
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

enum { ROUNDS = 9, CHAINS = 12, PEAK_STEPS = 1 << 20 };
static const double LEAST_SECONDS = 0.02; /* of one measurement */
static const int64_t sizes[] = {256, 512, 1024, 2048, 4096};

/* ---- The peak: CHAINS sums that wait for none but themselves ---- */

#define PEAK(name, flags, vec, set, fma)                                                                      \
    flags static void name(float *out) {                                                                      \
        vec sums[CHAINS], factor = set(0.999f), addend = set(0.001f);                                         \
        for (int i = 0; i < CHAINS; i++)                                                                      \
            sums[i] = set((float)i);                                                                          \
        for (int step = 0; step < PEAK_STEPS; step++)                                                         \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sums[i] = fma(sums[i], factor, addend); \
        memcpy(out, sums, sizeof sums);                                                                       \
    }

typedef struct instruction_level {
    const char *name, *openblas; /* its word for such a processor; NULL: it finds out */
    int lanes;
    void (*peak)(float *out);
    void (*dot_peak)(float *out); /* of bf16, twice as many operations; NULL: there is none */
} instruction_level;

#if defined(__x86_64__)
#define MULTIPLY_ADD(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
PEAK(peak_v2, , __m128, _mm_set1_ps, MULTIPLY_ADD)
PEAK(peak_v3, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, _mm256_fmadd_ps)
PEAK(peak_v4, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, _mm512_fmadd_ps)
/* As many chains again: a dot product takes longer than a multiply-add. */
__attribute__((target("avx512bf16"))) static void peak_bf16(float *out) {
    __m512 sums[2 * CHAINS];
    const __m512bh factor = (__m512bh)_mm512_set1_epi32(0x3f803f80); /* 1 and 1 */
    for (int i = 0; i < 2 * CHAINS; i++)
        sums[i] = _mm512_set1_ps((float)i);
    for (int step = 0; step < PEAK_STEPS / 2; step++)
        _Pragma("GCC unroll 24") for (int i = 0; i < 2 * CHAINS; i++) sums[i] =
            _mm512_dpbf16_ps(sums[i], factor, factor);
    for (int i = 0; i < CHAINS; i++)
        _mm512_storeu_ps(out + i * 16, _mm512_add_ps(sums[i], sums[i + CHAINS]));
}
static bool has_bf16(void) {
    return __builtin_cpu_supports("avx512bf16");
}
/* Products of tiles of bf16, four sums in turn: GF/s of one thread. */
static double amx_peak(void) {
    enum { PRODUCTS = 1 << 18, OPERATIONS = 2 * 16 * 16 * 32 };
    kiln_amx_config whole = {.palette = 1};
    for (int i = 0; i < 8; i++)
        whole.rows[i] = 16, whole.row_bytes[i] = 64;
    KILN_AMX_CONFIGURE(&whole);
    double start = seconds(1);
    for (int i = 0; i < PRODUCTS; i += 4) {
        KILN_AMX_DOT_BF16(0, 4, 6);
        KILN_AMX_DOT_BF16(1, 4, 7);
        KILN_AMX_DOT_BF16(2, 5, 6);
        KILN_AMX_DOT_BF16(3, 5, 7);
    }
    double taken = seconds(1) - start;
    KILN_AMX_RELEASE();
    return 1e-9 * OPERATIONS * PRODUCTS / taken;
}
static bool amx_allowed(void) {
    return kiln__cpu_amx & KILN__CPU_AMX_BF16;
}
static const instruction_level levels[] = {{"x86-64-v2", "Nehalem", 4, peak_v2, NULL},
                                           {"x86-64-v3", "Haswell", 8, peak_v3, NULL},
                                           {"x86-64-v4", "SkylakeX", 16, peak_v4, peak_bf16}};
#else
#define MULTIPLY_ADD(a, b, c) vfmaq_f32(c, a, b)
PEAK(peak_neon, , float32x4_t, vdupq_n_f32, MULTIPLY_ADD)
static bool has_bf16(void) {
    return false;
}
static double amx_peak(void) {
    return 0;
}
static bool amx_allowed(void) {
    return false;
}
static const instruction_level levels[] = {{"aarch64", NULL, 4, peak_neon, NULL}};
#endif

/* ---- OpenBLAS ---- */

typedef struct openblas {
    void (*sgemm)(int order, int a_form, int b_form, int m, int n, int k, float alpha, const float *a, int a_stride,
                  const float *b, int b_stride, float beta, float *c, int c_stride);
    void (*set_threads)(int threads);
    char *(*config)(void);
} openblas;

/* false if it is not here. */
static bool openblas_open(const instruction_level *level, openblas *out) {
    if (level->openblas) setenv("OPENBLAS_CORETYPE", level->openblas, 1);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    *(void **)&out->sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&out->set_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&out->config = dlsym(library, "openblas_get_config");
    return out->sgemm && out->set_threads && out->config;
}

/* ---- Measuring ---- */

typedef struct bench {
    const instruction_level *level;
    const openblas *openblas; /* NULL: there is none */
    kiln_stream *stream;
    int threads;
    float *a, *b, *d, *expected;
    uint16_t *a_bf16, *b_bf16;
} bench;

static void check(kiln_status status) {
    if (status == KILN_OK) return;
    fprintf(stderr, "cpu_gemm_bench: %s\n", kiln_last_error());
    exit(1);
}

static float *random_matrix(uint32_t seed, size_t count) {
    float *matrix = aligned_alloc(4096, count * sizeof *matrix);
    if (!matrix) exit(1);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        matrix[i] = (float)(seed >> 8) * 0x1p-23f - 1;
    }
    return matrix;
}

static uint16_t *as_bf16(const float *matrix, size_t count) {
    uint16_t *cut = aligned_alloc(4096, count * sizeof *cut);
    if (!cut) exit(1);
    for (size_t i = 0; i < count; i++)
        memcpy(&cut[i], (const char *)&matrix[i] + 2, sizeof *cut);
    return cut;
}

static void multiply_kiln(const bench *t, int64_t n) {
    check(kiln_gemm_f32(t->stream,
                        &(kiln_gemm_params){.d = t->d, .a = t->a, .b = t->b, .batch = 1, .m = n, .n = n, .k = n}));
}

static void multiply_openblas(const bench *t, int64_t n) {
    enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };
    int side = (int)n;
    t->openblas->sgemm(ROW_MAJOR, AS_IT_IS, TRANSPOSED, side, side, side, 1, t->a, side, t->b, side, 0, t->expected,
                       side);
}

/* Waits until no thread of this process works. */
static void rest(void) {
    double before, after = process_seconds();
    do {
        before = after;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        after = process_seconds();
    } while (after - before > 0.0005);
}

/* GF/s of so many products. */
static double speed(const bench *t, int64_t n, int repeats, void (*multiply)(const bench *t, int64_t n)) {
    if (t->threads > 1) rest();
    double start = seconds(t->threads);
    for (int i = 0; i < repeats; i++)
        multiply(t, n);
    return 2e-9 * (double)n * (double)n * (double)n * repeats / (seconds(t->threads) - start);
}

/* Of one thread; each step is so many operations a lane. */
static double peak_speed(const instruction_level *level, void (*peak)(float *out), double operations) {
    float sums[CHAINS * 16];
    double start = seconds(1);
    peak(sums);
    return operations * 1e-9 * CHAINS * level->lanes * (double)PEAK_STEPS / (seconds(1) - start);
}

/* Each sum has rounded so many times at most. */
static void compare(const bench *t, int64_t n) {
    for (int64_t i = 0; i < n * n; i++)
        if (!(fabsf(t->d[i] - t->expected[i]) <= 1e-6f * (float)n)) {
            fprintf(stderr, "cpu_gemm_bench: %lld: element %lld is %g, OpenBLAS says %g\n", (long long)n, (long long)i,
                    (double)t->d[i], (double)t->expected[i]);
            exit(1);
        }
}

static void measure(const bench *t, int64_t n, bool json) {
    double kiln[ROUNDS], other[ROUNDS], ratio[ROUNDS], peak[ROUNDS];
    int repeats = 1 + (int)(LEAST_SECONDS * 1e11 / (2 * (double)n * (double)n * (double)n));
    for (int i = -1; i < ROUNDS; i++) { /* the first round is not counted */
        int place = i < 0 ? 0 : i;
        peak[place] = peak_speed(t->level, t->level->peak, 2) * t->threads;
        kiln[place] = speed(t, n, repeats, multiply_kiln);
        if (!t->openblas) continue;
        other[place] = speed(t, n, repeats, multiply_openblas);
        ratio[place] = kiln[place] / other[place];
    }
    if (t->openblas) compare(t, n);
    spread k = spread_of(kiln, ROUNDS), p = spread_of(peak, ROUNDS), o = {0}, r = {0};
    if (t->openblas) o = spread_of(other, ROUNDS), r = spread_of(ratio, ROUNDS);
    double of_peak = 100 * k.most / p.most, best = k.most / o.most;
    if (json) {
        printf("{\"level\": \"%s\", \"threads\": %d, \"size\": %lld, \"peak_gflops\": %.1f, \"kiln_gflops\": %.1f, "
               "\"percent_of_peak\": %.1f",
               t->level->name, t->threads, (long long)n, p.most, k.most, of_peak);
        if (t->openblas)
            printf(", \"openblas_gflops\": %.1f, \"ratio\": %.3f, \"round_ratio\": [%.3f, %.3f, %.3f]", o.most, best,
                   r.least, r.median, r.most);
        printf("}");
    } else {
        printf("cpu-gemm: %-9s  %d thread%s  %4lld  kiln %6.1f GF/s  peak %3.0f %% of %6.1f", t->level->name,
               t->threads, t->threads > 1 ? "s" : " ", (long long)n, k.most, of_peak, p.most);
        if (t->openblas)
            printf("  OpenBLAS %6.1f GF/s  peak %3.0f %%  ratio %.2f (%.2f: %.2f to %.2f)", o.most,
                   100 * o.most / p.most, best, r.median, r.least, r.most);
        printf("\n");
    }
    fflush(stdout);
}

static void multiply_bf16(const bench *t, int64_t n, int32_t compute) {
    check(kiln_gemm_bf16(
        t->stream,
        &(kiln_gemm_params){
            .d = t->d, .a = t->a_bf16, .b = t->b_bf16, .batch = 1, .m = n, .n = n, .k = n, .compute = compute}));
}

static void multiply_dot(const bench *t, int64_t n) {
    multiply_bf16(t, n, KILN_GEMM_COMPUTE_DOT);
}

static void multiply_exact(const bench *t, int64_t n) {
    multiply_bf16(t, n, KILN_GEMM_COMPUTE_F32);
}

static void measure_bf16(const bench *t, int64_t n, bool json) {
    double dot[ROUNDS], exact[ROUNDS], ratio[ROUNDS], peak[ROUNDS];
    int repeats = 1 + (int)(LEAST_SECONDS * 1e11 / (2 * (double)n * (double)n * (double)n));
    for (int i = -1; i < ROUNDS; i++) { /* the first round is not counted */
        int place = i < 0 ? 0 : i;
        peak[place] = (amx_allowed() ? amx_peak() : peak_speed(t->level, t->level->dot_peak, 4)) * t->threads;
        dot[place] = speed(t, n, repeats, multiply_dot);
        exact[place] = speed(t, n, repeats, multiply_exact);
        ratio[place] = dot[place] / exact[place];
    }
    spread d = spread_of(dot, ROUNDS), e = spread_of(exact, ROUNDS), p = spread_of(peak, ROUNDS);
    spread r = spread_of(ratio, ROUNDS);
    printf(json ? "{\"level\": \"%s\", \"threads\": %d, \"size\": %lld, \"amx\": %s, \"dot_gflops\": %.1f, "
                  "\"percent_of_peak\": %.1f, \"peak_gflops\": %.1f, \"f32_arithmetic_gflops\": %.1f, \"ratio\": %.3f, "
                  "\"round_ratio\": [%.3f, %.3f, %.3f]}"
                : "cpu-gemm: %-9s  threads %d  %4lld  bf16 by %s %6.1f GF/s  peak %3.0f %% of %6.1f  by f32 "
                  "%6.1f GF/s  ratio %.2f (%.2f to %.2f to %.2f)\n",
           t->level->name, t->threads, (long long)n,
           json            ? amx_allowed() ? "true" : "false"
           : amx_allowed() ? "AMX"
                           : "dot products",
           d.most, 100 * d.most / p.most, p.most, e.most, d.most / e.most, r.least, r.median, r.most);
    fflush(stdout);
}

static const instruction_level *find_level(const char *name) {
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcmp(levels[i].name, name)) return &levels[i];
    return NULL;
}

/* All sizes on the CPU: without AMX, or what AMX does where it is allowed and there. */
static void measure_device(bench *t, const char *wanted, bool amx, bool json) {
    static openblas library;
    static const char *separator = "[\n";
    kiln_device *device;
    kiln_stream stream;
    kiln_device_info info;
    check(kiln_device_open(
        &(kiln_device_options){
            .backend = KILN_BACKEND_CPU, .cpu_level = wanted, .threads = t->threads, .allow_amx = amx},
        &device));
    check(kiln_stream_open(device, 0, &stream));
    check(kiln_device_get_info(device, &info));
    t->stream = &stream;
    t->level = find_level(info.target.processor);
    if (t->threads == 1 && !amx) {
        t->openblas = openblas_open(t->level, &library) ? &library : NULL;
        fprintf(stderr, "cpu-gemm: %s\n",
                t->openblas ? library.config() : "no libopenblas.so.0 here: no ratios (Debian: libopenblas0-pthread)");
    }
    if (t->openblas) library.set_threads(t->threads);
    const bool dot = t->level->dot_peak && (amx ? amx_allowed() : has_bf16());
    for (size_t i = 0; !amx && i < sizeof sizes / sizeof *sizes; i++, separator = ",\n") {
        if (json) printf("%s", separator);
        measure(t, sizes[i], json);
    }
    for (size_t i = 0; dot && i < sizeof sizes / sizeof *sizes; i++) {
        if (json) printf("%s", separator);
        measure_bf16(t, sizes[i], json);
    }
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

int main(int argc, char **argv) {
    bool json = argc > 1 && !strcmp(argv[1], "--json");
    const char *wanted = argc > 1 + json ? argv[1 + json] : NULL;
    if (argc > 2 + json || (wanted && !find_level(wanted))) {
        fprintf(stderr, "usage: cpu_gemm_bench [--json] [LEVEL]\n");
        return 2;
    }
    int most = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
    size_t count = (size_t)(sizes[sizeof sizes / sizeof *sizes - 1] * sizes[sizeof sizes / sizeof *sizes - 1]);
    bench t = {.a = random_matrix(1, count), .b = random_matrix(2, count)};
    t.d = random_matrix(3, count), t.expected = random_matrix(4, count);
    t.a_bf16 = as_bf16(t.a, count), t.b_bf16 = as_bf16(t.b, count);
    for (t.threads = 1; t.threads <= most; t.threads++)
        for (int amx = 0; amx < 2; amx++)
            measure_device(&t, wanted, amx, json);
    if (json) printf("\n]\n");
    free(t.a);
    free(t.b);
    free(t.d);
    free(t.expected);
    free(t.a_bf16);
    free(t.b_bf16);
    return 0;
}
