#include "loader/backend.h"
#include "loader/plan.h"
#include <string.h>

/* Checks that the stream is open and its device usable. */
static kiln_status stream_check(const kiln_stream *stream, const char *function) {
    KILN__REQUIRE(stream && stream->device, "%s: stream is NULL or closed", function);
    return kiln__device_check(stream->device);
}

kiln_status kiln_stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream) {
    KILN__REQUIRE(out_stream, "kiln_stream_open: out_stream is NULL");
    memset(out_stream, 0, sizeof *out_stream);
    KILN__REQUIRE(!(flags & ~(uint32_t)KILN_STREAM_TIMING), "kiln_stream_open: flags is 0x%x: has unknown bits", flags);
    KILN__TRY(kiln__device_argument_check("kiln_stream_open", device));
    return device->backend->stream_open(device, flags, out_stream);
}

kiln_status kiln_stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream) {
    KILN__REQUIRE(out_stream, "kiln_stream_borrow: out_stream is NULL");
    memset(out_stream, 0, sizeof *out_stream);
    KILN__TRY(kiln__device_argument_check("kiln_stream_borrow", device));
    return device->backend->stream_borrow(device, native, out_stream);
}

kiln_status kiln__stream_programmatic_refuse(kiln_stream *stream, bool on) {
    if (!on) return KILN_OK;
    return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_stream_set_programmatic: %s has no programmatic dependent launches",
                      stream->device->backend->name);
}

kiln_status kiln_stream_set_programmatic(kiln_stream *stream, int32_t on) {
    KILN__TRY(stream_check(stream, "kiln_stream_set_programmatic"));
    return stream->device->backend->stream_set_programmatic(stream, on != 0);
}

kiln_status kiln_stream_sync(kiln_stream *stream) {
    KILN__TRY(stream_check(stream, "kiln_stream_sync"));
    return stream->device->backend->stream_sync(stream);
}

kiln_status kiln_stream_query(kiln_stream *stream, int32_t *out_done) {
    KILN__REQUIRE(out_done, "kiln_stream_query: out_done is NULL");
    *out_done = 0;
    KILN__TRY(stream_check(stream, "kiln_stream_query"));
    bool done = false;
    KILN__TRY(stream->device->backend->stream_query(stream, &done));
    *out_done = done;
    return KILN_OK;
}

void kiln_stream_close(kiln_stream *stream) {
    if (!stream || !stream->device) return;
    if (stream->device->plan) {
        kiln__plan_close(stream);
        memset(stream, 0, sizeof *stream);
        return;
    }
    /* In a forked child the driver must not be called: the stream's resources are the parent's. */
    if (atomic_load(stream->device->state) & KILN__READY) stream->device->backend->stream_close(stream);
    memset(stream, 0, sizeof *stream);
}

kiln_status kiln_stream_wait_event(kiln_stream *stream, kiln_event *event) {
    KILN__TRY(stream_check(stream, "kiln_stream_wait_event"));
    KILN__REQUIRE(event, "kiln_stream_wait_event: event is NULL");
    KILN__REQUIRE(event->device == stream->device,
                  "kiln_stream_wait_event: event is of another device than the stream");
    if (!event->recorded) return KILN_OK;
    return stream->device->backend->stream_wait_event(stream, event);
}
