#include "loader/cli/measure.h"

enum { WARM_UP = 3, RUNS_LEAST = 10, RUNS_MOST = 500, CALLS_MOST = 64 };
static const double one_run = 0.25e6; /* nanoseconds of a run at least: what an event takes is no part of that */

/* Gives the nanoseconds of one call, of as many between two events. */
static kiln_status run_once(kiln_stream *stream, kiln_event *start, kiln_event *end, measured_operation operation,
                            void *user, unsigned calls, double *out_nanoseconds) {
    kiln_status status = kiln_event_record(start, stream);
    for (unsigned i = 0; i < calls && status == KILN_OK; i++)
        status = operation(user, stream);
    if (status == KILN_OK) status = kiln_event_record(end, stream);
    if (status == KILN_OK) status = kiln_event_sync(end);
    if (status == KILN_OK) status = kiln_event_elapsed(start, end, out_nanoseconds);
    *out_nanoseconds /= calls;
    return status;
}

static unsigned calls_of_a_run(double nanoseconds) {
    return nanoseconds * (double)CALLS_MOST <= one_run ? CALLS_MOST : 1 + (unsigned)(one_run / nanoseconds);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(double *times, unsigned runs, unsigned calls, measurement *out) {
    qsort(times, runs, sizeof *times, compare);
    *out = (measurement){.runs = runs,
                         .calls = calls,
                         .median = (times[(runs - 1) / 2] + times[runs / 2]) / 2,
                         .low = times[runs / 10],
                         .high = times[runs - 1 - runs / 10]};
}

kiln_status measure(kiln_stream *stream, measured_operation operation, void *user, double nanoseconds,
                    measurement *out_measurement) {
    static double times[RUNS_MOST];
    kiln_event *start, *end = NULL;
    double total = 0;
    unsigned runs = 0, calls = 1;
    *out_measurement = (measurement){0};
    kiln_status status = kiln_event_create(stream->device, 0, &start);
    if (status == KILN_OK) status = kiln_event_create(stream->device, 0, &end);
    for (int i = 0; i < WARM_UP && status == KILN_OK; i++)
        status = run_once(stream, start, end, operation, user, 1, &times[0]);
    if (status == KILN_OK) calls = calls_of_a_run(times[0]);
    while (status == KILN_OK && runs < RUNS_MOST && (runs < RUNS_LEAST || total < nanoseconds)) {
        status = run_once(stream, start, end, operation, user, calls, &times[runs]);
        total += calls * times[runs++];
    }
    if (status == KILN_OK) summarise(times, runs, calls, out_measurement);
    kiln_stream_sync(stream); /* after a failure too: the caller frees what the operation uses */
    kiln_event_destroy(start);
    kiln_event_destroy(end);
    return status;
}

typedef struct copy_pair {
    void *destination, *source;
    size_t size;
} copy_pair;

static kiln_status copy_once(void *user, kiln_stream *stream) {
    const copy_pair *pair = user;
    return kiln_copy(stream, pair->destination, pair->source, pair->size, KILN_COPY_ON_DEVICE);
}

kiln_status measure_copy(kiln_stream *stream, size_t size, double nanoseconds, double *out_bandwidth) {
    copy_pair pair = {.size = size};
    measurement time = {0};
    *out_bandwidth = 0;
    kiln_status status = kiln_memory_alloc(stream->device, size, &pair.source);
    if (status == KILN_OK) status = kiln_memory_alloc(stream->device, size, &pair.destination);
    if (status == KILN_OK) status = kiln_fill(stream, pair.source, 1, size);
    if (status == KILN_OK) status = measure(stream, copy_once, &pair, nanoseconds, &time);
    if (time.median > 0) *out_bandwidth = 2e9 * (double)size / time.median;
    kiln_memory_free(stream->device, pair.source);
    kiln_memory_free(stream->device, pair.destination);
    return status;
}
