#include "tests/bench/bandwidth.h"
#include "tests/bench/rounds.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { THREADS_MOST = 2, PREFETCH_BYTES = 4096 };

/* What it returns is of no use but that the compiler must do the work. */
typedef uint64_t loop(char *target, const char *source, size_t size);

/* ---- Loops over a share ---- */

static uint64_t copy_plain(char *target, const char *source, size_t size) {
    memcpy(target, source, size);
    return 0;
}

static uint64_t read_plain(char *target, const char *source, size_t size) {
    uint64_t lanes[8] = {0};
    for (size_t i = 0; i < size; i += sizeof lanes)
        for (size_t lane = 0; lane < 8; lane++) {
            uint64_t word;
            memcpy(&word, source + i + 8 * lane, sizeof word);
            lanes[lane] += word;
        }
    (void)target;
    for (size_t lane = 1; lane < 8; lane++)
        lanes[0] += lanes[lane];
    return lanes[0];
}

#if defined(__x86_64__)
static uint64_t copy_streaming(char *target, const char *source, size_t size) {
    for (size_t i = 0; i < size; i += 16)
        _mm_stream_si128((void *)(target + i), _mm_load_si128((const void *)(source + i)));
    _mm_sfence();
    return 0;
}

__attribute__((target("avx512f"))) static uint64_t copy_streaming_lines(char *target, const char *source, size_t size) {
    for (size_t i = 0; i < size; i += 64) {
        _mm_prefetch(source + i + PREFETCH_BYTES, _MM_HINT_T0);
        _mm512_stream_si512((void *)(target + i), _mm512_load_si512((const void *)(source + i)));
    }
    _mm_sfence();
    return 0;
}

__attribute__((target("avx512f"))) static uint64_t read_lines(char *target, const char *source, size_t size) {
    __m512i sum = _mm512_setzero_si512();
    for (size_t i = 0; i < size; i += 64) {
        _mm_prefetch(source + i + PREFETCH_BYTES, _MM_HINT_T0);
        sum = _mm512_add_epi64(sum, _mm512_load_si512((const void *)(source + i)));
    }
    (void)target;
    return (uint64_t)_mm512_reduce_add_epi64(sum);
}
#endif

/* ---- Threads ---- */

typedef struct share {
    loop *run;
    char *target;
    const char *source;
    size_t size;
    int threads;
    pthread_barrier_t *together;
    double begin, end;
    uint64_t result;
} share;

static void *run_share(void *argument) {
    share *s = argument;
    pthread_barrier_wait(s->together);
    s->begin = seconds(s->threads);
    s->result = s->run(s->target, s->source, s->size);
    s->end = seconds(s->threads);
    return NULL;
}

/* From the first's begin to the last's end. */
static double loop_time(loop *run, char *target, const char *source, size_t size, int threads) {
    pthread_t others[THREADS_MOST];
    pthread_barrier_t together;
    share shares[THREADS_MOST] = {{.run = run,
                                   .target = target,
                                   .source = source,
                                   .size = size / (size_t)threads,
                                   .threads = threads,
                                   .together = &together}};
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (int i = 1; i < threads; i++) {
        shares[i] = shares[i - 1];
        shares[i].source += shares[i].size;
        if (target) shares[i].target += shares[i].size;
        if (pthread_create(&others[i], NULL, run_share, &shares[i]) != 0) {
            fprintf(stderr, "bandwidth: no thread\n");
            exit(1);
        }
    }
    run_share(&shares[0]);
    double begin = shares[0].begin, end = shares[0].end;
    for (int i = 1; i < threads; i++) {
        pthread_join(others[i], NULL);
        if (shares[i].begin < begin) begin = shares[i].begin;
        if (shares[i].end > end) end = shares[i].end;
    }
    pthread_barrier_destroy(&together);
    return end - begin;
}

static double best_time(loop *const *loops, size_t count, char *target, const char *source, size_t size, int threads) {
    double best = loop_time(loops[0], target, source, size, threads);
    for (size_t i = 1; i < count; i++) {
        double time = loop_time(loops[i], target, source, size, threads);
        if (time < best) best = time;
    }
    return best;
}

/* Those that this machine can run come first. */
static size_t loops_here(size_t count) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? count : count - 1;
#else
    return count;
#endif
}

double memcpy_time(char *target, const char *source, size_t size, int threads) {
    return loop_time(copy_plain, target, source, size, threads);
}

double copy_time(char *target, const char *source, size_t size, int threads) {
#if defined(__x86_64__)
    static loop *const loops[] = {copy_plain, copy_streaming, copy_streaming_lines};
#else
    static loop *const loops[] = {copy_plain};
#endif
    return best_time(loops, loops_here(sizeof loops / sizeof *loops), target, source, size, threads);
}

double read_time(const char *source, size_t size, int threads) {
#if defined(__x86_64__)
    static loop *const loops[] = {read_plain, read_lines};
#else
    static loop *const loops[] = {read_plain};
#endif
    return best_time(loops, loops_here(sizeof loops / sizeof *loops), NULL, source, size, threads);
}
