#include "loader/cuda/cuda_backend.h"

kiln_status kiln__cuda_event_create(kiln_event *event) {
    kiln__cu_event native = NULL;
    const unsigned int flags =
        event->flags & KILN_EVENT_NO_TIMING ? KILN__CU_EVENT_DISABLE_TIMING : KILN__CU_EVENT_DEFAULT;
    KILN__CUDA_CALL(event->device, cuEventCreate, &native, flags);
    if (!native) return kiln__cuda_fail_empty("cuEventCreate");
    event->native = native;
    return KILN_OK;
}

kiln_status kiln__cuda_event_borrow(kiln_event *event, void *native) {
    KILN__REQUIRE(native, "kiln_event_borrow: native is NULL: must be a CUevent of the device's context");
    event->native = native;
    return KILN_OK;
}

void kiln__cuda_event_destroy(kiln_event *event) {
    if (event->borrowed) return;
    KILN__CUDA_RELEASE(event->device, cuEventDestroy, event->native);
}

kiln_status kiln__cuda_event_record(kiln_event *event, kiln_stream *stream) {
    KILN__CUDA_CALL(event->device, cuEventRecord, event->native, stream->native);
    return KILN_OK;
}

kiln_status kiln__cuda_event_sync(kiln_event *event) {
    KILN__CUDA_CALL(event->device, cuEventSynchronize, event->native);
    return KILN_OK;
}

kiln_status kiln__cuda_event_query(kiln_event *event, bool *out_done) {
    kiln__cuda_scope here;
    KILN__TRY(kiln__cuda_enter(event->device, &here));
    kiln__cu_result result = kiln__cuda.cuEventQuery(event->native);
    kiln__cuda_leave(&here);
    *out_done = !result;
    return !result || result == KILN__CU_ERROR_NOT_READY ? KILN_OK
                                                         : kiln__cuda_fail(event->device, "cuEventQuery", result);
}

kiln_status kiln__cuda_event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds) {
    float milliseconds = 0;
    KILN__CUDA_CALL(start->device, cuEventElapsedTime, &milliseconds, start->native, end->native);
    *out_nanoseconds = (double)milliseconds * 1e6;
    return KILN_OK;
}
