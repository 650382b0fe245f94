/* What memory gives to threads that do nothing but copy or read: the measure of operators that are bound by it. */
#ifndef KILN_TESTS_BENCH_BANDWIDTH_H
#define KILN_TESTS_BENCH_BANDWIDTH_H

#include <stddef.h>

/* Seconds that threads threads, each with its share, take with size bytes, as seconds() of rounds.h counts them. size
 * is a multiple of 4096 times threads, target and source are aligned to 64. */
double memcpy_time(char *target, const char *source, size_t size, int threads);

/* The best of memcpy and of the copies known here that write past the caches. */
double copy_time(char *target, const char *source, size_t size, int threads);

double read_time(const char *source, size_t size, int threads);

#endif
