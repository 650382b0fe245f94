/* Times of an operation on a device. */
#ifndef KILN_CLI_MEASURE_H
#define KILN_CLI_MEASURE_H

#include "loader/cli/cli.h"

/* Enqueues the operation once. */
typedef kiln_status (*measured_operation)(void *user, kiln_stream *stream);

/* Nanoseconds of a call on the device. A run is of several calls if they are short, from an event before to an event
 * behind. */
typedef struct measurement {
    unsigned runs;
    unsigned calls; /* of each run */
    double median;
    double low, high; /* a tenth of the runs is faster than low, a tenth slower than high */
} measurement;

/* What the runs of an operation take together, by default. */
#define MEASURED_NANOSECONDS 0.5e9

/* Runs the operation to warm up, then ten times and as often as fit in so many nanoseconds, 500 times at most. The
 * stream must be open with KILN_STREAM_TIMING. */
kiln_status measure(kiln_stream *stream, measured_operation operation, void *user, double nanoseconds,
                    measurement *out_measurement);

/* Measures copies of size bytes on the device; a copy of n bytes moves 2 n. Gives bytes per second in *out_bandwidth.
 */
kiln_status measure_copy(kiln_stream *stream, size_t size, double nanoseconds, double *out_bandwidth);

#endif
