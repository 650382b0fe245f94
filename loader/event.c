#include "loader/backend.h"
#include <stdlib.h>

static kiln_status event_check(const kiln_event *event, const char *function, const char *argument) {
    KILN__REQUIRE(event, "%s: %s is NULL", function, argument);
    return kiln__device_check(event->device);
}

kiln_status kiln_event_create(kiln_device *device, kiln_event **out_event) {
    KILN__REQUIRE(out_event, "kiln_event_create: out_event is NULL");
    *out_event = NULL;
    KILN__TRY(kiln__device_check(device));
    kiln_event *event = calloc(1, sizeof *event);
    if (!event) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "kiln_event_create: no memory for the event");
    event->device = device;
    kiln_status status = device->backend->event_create(event);
    if (status == KILN_OK)
        *out_event = event;
    else
        free(event);
    return status;
}

void kiln_event_destroy(kiln_event *event) {
    if (!event) return;
    if (atomic_load(event->device->state) & KILN__READY) event->device->backend->event_destroy(event);
    free(event);
}

kiln_status kiln_event_record(kiln_event *event, kiln_stream *stream) {
    KILN__TRY(event_check(event, "kiln_event_record", "event"));
    KILN__REQUIRE(stream && stream->device, "kiln_event_record: stream is NULL or closed");
    KILN__REQUIRE(event->device == stream->device, "kiln_event_record: event is of another device than the stream");
    KILN__TRY(event->device->backend->event_record(event, stream));
    event->recorded = true;
    return KILN_OK;
}

kiln_status kiln_event_sync(kiln_event *event) {
    KILN__TRY(event_check(event, "kiln_event_sync", "event"));
    return event->recorded ? event->device->backend->event_sync(event) : KILN_OK;
}

kiln_status kiln_event_query(kiln_event *event, int32_t *out_done) {
    KILN__REQUIRE(out_done, "kiln_event_query: out_done is NULL");
    *out_done = 0;
    KILN__TRY(event_check(event, "kiln_event_query", "event"));
    bool done = true;
    if (event->recorded) KILN__TRY(event->device->backend->event_query(event, &done));
    *out_done = done;
    return KILN_OK;
}

kiln_status kiln_event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds) {
    KILN__REQUIRE(out_nanoseconds, "kiln_event_elapsed: out_nanoseconds is NULL");
    *out_nanoseconds = 0;
    KILN__TRY(event_check(start, "kiln_event_elapsed", "start"));
    KILN__TRY(event_check(end, "kiln_event_elapsed", "end"));
    KILN__REQUIRE(start->device == end->device, "kiln_event_elapsed: start and end are of different devices");
    KILN__REQUIRE(start->recorded && end->recorded, "kiln_event_elapsed: %s was never recorded",
                  start->recorded ? "end" : "start");
    return start->device->backend->event_elapsed(start, end, out_nanoseconds);
}
