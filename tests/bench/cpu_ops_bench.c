/* How near the CPU kernels come to their floors, at each level of this machine: ratios taken in one run, medians of
 * rounds in which a copy and the operator take turns.
 *
 *   copy   bytes moved per second by the operator on tensors of 64 MB, over those of a copy of 64 MB by the same
 * threads (the better of memcpy and of non-temporal stores): what bounds an operator that only moves memory cache
 * elements per second on tensors of 64 MB, over those on tensors that stay in the cache: what bounds an operator that
 * has more arithmetic than the memory leaves time for */
#include <kiln/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { LARGE = 64 << 20, SMALL = 64 << 10, COLS = 4096, GROUP_BYTES = 1 << 16, ROUNDS = 9 };

/* ---- A copy, as a user's own CPU kernels, so that it runs on the same threads ---- */

typedef struct copy_arguments {
    char *target;
    const char *source;
} copy_arguments;

static void copy_plain(const void *arguments, const kiln_cpu_span *span) {
    const copy_arguments *copy = arguments;
    for (uint64_t i = span->begin; i < span->end; i++)
        memcpy(copy->target + i * GROUP_BYTES, copy->source + i * GROUP_BYTES, GROUP_BYTES);
}

static void copy_streaming(const void *arguments, const kiln_cpu_span *span) {
#if defined(__SSE2__)
    const copy_arguments *copy = arguments;
    for (uint64_t i = span->begin * GROUP_BYTES; i < span->end * GROUP_BYTES; i += 16)
        _mm_stream_si128((__m128i *)(void *)(copy->target + i),
                         _mm_load_si128((const __m128i *)(const void *)(copy->source + i)));
    _mm_sfence();
#else
    copy_plain(arguments, span);
#endif
}

#if defined(__aarch64__)
static const char *const levels[] = {"aarch64"};
#else
static const char *const levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
#endif

static const char *const copy_names[] = {"plain", "streaming"};
static const kiln_kernel_info copy_kernels[] = {
    {.name = "plain", .arguments_size = sizeof(copy_arguments), .function = copy_plain},
    {.name = "streaming", .arguments_size = sizeof(copy_arguments), .function = copy_streaming},
};

/* ---- The cases ---- */

