#include "loader/cuda/cuda_backend.h"
#include "loader/operator.h"

kiln_status kiln__cuda_stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream) {
    (void)flags; /* events can always be timed */
    kiln__cu_stream native = NULL;
    KILN__CUDA_CALL(device, cuStreamCreate, &native, KILN__CU_STREAM_NON_BLOCKING);
    if (!native) return kiln__cuda_fail_empty("cuStreamCreate");
    *out_stream =
        (kiln_stream){.device = device, .native = native, .state = (void *)(uintptr_t)KILN__CUDA_STREAM_OWNED};
    return KILN_OK;
}

kiln_status kiln__cuda_stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream) {
    *out_stream = (kiln_stream){.device = device, .native = native};
    return KILN_OK;
}

kiln_status kiln__cuda_stream_set_programmatic(kiln_stream *stream, bool on) {
    const kiln_device_info *info = &stream->device->info;
    if (on && info->target.compute_capability < 90)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "kiln_stream_set_programmatic: needs compute capability 9.0, the device has %d.%d",
                          info->target.compute_capability / 10, info->target.compute_capability % 10);
    if (on && !kiln__cuda.cuLaunchKernelEx)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "kiln_stream_set_programmatic: needs a driver of CUDA 11.8, this is %s", info->driver);
    const uintptr_t bits = kiln__cuda_stream_bits(stream) & ~(uintptr_t)KILN__CUDA_STREAM_PROGRAMMATIC;
    stream->state = (void *)(bits | (on ? (uintptr_t)KILN__CUDA_STREAM_PROGRAMMATIC : 0));
    return KILN_OK;
}

/* Kernels that are programmatic are in images for CUDA alone. */
bool kiln__operator_overlaps(const kiln_stream *stream, const kiln_kernel *kernel) {
    return kernel->info.programmatic && kiln__cuda_stream_bits(stream) & KILN__CUDA_STREAM_PROGRAMMATIC;
}

kiln_status kiln__cuda_stream_capturing(kiln_stream *stream, bool *out_capturing) {
    kiln__cuda_scope scope;
    kiln__cu_enum capture = KILN__CU_STREAM_CAPTURE_STATUS_NONE;
    *out_capturing = false;
    KILN__TRY(kiln__cuda_enter(stream->device, &scope));
    kiln__cu_result result = kiln__cuda.cuStreamIsCapturing(stream->native, &capture);
    kiln__cuda_leave(&scope);
    /* The legacy stream while another stream that it waits for is captured: any use of it is part of that capture. */
    if (result == KILN__CU_ERROR_STREAM_CAPTURE_IMPLICIT) {
        *out_capturing = true;
        return KILN_OK;
    }
    if (result) return kiln__cuda_fail(stream->device, "cuStreamIsCapturing", result);
    *out_capturing = capture != KILN__CU_STREAM_CAPTURE_STATUS_NONE;
    return KILN_OK;
}

kiln_status kiln__cuda_stream_sync(kiln_stream *stream) {
    KILN__CUDA_CALL(stream->device, cuStreamSynchronize, stream->native);
    return KILN_OK;
}

kiln_status kiln__cuda_stream_query(kiln_stream *stream, bool *out_done) {
    kiln__cuda_scope here;
    KILN__TRY(kiln__cuda_enter(stream->device, &here));
    kiln__cu_result result = kiln__cuda.cuStreamQuery(stream->native);
    kiln__cuda_leave(&here);
    *out_done = !result;
    return !result || result == KILN__CU_ERROR_NOT_READY ? KILN_OK
                                                         : kiln__cuda_fail(stream->device, "cuStreamQuery", result);
}

void kiln__cuda_stream_close(kiln_stream *stream) {
    if (!(kiln__cuda_stream_bits(stream) & KILN__CUDA_STREAM_OWNED)) return;
    KILN__CUDA_RELEASE(stream->device, cuStreamSynchronize, stream->native);
    KILN__CUDA_RELEASE(stream->device, cuStreamDestroy, stream->native);
}

kiln_status kiln__cuda_stream_wait_event(kiln_stream *stream, kiln_event *event) {
    KILN__CUDA_CALL(stream->device, cuStreamWaitEvent, stream->native, event->native, 0);
    return KILN_OK;
}
