/* How near the CPU kernels come to their floors, at each level of this machine, on one thread:
 *
 *   cpu_ops_bench [--json] [CASE]     CASE: only those whose names begin so
 *
 *   GB/s    bytes that the operator reads and writes on tensors of 64 MB, per second
 *   memcpy  the same, in percent of memcpy on 64 MB
 *   copy    the same, in percent of the best of memcpy and of two copies that write past the caches
 *   Gel/s   elements per second on tensors that stay in the second-level cache: what its arithmetic allows
 *   floor   milliseconds that the tensors of 64 MB take at best: what the copy's bandwidth or the arithmetic asks for,
 *           whichever is more
 *   ratio   the floor in percent of the time taken
 *
 * Times are the thread's processor time, the best of rounds in which the copies and the operator take turns, so that
 * other work on the machine disturbs them little and all alike. */
#include <kiln/ops.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    LARGE = 64 << 20,
    SMALL = 64 << 10,
    COLS = 4096,
    PAIRS = 64, /* of a head that is turned */
    TOKENS = LARGE / 2 / COLS,
    SMALL_REPEATS = 32,
    ROUNDS = 5
};

#if defined(__aarch64__)
static const char *const levels[] = {"aarch64"};
#else
static const char *const levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
#endif

/* ---- Copies of LARGE bytes ---- */

static void copy_plain(char *target, const char *source) {
    memcpy(target, source, LARGE);
}

#if defined(__x86_64__)
static void copy_streaming(char *target, const char *source) {
    for (size_t i = 0; i < LARGE; i += 16)
        _mm_stream_si128((void *)(target + i), _mm_load_si128((const void *)(source + i)));
    _mm_sfence();
}

__attribute__((target("avx512f"))) static void copy_streaming_lines(char *target, const char *source) {
    for (size_t i = 0; i < LARGE; i += 64) {
        _mm_prefetch(source + i + 4096, _MM_HINT_T0);
        _mm512_stream_si512((void *)(target + i), _mm512_load_si512((const void *)(source + i)));
    }
    _mm_sfence();
}
#endif

/* ---- The cases ---- */

typedef struct tensors {
    void *y, *sum;
    const void *a, *b, *c;
    int32_t positions[TOKENS];
    int64_t frequencies[PAIRS];
} tensors;

typedef kiln_status (*operation)(kiln_stream *stream, const tensors *t, int64_t count);

#define MUL_ADD(part)                                                                                    \
    static kiln_status mul_add_##part(kiln_stream *stream, const tensors *t, int64_t count) {            \
        return kiln_mul_add_##part(                                                                      \
            stream, &(kiln_mul_add_params){.y = t->y, .a = t->a, .b = t->b, .c = t->c, .count = count}); \
    }
#define ADD_GELU(part, form, number)                                                                                \
    static kiln_status add_gelu_##form##_##part(kiln_stream *stream, const tensors *t, int64_t count) {             \
        return kiln_add_gelu_##part(                                                                                \
            stream, &(kiln_add_gelu_params){                                                                        \
                        .y = t->y, .x = t->a, .bias = t->b, .rows = count / COLS, .cols = COLS, .approx = number}); \
    }
#define SILU_MUL(part)                                                                                                 \
    static kiln_status silu_mul_##part(kiln_stream *stream, const tensors *t, int64_t count) {                         \
        return kiln_silu_mul_##part(                                                                                   \
            stream, &(kiln_silu_mul_params){.y = t->y, .gate = t->a, .up = t->b, .rows = count / COLS, .cols = COLS}); \
    }
#define SOFTMAX(part)                                                                                                 \
    static kiln_status softmax_##part(kiln_stream *stream, const tensors *t, int64_t count) {                         \
        return kiln_softmax_##part(stream,                                                                            \
                                   &(kiln_softmax_params){.y = t->y, .x = t->a, .rows = count / COLS, .cols = COLS}); \
    }
#define RMSNORM(part)                                                                                             \
    static kiln_status rmsnorm_##part(kiln_stream *stream, const tensors *t, int64_t count) {                     \
        return kiln_rmsnorm_##part(                                                                               \
            stream, &(kiln_rmsnorm_params){                                                                       \
                        .y = t->y, .x = t->a, .weight = t->b, .rows = count / COLS, .cols = COLS, .eps = 1e-5f}); \
    }