typedef struct tensors {
    void *y;
    const void *a, *b, *c;
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
#define CASES_OF(part)                     \
    MUL_ADD(part)                          \
    ADD_GELU(part, erf, KILN_GELU_ERF)     \
    ADD_GELU(part, tanh, KILN_GELU_TANH)   \
    ADD_GELU(part, quick, KILN_GELU_QUICK) \
    SILU_MUL(part)                         \
    SOFTMAX(part)
CASES_OF(f32)
CASES_OF(f16)
CASES_OF(bf16)

/* goal: percent of the copy, or of the throughput in cache, at the machine's best level; 0: none of its own. */
typedef struct bench_case {
    const char *name;
    operation run;
    size_t size;    /* of an element */
    unsigned moved; /* tensors read and written */
    unsigned copy_goal;
    unsigned cache_goal;
} bench_case;

static const bench_case cases[] = {
    {"mul_add f32", mul_add_f32, 4, 4, 80, 0},
    {"softmax f32", softmax_f32, 4, 2, 80, 0},
    {"silu_mul f32", silu_mul_f32, 4, 3, 60, 0},
    {"add_gelu tanh f32", add_gelu_tanh_f32, 4, 2, 60, 0},
    {"add_gelu quick f32", add_gelu_quick_f32, 4, 2, 60, 0},
    {"add_gelu erf f32", add_gelu_erf_f32, 4, 2, 0, 80},
    {"mul_add f16", mul_add_f16, 2, 4, 0, 80},
    {"softmax f16", softmax_f16, 2, 2, 0, 80},
    {"silu_mul f16", silu_mul_f16, 2, 3, 0, 80},
    {"add_gelu tanh f16", add_gelu_tanh_f16, 2, 2, 0, 80},
    {"add_gelu quick f16", add_gelu_quick_f16, 2, 2, 0, 80},
    {"add_gelu erf f16", add_gelu_erf_f16, 2, 2, 0, 80},
    {"mul_add bf16", mul_add_bf16, 2, 4, 0, 80},
    {"softmax bf16", softmax_bf16, 2, 2, 0, 80},
    {"silu_mul bf16", silu_mul_bf16, 2, 3, 0, 80},
    {"add_gelu tanh bf16", add_gelu_tanh_bf16, 2, 2, 0, 80},
    {"add_gelu quick bf16", add_gelu_quick_bf16, 2, 2, 0, 80},
    {"add_gelu erf bf16", add_gelu_erf_bf16, 2, 2, 0, 80},
};

/* ---- Measuring ---- */

static void check(kiln_status status) {
    if (status == KILN_OK) return;
    fprintf(stderr, "cpu_ops_bench: %s\n", kiln_last_error());
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times) {
    qsort(times, ROUNDS, sizeof *times, ascending);
    return times[ROUNDS / 2];
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

static double time_of(operation run, kiln_stream *stream, const tensors *t, int64_t count, int repeats) {
    double start = now();
    for (int i = 0; i < repeats; i++)
        check(run(stream, t, count));
    return (now() - start) / repeats;
}

static double copy_time(kiln_stream *stream, const kiln_module *module, const tensors *t) {
    double best = 1e9;
    for (size_t i = 0; i < 2; i++) {
        const kiln_kernel *kernel;
        check(kiln_module_find_kernel(module, copy_names[i], &kernel));
        copy_arguments arguments = {t->y, t->a};
        kiln_launch_config config = {.grid = {LARGE / GROUP_BYTES}};
        double start = now();
        check(kiln_launch(stream, kernel, &config, &arguments, sizeof arguments));
        double seconds = now() - start;
        if (seconds < best) best = seconds;
    }
    return best;
}

static void bench(kiln_stream *stream, const char *level, const kiln_module *copy, const tensors *t,
                  const bench_case *c) {
    double large[ROUNDS], small[ROUNDS], copies[ROUNDS];
    int64_t large_count = LARGE / (int64_t)c->size, small_count = SMALL / (int64_t)c->size;
    time_of(c->run, stream, t, large_count, 1);
    for (int i = 0; i < ROUNDS; i++) {
        copies[i] = copy_time(stream, copy, t);
        large[i] = time_of(c->run, stream, t, large_count, 1);
        small[i] = time_of(c->run, stream, t, small_count, 100);
    }
    double seconds = median(large), moved = (double)LARGE * c->moved;
    double of_copy = 100 * moved / seconds / (2.0 * LARGE / median(copies));
    double of_cache = 100 * median(small) * (LARGE / SMALL) / seconds;
    printf("cpu-ops: %-9s  %-20s %6.1f GB/s  copy %4.0f %%  cache %4.0f %%", level, c->name, moved / seconds * 1e-9,
           of_copy, of_cache);
    if (c->copy_goal) printf("  (goal: copy %u %%)", c->copy_goal);
    if (c->cache_goal) printf("  (goal: cache %u %%)", c->cache_goal);
    printf("\n");
    fflush(stdout);
}

int main(void) {
    tensors t = {random_tensor(1), random_tensor(2), random_tensor(3), random_tensor(4)};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        kiln_device *device;
        kiln_status status = kiln_device_open(
            &(kiln_device_options){.backend = KILN_CPU, .cpu_level = levels[i], .threads = 0}, &device);
        if (status == KILN_ERROR_UNSUPPORTED) {
            printf("cpu-ops: %-9s  not on this machine\n", levels[i]);
            continue;
        }
        check(status);
        kiln_image image = {.target = levels[0],
                            .kind = KILN_IMAGE_CPU,
                            .kernel_size = sizeof(kiln_kernel_info),
                            .kernels = copy_kernels};
        kiln_part part = {.name = "bytes",
                          .images = &image,
                          .kernel_names = copy_names,
                          .image_count = 1,
                          .image_size = sizeof image,
                          .kernel_count = 2};
        kiln_bundle bundle = {
            .version = KILN_BUNDLE_VERSION, .part_size = sizeof part, .name = "copy", .parts = &part, .part_count = 1};
        const kiln_module *copy;
        kiln_stream stream;
        check(kiln_module_get(device, &bundle, "bytes", &copy));
        check(kiln_stream_open(device, 0, &stream));
        for (size_t j = 0; j < sizeof cases / sizeof *cases; j++)
            bench(&stream, levels[i], copy, &t, &cases[j]);
        kiln_stream_close(&stream);
        kiln_device_close(device);
    }
    free(t.y);
    free((void *)t.a);
    free((void *)t.b);
    free((void *)t.c);
    return 0;
}
