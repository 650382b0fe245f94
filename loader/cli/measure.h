/* Timing an operation on a device. */
#ifndef KILN_CLI_MEASURE_H
#define KILN_CLI_MEASURE_H

#include "loader/cli/cli.h"

/* Enqueues the operation once. */
typedef kiln_status (*measured_operation)(void *user, kiln_stream *stream);

/* Device time of a call in nanoseconds. A run, timed between two events, has several calls if they are short. */
typedef struct measurement {
    unsigned runs;
    unsigned calls; /* per run */
    double median;
    double low, high; /* 10th and 90th percentiles of the runs */
} measurement;

/* The default total time of an operation's runs. */
#define MEASURED_NANOSECONDS 0.5e9

/* Warms up, then runs the operation at least ten times and as often as fits in nanoseconds, but at most 500 times. The
 * stream must be open with KILN_STREAM_TIMING. */
kiln_status measure(kiln_stream *stream, measured_operation operation, void *user, double nanoseconds,
                    measurement *out_measurement);

/* Measures copies of size bytes within the device. *out_bandwidth is in bytes per second, reads and writes both
 * counted. */
kiln_status measure_copy(kiln_stream *stream, size_t size, double nanoseconds, double *out_bandwidth);

#endif