#define ADD_RMSNORM(part)                                                                         \
    static kiln_status add_rmsnorm_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_add_rmsnorm_##part(stream, &(kiln_add_rmsnorm_params){.y = t->y,              \
                                                                          .sum = t->sum,          \
                                                                          .x = t->a,              \
                                                                          .residual = t->b,       \
                                                                          .weight = t->c,         \
                                                                          .rows = count / COLS,   \
                                                                          .cols = COLS,           \
                                                                          .eps = 1e-5f});         \
    }
#define ROPE(part, form, number)                                                                    \
    static kiln_status rope_##form##_##part(kiln_stream *stream, const tensors *t, int64_t count) { \
        return kiln_rope_##part(stream, &(kiln_rope_params){.y = t->y,                              \
                                                            .x = t->a,                              \
                                                            .positions = t->positions,              \
                                                            .frequencies = t->frequencies,          \
                                                            .tokens = count / COLS,                 \
                                                            .heads = COLS / (2 * PAIRS),            \
                                                            .pairs = PAIRS,                         \
                                                            .layout = number});                     \
    }
#define CASES_OF(part)                             \
    MUL_ADD(part)                                  \
    ADD_GELU(part, erf, KILN_GELU_ERF)             \
    ADD_GELU(part, tanh, KILN_GELU_TANH)           \
    ADD_GELU(part, quick, KILN_GELU_QUICK)         \
    SILU_MUL(part)                                 \
    SOFTMAX(part)                                  \
    RMSNORM(part)                                  \
    ADD_RMSNORM(part)                              \
    ROPE(part, interleaved, KILN_ROPE_INTERLEAVED) \
    ROPE(part, half, KILN_ROPE_HALF)
CASES_OF(f32)
CASES_OF(f16)
CASES_OF(bf16)

typedef struct bench_case {
    const char *name;
    operation run;
    size_t size;    /* of an element */
    unsigned moved; /* tensors read and written */
} bench_case;

