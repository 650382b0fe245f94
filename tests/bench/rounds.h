/* What benches of two things that take turns have in common: clocks, and the middle and the ends of some figures. */
#ifndef KILN_TESTS_BENCH_ROUNDS_H
#define KILN_TESTS_BENCH_ROUNDS_H

#include <stdlib.h>
#include <time.h>

/* Seconds of processor time of all threads of the process. */
static inline double process_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds: of this thread's processor time if it alone works, which other programs hardly change; else of the clock. */
static inline double seconds(int threads) {
    struct timespec time;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

typedef struct spread {
    double least, median, most;
} spread;

static inline int compare_figures(const void *a, const void *b) {
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

/* Sorts the figures. */
static inline spread spread_of(double *figures, size_t count) {
    qsort(figures, count, sizeof *figures, compare_figures);
    return (spread){figures[0], figures[count / 2], figures[count - 1]};
}

#endif
