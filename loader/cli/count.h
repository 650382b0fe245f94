/* Counters of calls on a simulated device. Only simulated drivers (docs/simulators.md) have the functions for this. */
#ifndef KILN_CLI_COUNT_H
#define KILN_CLI_COUNT_H

#include "loader/cli/measure.h"

/* The counters that are shown, by their names in the simulated drivers. */
#define COUNTERS(X)         \
    X(instructions)         \
    X(lane_instructions)    \
    X(global_read_bytes)    \
    X(global_written_bytes) \
    X(global_requests)      \
    X(global_sectors)       \
    X(shared_requests)      \
    X(shared_conflicts)     \
    X(branches)             \
    X(divergent_branches)   \
    X(barriers)             \
    X(matrix_instructions)

/* Sums over the launches of one call. */
typedef struct counts {
    uint64_t launches;
#define COUNTS_FIELD(name) uint64_t name;
    COUNTERS(COUNTS_FIELD)
#undef COUNTS_FIELD
} counts;

/* The driver's functions. */
typedef struct counting {
    uint64_t (*launches)(void);
    int (*counter)(uint64_t launch, const char *name, uint64_t *out_value);
} counting;

/* Whether the device is simulated; if so, sets *out_counting to its driver's functions. */
bool counting_find(const kiln_device_info *info, counting *out_counting);

/* Runs the operation once, waits for it, and sums the counters of its launches. */
kiln_status count_call(const counting *from, kiln_stream *stream, measured_operation operation, void *user,
                       counts *out_counts);

#endif