#define CASES(part, size)                                                                                       \
    {"mul_add " #part, mul_add_##part, size, 4}, {"softmax " #part, softmax_##part, size, 2},                   \
        {"silu_mul " #part, silu_mul_##part, size, 3}, {"add_gelu tanh " #part, add_gelu_tanh_##part, size, 2}, \
        {"add_gelu quick " #part, add_gelu_quick_##part, size, 2},                                              \
        {"add_gelu erf " #part, add_gelu_erf_##part, size, 2}, {"rmsnorm " #part, rmsnorm_##part, size, 2},     \
        {"add_rmsnorm " #part, add_rmsnorm_##part, size, 4},                                                    \
        {"rope interleaved " #part, rope_interleaved_##part, size, 2},                                          \
        {"rope half " #part, rope_half_##part, size, 2},
static const bench_case cases[] = {CASES(f32, 4) CASES(f16, 2) CASES(bf16, 2)};

/* ---- Measuring ---- */

static void check(kiln_status status) {
    if (status == KILN_OK) return;
    fprintf(stderr, "cpu_ops_bench: %s\n", kiln_last_error());
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double shorter(double a, double b) {
    return a < b ? a : b;
}

/* Every part reads these bytes as numbers of ordinary size: random mantissas, exponents near 0 in f16 and bf16 alike.
 */
static void *random_tensor(uint32_t seed) {
    uint16_t *tensor = aligned_alloc(4096, LARGE);
    if (!tensor) exit(1);
    for (size_t i = 0; i < LARGE / 2; i++) {
        seed = seed * 1664525 + 1013904223;
        tensor[i] = (uint16_t)(0x3c00u | (seed >> 16 & 0x83ffu));
    }
    return tensor;
}

static double operator_time(operation run, kiln_stream *stream, const tensors *t, int64_t count, int repeats) {
    double start = now();
    for (int i = 0; i < repeats; i++)
        check(run(stream, t, count));
    return (now() - start) / repeats;
}

static double copy_time(void (*copy)(char *target, const char *source), const tensors *t) {
    double start = now();
    copy(t->y, t->a);
    return now() - start;
}

static double streaming_copy_time(const tensors *t) {
#if defined(__x86_64__)
    double seconds = copy_time(copy_streaming, t);
    return __builtin_cpu_supports("avx512f") ? shorter(seconds, copy_time(copy_streaming_lines, t)) : seconds;
#else
    return copy_time(copy_plain, t);
#endif
}

static void bench(kiln_stream *stream, const char *level, const tensors *t, const bench_case *c, bool json) {
    double large = 1e9, small = 1e9, plain = 1e9, copy = 1e9;
    int64_t large_count = LARGE / (int64_t)c->size, small_count = SMALL / (int64_t)c->size;
    for (int i = 0; i < ROUNDS; i++) {
        plain = shorter(plain, copy_time(copy_plain, t));
        copy = shorter(copy, shorter(plain, streaming_copy_time(t)));
        large = shorter(large, operator_time(c->run, stream, t, large_count, 1));
        small = shorter(small, operator_time(c->run, stream, t, small_count, SMALL_REPEATS));
    }
    double moved = (double)LARGE * c->moved, bandwidth = moved / large * 1e-9, throughput = (double)small_count / small;
    double copy_bandwidth = 2.0 * LARGE / copy * 1e-9, of_copy = 100 * bandwidth / copy_bandwidth;
    double of_memcpy = of_copy * plain / copy;
    double memory_floor = moved / copy_bandwidth * 1e-9, arithmetic_floor = (double)large_count / throughput;
    bool memory = memory_floor > arithmetic_floor;
    double floor = memory ? memory_floor : arithmetic_floor;
    const char *bound = memory ? "memory" : "arithmetic";
    if (json)
        printf("{\"level\": \"%s\", \"case\": \"%s\", \"copy_gb_per_second\": %.2f, \"gb_per_second\": %.2f, "
               "\"percent_of_copy\": %.1f, \"percent_of_memcpy\": %.1f, \"in_cache_elements_per_second\": %.4g, "
               "\"milliseconds\": %.3f, \"floor_milliseconds\": %.3f, \"floor_of\": \"%s\", "
               "\"percent_of_floor\": %.1f}",
               level, c->name, copy_bandwidth, bandwidth, of_copy, of_memcpy, throughput, large * 1e3, floor * 1e3,
               bound, 100 * floor / large);
    else
        printf("cpu-ops: %-9s  %-21s %5.1f GB/s  memcpy %3.0f %%  copy %3.0f %% of %4.1f GB/s  in cache %5.2f Gel/s  "
               "floor %6.2f ms by %-10s  ratio %3.0f %%\n",
               level, c->name, bandwidth, of_memcpy, of_copy, copy_bandwidth, throughput * 1e-9, floor * 1e3, bound,
               100 * floor / large);
    fflush(stdout);
}

int main(int argc, char **argv) {
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *wanted = argc > 1 + json ? argv[1 + json] : "";
    if (argc > 2 + json) {
        fprintf(stderr, "usage: cpu_ops_bench [--json] [CASE]\n");
        return 2;
    }
    static tensors t;
    t.y = random_tensor(1), t.sum = random_tensor(2);
    t.a = random_tensor(3), t.b = random_tensor(4), t.c = random_tensor(5);
    for (int32_t i = 0; i < TOKENS; i++)
        t.positions[i] = i;
    check(kiln_rope_frequencies(10000, NULL, PAIRS, t.frequencies));
    const char *separator = "[\n";
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        kiln_device *device;
        kiln_status status = kiln_device_open(
            &(kiln_device_options){.backend = KILN_CPU, .cpu_level = levels[i], .threads = 1}, &device);
        if (status == KILN_ERROR_UNSUPPORTED) {
            fprintf(stderr, "cpu-ops: %-9s  not on this machine\n", levels[i]);
            continue;
        }
        check(status);
        kiln_stream stream;
        check(kiln_stream_open(device, 0, &stream));
        for (size_t j = 0; j < sizeof cases / sizeof *cases; j++) {
            if (strncmp(cases[j].name, wanted, strlen(wanted)) != 0) continue;
            if (json) printf("%s", separator);
            separator = ",\n";
            bench(&stream, levels[i], &t, &cases[j], json);
        }
        kiln_stream_close(&stream);
        kiln_device_close(device);
    }
    if (json) printf("\n]\n");
    free(t.y);
    free(t.sum);
    free((void *)t.a);
    free((void *)t.b);
    free((void *)t.c);
    return 0;
}
