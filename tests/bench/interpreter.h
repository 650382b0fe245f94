/* What the benches of the interpreters have in common: the memory of a loop, and how fast a launch is interpreted. */
#ifndef KILN_TESTS_BENCH_INTERPRETER_H
#define KILN_TESTS_BENCH_INTERPRETER_H

#include "tests/bench/rounds.h"
#include "tests/sim/core/sim_space.h"
#include <stdio.h>

enum { MEMORY_BYTES = 4096 };

static _Alignas(64) uint8_t memory[MEMORY_BYTES];
static uint8_t written[MEMORY_BYTES / 8]; /* a bit for each byte of it */

static inline bool memory_find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){(uintptr_t)memory, sizeof memory, written, false};
    return address - (uintptr_t)memory < sizeof memory;
}

/* Million lane-instructions a second of the best of five runs; 0, with a message, if one fails. */
static inline double interpreter_speed(bool (*run)(const void *launch, sim_counters *counters, sim_report *report),
                                       const void *launch) {
    enum { RUNS = 5 };
    double best = 0;
    for (int i = 0; i < RUNS; i++) {
        sim_counters counters = {0};
        sim_report report;
        double start = seconds(1);
        if (!run(launch, &counters, &report)) {
            fprintf(stderr, "%s\n", report.text);
            return 0;
        }
        double rate = (double)counters.lane_instructions / (seconds(1) - start) / 1e6;
        if (rate > best) best = rate;
    }
    return best;
}

#endif
