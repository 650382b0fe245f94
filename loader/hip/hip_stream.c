#include "loader/hip/hip_backend.h"

kiln_status kiln__hip_stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream) {
    (void)flags; /* events can always be timed */
    kiln__hip_stream native = NULL;
    KILN__HIP_CALL(device, hipStreamCreateWithFlags, &native, KILN__hipStreamNonBlocking);
    if (!native) return kiln__hip_fail_empty("hipStreamCreateWithFlags");
    *out_stream = (kiln_stream){.device = device, .native = native, .state = native};
    return KILN_OK;
}

/* HIP's default streams have small numbers, hipStreamLegacy and hipStreamPerThread, and are of every device. */
kiln_status kiln__hip_stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream) {
    enum { DEFAULT_LAST = 2 };
    if ((uintptr_t)native > DEFAULT_LAST && kiln__hip.hipGetStreamDeviceId) {
        const int ordinal = kiln__hip.hipGetStreamDeviceId(native);
        KILN__REQUIRE(ordinal >= 0, "kiln_stream_borrow: native is no hipStream_t");
        KILN__REQUIRE(ordinal == device->info.ordinal,
                      "kiln_stream_borrow: native is a stream of HIP device %d, the device is hip:%d", ordinal,
                      device->info.ordinal);
    }
    *out_stream = (kiln_stream){.device = device, .native = native};
    return KILN_OK;
}

kiln_status kiln__hip_stream_capturing(kiln_stream *stream, bool *out_capturing) {
    kiln__hip_scope scope;
    kiln__hip_enum capture = KILN__hipStreamCaptureStatusNone;
    *out_capturing = false;
    KILN__TRY(kiln__hip_enter(stream->device, &scope));
    kiln__hip_error result = kiln__hip.hipStreamIsCapturing(stream->native, &capture);
    kiln__hip_leave(&scope);
    /* The legacy stream while another stream that it waits for is captured: any use of it is part of that capture. */
    if (result == KILN__hipErrorStreamCaptureImplicit) {
        kiln__hip_forget();
        *out_capturing = true;
        return KILN_OK;
    }
    if (result) return kiln__hip_fail(stream->device, "hipStreamIsCapturing", result);
    *out_capturing = capture != KILN__hipStreamCaptureStatusNone;
    return KILN_OK;
}

kiln_status kiln__hip_stream_sync(kiln_stream *stream) {
    KILN__HIP_CALL(stream->device, hipStreamSynchronize, stream->native);
    return KILN_OK;
}

kiln_status kiln__hip_stream_query(kiln_stream *stream, bool *out_done) {
    kiln__hip_scope here;
    KILN__TRY(kiln__hip_enter(stream->device, &here));
    kiln__hip_error result = kiln__hip.hipStreamQuery(stream->native);
    kiln__hip_leave(&here);
    *out_done = !result;
    if (!result) return KILN_OK;
    if (result != KILN__hipErrorNotReady) return kiln__hip_fail(stream->device, "hipStreamQuery", result);
    kiln__hip_forget();
    return KILN_OK;
}

void kiln__hip_stream_close(kiln_stream *stream) {
    if (!stream->state) return;
    KILN__HIP_RELEASE(stream->device, hipStreamSynchronize, stream->native);
    KILN__HIP_RELEASE(stream->device, hipStreamDestroy, stream->native);
}

kiln_status kiln__hip_stream_wait_event(kiln_stream *stream, kiln_event *event) {
    KILN__HIP_CALL(stream->device, hipStreamWaitEvent, stream->native, event->native, 0);
    return KILN_OK;
}
