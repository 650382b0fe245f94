/* How near the CPU kernels come to their floors, at each level of this machine, on one thread and on two:
 *
 *   cpu_ops_bench [--json] [CASE]     CASE: only those whose names begin so
 *
 *   GB/s    bytes that the operator reads and writes on tensors of 64 MB, per second
 *   memcpy  the same, in percent of memcpy on 64 MB
 *   copy    the same, in percent of the best of memcpy and of two copies that write past the caches; or
 *   read    where next to nothing is written: in percent of the best of two loops that read 64 MB
 *   Gel/s   elements of a tensor per second and thread where all stay in the second-level cache: what arithmetic allows
 *   floor   milliseconds that the tensors of 64 MB take at best: what memory's bandwidth or the arithmetic asks for,
 *           whichever is more
 *   ratio   the floor in percent of the time taken
 *
 * The best of rounds in which the copies and the operator take turns on as many threads, so that other work on the
 * machine disturbs all alike. One thread is measured in its processor time, two by the clock. */
#include "tests/bench/bandwidth.h"
#include "tests/bench/cpu_ops_cases.h"
#include "tests/bench/rounds.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SMALL = 256 << 10, SMALL_REPEATS = 32, ROUNDS = 5 }; /* SMALL: bytes of all tensors of a case */

#if defined(__aarch64__)
static const char *const levels[] = {"aarch64"};
#else
static const char *const levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
#endif

static void check(kiln_status status) {
    if (status == KILN_OK) return;
    fprintf(stderr, "cpu_ops_bench: %s\n", kiln_last_error());
    exit(1);
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

/* A device of one level with so many threads. */
typedef struct place {
    kiln_device *device;
    kiln_stream stream;
    int threads;
} place;

/* false if this machine has no such level. */
static bool place_open(const char *level, int threads, place *out) {
    kiln_status status = kiln_device_open(
        &(kiln_device_options){.backend = KILN_BACKEND_CPU, .cpu_level = level, .threads = threads}, &out->device);
    if (status == KILN_ERROR_UNSUPPORTED) return false;
    check(status);
    check(kiln_stream_open(out->device, 0, &out->stream));
    out->threads = threads;
    return true;
}

static void place_close(place *p) {
    kiln_stream_close(&p->stream);
    kiln_device_close(p->device);
}

static double operator_time(operation run, place *p, const tensors *t, int64_t count, int repeats) {
    double start = seconds(p->threads);
    for (int i = 0; i < repeats; i++)
        check(run(&p->stream, t, count));
    return (seconds(p->threads) - start) / repeats;
}

/* The best of the rounds, in seconds. */
typedef struct times {
    double large, small, plain, memory;
} times;

/* Of each tensor, in whole rows. */
static int64_t small_elements(const bench_case *c) {
    return SMALL / (int64_t)(c->moved * c->size) / COLS * COLS;
}

/* What is small is not shared: one thread does it. A device is the CPU's only one while it is open, with the threads
 * that it was first opened with. */
static times measure(const char *level, int threads, const tensors *t, const bench_case *c) {
    times best = {1e9, 1e9, 1e9, 1e9};
    int64_t large_count = LARGE / (int64_t)c->size, small_count = small_elements(c);
    place p;
    place_open(level, threads, &p);
    for (int i = 0; i < ROUNDS; i++) {
        best.plain = shorter(best.plain, memcpy_time(t->y, t->a, LARGE, threads));
        best.memory =
            shorter(best.memory, c->reads ? read_time(t->a, LARGE, threads) : copy_time(t->y, t->a, LARGE, threads));
        best.large = shorter(best.large, operator_time(c->run, &p, t, large_count, 1));
    }
    place_close(&p);
    place_open(level, 1, &p);
    for (int i = 0; i < ROUNDS; i++)
        best.small = shorter(best.small, operator_time(c->run, &p, t, small_count, SMALL_REPEATS));
    place_close(&p);
    if (!c->reads) best.memory = shorter(best.memory, best.plain);
    return best;
}

static void report(const char *level, int threads, const bench_case *c, times best, bool json) {
    double moved = (double)LARGE * c->moved, bandwidth = moved / best.large * 1e-9;
    double throughput = (double)small_elements(c) / best.small;
    double memory_bandwidth = (c->reads ? 1.0 : 2.0) * LARGE / best.memory * 1e-9;
    double of_memory = 100 * bandwidth / memory_bandwidth;
    double of_memcpy = 100 * bandwidth / (2.0 * LARGE / best.plain * 1e-9);
    double memory_floor = moved / memory_bandwidth * 1e-9;
    double arithmetic_floor = LARGE / (double)c->size / throughput / threads;
    bool memory = memory_floor > arithmetic_floor;
    double floor = memory ? memory_floor : arithmetic_floor;
    const char *bound = memory ? "memory" : "arithmetic", *against = c->reads ? "read" : "copy";
    if (json)
        printf("{\"level\": \"%s\", \"threads\": %d, \"case\": \"%s\", \"against\": \"%s\", "
               "\"memory_gb_per_second\": %.2f, \"gb_per_second\": %.2f, \"percent_of_memory\": %.1f, "
               "\"percent_of_memcpy\": %.1f, \"in_cache_elements_per_second\": %.4g, \"milliseconds\": %.3f, "
               "\"floor_milliseconds\": %.3f, \"floor_of\": \"%s\", \"percent_of_floor\": %.1f}",
               level, threads, c->name, against, memory_bandwidth, bandwidth, of_memory, of_memcpy, throughput,
               best.large * 1e3, floor * 1e3, bound, 100 * floor / best.large);
    else
        printf("cpu-ops: %-9s  %d thread%s  %-21s %5.1f GB/s  memcpy %3.0f %%  %s %3.0f %% of %4.1f GB/s  "
               "in cache %5.2f Gel/s  floor %6.2f ms by %-10s  ratio %3.0f %%\n",
               level, threads, threads > 1 ? "s" : " ", c->name, bandwidth, of_memcpy, against, of_memory,
               memory_bandwidth, throughput * 1e-9, floor * 1e3, bound, 100 * floor / best.large);
    fflush(stdout);
}

int main(int argc, char **argv) {
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *wanted = argc > 1 + json ? argv[1 + json] : "", *separator = "[\n";
    if (argc > 2 + json) {
        fprintf(stderr, "usage: cpu_ops_bench [--json] [CASE]\n");
        return 2;
    }
    static tensors t;
    t.y = random_tensor(1), t.sum = random_tensor(2);
    t.a = random_tensor(3), t.b = random_tensor(4), t.c = random_tensor(5);
    for (int32_t i = 0; i < ROWS; i++)
        t.numbers[i] = i;
    check(kiln_rope_frequencies(10000, NULL, PAIRS, t.frequencies));
    int most = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        place p;
        if (!place_open(levels[i], 1, &p)) {
            fprintf(stderr, "cpu-ops: %-9s  not on this machine\n", levels[i]);
            continue;
        }
        place_close(&p);
        for (size_t j = 0; j < sizeof cases / sizeof *cases; j++) {
            if (strncmp(cases[j].name, wanted, strlen(wanted)) != 0) continue;
            for (int threads = 1; threads <= most; threads++) {
                if (json) printf("%s", separator);
                separator = ",\n";
                report(levels[i], threads, &cases[j], measure(levels[i], threads, &t, &cases[j]), json);
            }
        }
    }
    if (json) printf("\n]\n");
    free(t.y);
    free(t.sum);
    free(t.a);
    free((void *)t.b);
    free((void *)t.c);
    return 0;
}
