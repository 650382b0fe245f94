#include "loader/hip/hip_backend.h"

kiln_status kiln__hip_event_create(kiln_event *event) {
    kiln__hip_event native = NULL;
    const unsigned int flags =
        event->flags & KILN_EVENT_NO_TIMING ? KILN__hipEventDisableTiming : KILN__hipEventDefault;
    KILN__HIP_CALL(event->device, hipEventCreateWithFlags, &native, flags);
    if (!native) return kiln__hip_fail_empty("hipEventCreateWithFlags");
    event->native = native;
    return KILN_OK;
}

kiln_status kiln__hip_event_borrow(kiln_event *event, void *native) {
    KILN__REQUIRE(native, "kiln_event_borrow: native is NULL: must be a hipEvent_t of the device");
    event->native = native;
    return KILN_OK;
}

void kiln__hip_event_destroy(kiln_event *event) {
    if (event->borrowed) return;
    KILN__HIP_RELEASE(event->device, hipEventDestroy, event->native);
}

kiln_status kiln__hip_event_record(kiln_event *event, kiln_stream *stream) {
    KILN__HIP_CALL(event->device, hipEventRecord, event->native, stream->native);
    return KILN_OK;
}

kiln_status kiln__hip_event_sync(kiln_event *event) {
    KILN__HIP_CALL(event->device, hipEventSynchronize, event->native);
    return KILN_OK;
}

kiln_status kiln__hip_event_query(kiln_event *event, bool *out_done) {
    kiln__hip_scope here;
    KILN__TRY(kiln__hip_enter(event->device, &here));
    kiln__hip_error result = kiln__hip.hipEventQuery(event->native);
    kiln__hip_leave(&here);
    *out_done = !result;
    if (!result) return KILN_OK;
    if (result != KILN__hipErrorNotReady) return kiln__hip_fail(event->device, "hipEventQuery", result);
    kiln__hip_forget();
    return KILN_OK;
}

kiln_status kiln__hip_event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds) {
    float milliseconds = 0;
    KILN__HIP_CALL(start->device, hipEventElapsedTime, &milliseconds, start->native, end->native);
    *out_nanoseconds = (double)milliseconds * 1e6;
    return KILN_OK;
}
