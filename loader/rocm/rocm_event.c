/* Events are barrier packets with pooled signals. An event's time is when its barrier packet was processed, which the
 * packet processor writes into the completion signal on a queue with profiling. The runtime's manual guarantees these
 * times for dispatches only, but HIP takes its events' times from barrier packets in the same way. If the hardware
 * wrote none, the runtime translates 0 into a time, which is before the event was recorded: kiln_event_elapsed then
 * reports an error instead of a made-up duration. */
#include "loader/rocm/rocm_queue.h"
#include <stdlib.h>

static kiln__rocm_signals *pool_of(const kiln_event *event) {
    return &((kiln__rocm_device *)event->device->native)->signals;
}

/* The signal comes with the first record. */
kiln_status kiln__rocm_event_create(kiln_event *event) {
    event->native = NULL;
    return KILN_OK;
}

/* The application's signal is in no pool. */
kiln_status kiln__rocm_event_borrow(kiln_event *event, void *native) {
    KILN__REQUIRE(native, "kiln_event_borrow: native is NULL: must be the handle of an hsa_signal_t");
    kiln__rocm_signal *signal = calloc(1, sizeof *signal);
    if (!signal) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "kiln_event_borrow: no memory for the event");
    signal->handle.handle = (uintptr_t)native;
    event->native = signal;
    return KILN_OK;
}

void kiln__rocm_event_destroy(kiln_event *event) {
    if (event->borrowed)
        free(event->native);
    else
        kiln__rocm_signal_drop(pool_of(event), event->native);
}

static kiln_status record_borrowed(const kiln_event *event, kiln__rocm_stream *state) {
    const kiln__rocm_signal *signal = event->native;
    kiln__rocm.signal_store_relaxed(signal->handle, 1);
    return kiln__rocm_barrier(state, (kiln__hsa_signal){0}, signal->handle);
}

kiln_status kiln__rocm_event_record(kiln_event *event, kiln_stream *stream) {
    kiln__rocm_stream *state = stream->state;
    kiln__rocm_signal *signal;
    uint64_t recorded = 0;
    if (event->borrowed) return record_borrowed(event, state);
    if (state->timing && !(event->flags & KILN_EVENT_NO_TIMING))
        KILN__ROCM_TRY(event->device, system_get_info, KILN__HSA_SYSTEM_INFO_TIMESTAMP, &recorded);
    KILN__TRY(kiln__rocm_signal_take(pool_of(event), NULL, &signal));
    kiln_status status = kiln__rocm_barrier(state, (kiln__hsa_signal){0}, signal->handle);
    if (status != KILN_OK) {
        kiln__rocm_signal_cancel(pool_of(event), signal);
        return status;
    }
    kiln__rocm_signal_drop(pool_of(event), event->native);
    event->native = signal;
    event->stamp = recorded;
    return KILN_OK;
}

kiln_status kiln__rocm_event_sync(kiln_event *event) {
    const kiln__rocm_signal *signal = event->native;
    return kiln__rocm_wait(event->device->native, signal->handle);
}

kiln_status kiln__rocm_event_query(kiln_event *event, bool *out_done) {
    const kiln__rocm_signal *signal = event->native;
    return kiln__rocm_poll(event->device->native, signal->handle, out_done);
}

kiln_status kiln__rocm_stream_wait_event(kiln_stream *stream, kiln_event *event) {
    kiln__rocm_signal *recorded = event->native, *waiter;
    KILN__TRY(kiln__rocm_signal_take(pool_of(event), event->borrowed ? NULL : recorded, &waiter));
    kiln_status status = kiln__rocm_barrier(stream->state, recorded->handle, waiter->handle);
    if (status == KILN_OK)
        kiln__rocm_signal_drop(pool_of(event), waiter);
    else
        kiln__rocm_signal_cancel(pool_of(event), waiter);
    return status;
}

/* When an event happened, in ticks of the system clock. */
static kiln_status event_time(const kiln_event *event, const char *name, uint64_t *out_ticks) {
    const kiln__rocm_device *rocm = event->device->native;
    const kiln__rocm_signal *signal = event->native;
    KILN__REQUIRE(!event->borrowed, "kiln_event_elapsed: %s is borrowed", name);
    KILN__REQUIRE(event->stamp, "kiln_event_elapsed: %s was recorded on a stream opened without KILN_STREAM_TIMING",
                  name);
    KILN__REQUIRE(kiln__rocm.signal_load(signal->handle) <= 0, "kiln_event_elapsed: %s has not happened yet", name);
    kiln__hsa_dispatch_time time = {0};
    KILN__ROCM_TRY(event->device, get_dispatch_time, rocm->agent, signal->handle, &time);
    /* The device's clock is translated to within a small part of a second. */
    if (!time.end || time.end + rocm->ticks_per_second < event->stamp)
        return kiln__fail(KILN_ERROR_DRIVER, "kiln_event_elapsed: the device recorded no time for %s", name);
    *out_ticks = time.end;
    return KILN_OK;
}

kiln_status kiln__rocm_event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds) {
    const kiln__rocm_device *rocm = start->device->native;
    uint64_t from, to;
    KILN__TRY(event_time(start, "start", &from));
    KILN__TRY(event_time(end, "end", &to));
    *out_nanoseconds = (double)(int64_t)(to - from) * 1e9 / (double)rocm->ticks_per_second;
    return KILN_OK;
}
