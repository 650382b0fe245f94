#include "loader/backend.h"
#include <stdlib.h>

static kiln_status event_check(const kiln_event *event, const char *function, const char *argument) {
    KILN__REQUIRE(event, "%s: %s is NULL", function, argument);
    return kiln__device_check(event->device);
}

/* Creates an event of the backend, or one that borrows native. */
static kiln_status event_new(const char *function, kiln_device *device, uint32_t flags, bool borrowed, void *native,
                             kiln_event **out_event) {
    KILN__TRY(kiln__device_argument_check(function, device));
    kiln_event *event = calloc(1, sizeof *event);
    if (!event) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "%s: no memory for the event", function);
    *event = (kiln_event){.device = device, .flags = flags, .borrowed = borrowed, .recorded = borrowed};
    kiln_status status = borrowed ? device->backend->event_borrow(event, native) : device->backend->event_create(event);
    if (status == KILN_OK)
        *out_event = event;
    else
        free(event);
    return status;
}

kiln_status kiln_event_create(kiln_device *device, uint32_t flags, kiln_event **out_event) {
    KILN__REQUIRE(out_event, "kiln_event_create: out_event is NULL");
    *out_event = NULL;
    KILN__REQUIRE(!(flags & ~(uint32_t)KILN_EVENT_NO_TIMING), "kiln_event_create: flags is 0x%x: has unknown bits",
                  flags);
    return event_new("kiln_event_create", device, flags, false, NULL, out_event);
}

kiln_status kiln_event_borrow(kiln_device *device, void *native, kiln_event **out_event) {
    KILN__REQUIRE(out_event, "kiln_event_borrow: out_event is NULL");
    *out_event = NULL;
    return event_new("kiln_event_borrow", device, 0, true, native, out_event);
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
    KILN__REQUIRE(!(start->flags & KILN_EVENT_NO_TIMING) && !(end->flags & KILN_EVENT_NO_TIMING),
                  "kiln_event_elapsed: %s was created with KILN_EVENT_NO_TIMING",
                  start->flags & KILN_EVENT_NO_TIMING ? "start" : "end");
    return start->device->backend->event_elapsed(start, end, out_nanoseconds);
}
