/* Streams, events, and what a capture allows. */
#include "tests/sim/cuda/sim_cuda.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED };
enum { MODE_GLOBAL, MODE_THREAD_LOCAL, MODE_RELAXED };

static const char legacy_kind[] = ".default stream";

static _Thread_local kiln__cu_enum thread_mode = MODE_GLOBAL;
static uint64_t clock_ticks;

/* ---- Which stream ---- */

static bool of_context(const void *stream, const void *context) {
    return ((const sim_stream *)stream)->context == context;
}

static bool event_of_context(const void *event, const void *context) {
    return ((const sim_event *)event)->context == context;
}

static sim_stream *default_stream(sim_context *context) {
    sim_stream *found = sim_object_find(legacy_kind, of_context, context);
    if (found) return found;
    found = sim_object_new(legacy_kind, sizeof *found);
    if (found) found->context = context;
    return found;
}

static bool is_default(kiln__cu_stream handle) {
    return (uintptr_t)handle <= 2;
}

sim_stream *sim_cuda_stream(const char *function, sim_context *context, kiln__cu_stream handle) {
    if (is_default(handle)) return default_stream(context);
    if (!sim_object_live("stream", handle)) {
        sim_violation("%s: %p is no stream", function, (void *)handle);
        return NULL;
    }
    if (handle->context != context) {
        sim_violation("%s: the stream is of another context than the current one", function);
        return NULL;
    }
    return handle;
}

/* ---- Capture ---- */

static bool is_capturing(const void *object, const void *unused) {
    (void)unused;
    return ((const sim_stream *)object)->capture == CAPTURE_ACTIVE;
}

/* A capture that a thread's unsafe call disturbs: any thread's in the global mode, its own in the thread-local one. */
static bool is_disturbed(const void *object, const void *unused) {
    const sim_stream *stream = object;
    if (!is_capturing(stream, unused) || thread_mode == MODE_RELAXED || stream->capture_mode == MODE_RELAXED)
        return false;
    if (stream->capture_thread == gettid()) return true;
    return stream->capture_mode == MODE_GLOBAL && thread_mode == MODE_GLOBAL;
}

/* A capture on a stream that the legacy default stream would wait for. */
static bool is_blocking_capture(const void *object, const void *context) {
    const sim_stream *stream = object;
    return is_capturing(stream, NULL) && stream->context == context && !(stream->flags & KILN__CU_STREAM_NON_BLOCKING);
}

kiln__cu_result sim_cuda_unsafe(void) {
    kiln__cu_result result = SIM_CUDA_SUCCESS;
    for (sim_stream *stream; (stream = sim_object_find("stream", is_disturbed, NULL));) {
        stream->capture = CAPTURE_INVALIDATED;
        result = SIM_CUDA_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

kiln__cu_result sim_cuda_stream_use(sim_stream *stream) {
    if (stream->capture == CAPTURE_INVALIDATED) return SIM_CUDA_STREAM_CAPTURE_INVALIDATED;
    if (sim_object_live(legacy_kind, stream)) {
        sim_stream *captured = sim_object_find("stream", is_blocking_capture, stream->context);
        if (captured) {
            captured->capture = CAPTURE_INVALIDATED;
            return SIM_CUDA_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuThreadExchangeStreamCaptureMode(kiln__cu_enum *mode) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(mode && *mode <= MODE_RELAXED, SIM_CUDA_INVALID_VALUE,
                  "cuThreadExchangeStreamCaptureMode: no such mode");
    kiln__cu_enum previous = thread_mode;
    thread_mode = *mode;
    *mode = previous;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuStreamBeginCapture_v2(kiln__cu_stream handle, kiln__cu_enum mode) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(!is_default(handle) && mode <= MODE_RELAXED, SIM_CUDA_INVALID_VALUE,
                  "cuStreamBeginCapture: a default stream, or no such mode");
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    if (stream->capture) return SIM_CUDA_ILLEGAL_STATE;
    stream->capture = CAPTURE_ACTIVE;
    stream->capture_mode = mode;
    stream->capture_thread = gettid();
    stream->nodes = calloc(1, sizeof *stream->nodes);
    if (!stream->nodes) return SIM_CUDA_OUT_OF_MEMORY;
    stream->nodes->references = 1;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuStreamEndCapture(kiln__cu_stream handle, struct CUgraph_st **out_graph) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_graph, SIM_CUDA_INVALID_VALUE, "cuStreamEndCapture: the result is NULL");
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_enum capture = stream->capture;
    stream->capture = CAPTURE_NONE;
    *out_graph = NULL;
    if (capture == CAPTURE_NONE) return SIM_CUDA_ILLEGAL_STATE;
    sim_nodes *nodes = stream->nodes;
    stream->nodes = NULL;
    if (capture == CAPTURE_ACTIVE) *out_graph = sim_object_new("graph", sizeof **out_graph);
    if (*out_graph)
        (*out_graph)->nodes = nodes;
    else
        sim_cuda_nodes_release(nodes);
    if (capture == CAPTURE_INVALIDATED) return SIM_CUDA_STREAM_CAPTURE_INVALIDATED;
    return *out_graph ? SIM_CUDA_SUCCESS : SIM_CUDA_OUT_OF_MEMORY;
}

kiln__cu_result cuStreamIsCapturing(kiln__cu_stream handle, kiln__cu_enum *out_status) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_status, SIM_CUDA_INVALID_VALUE, "cuStreamIsCapturing: the result is NULL");
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    if (is_default(handle) && sim_object_find("stream", is_blocking_capture, context))
        return SIM_CUDA_STREAM_CAPTURE_IMPLICIT;
    *out_status = stream->capture;
    return SIM_CUDA_SUCCESS;
}

/* ---- Streams ---- */

kiln__cu_result cuStreamCreate(kiln__cu_stream *out_stream, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_stream && flags <= KILN__CU_STREAM_NON_BLOCKING, SIM_CUDA_INVALID_VALUE,
                  "cuStreamCreate: flags is %u, or the result is NULL", flags);
    sim_stream *created = sim_object_new("stream", sizeof *created);
    if (!created) return SIM_CUDA_OUT_OF_MEMORY;
    *created = (sim_stream){.context = context, .flags = flags};
    *out_stream = created;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuStreamDestroy_v2(kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(!is_default(handle), SIM_CUDA_INVALID_HANDLE, "cuStreamDestroy: of a default stream");
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    sim_object_delete("stream", stream);
    return SIM_CUDA_SUCCESS;
}

/* Waiting for a stream that is captured can never end well. */
kiln__cu_result cuStreamSynchronize(kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (result || !stream->capture) return result;
    stream->capture = CAPTURE_INVALIDATED;
    return SIM_CUDA_STREAM_CAPTURE_UNSUPPORTED;
}

kiln__cu_result cuStreamWaitEvent(kiln__cu_stream handle, kiln__cu_event event, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(flags == 0, SIM_CUDA_INVALID_VALUE, "cuStreamWaitEvent: flags is %u", flags);
    SIM_CUDA_RULE(sim_object_live("event", event), SIM_CUDA_INVALID_HANDLE, "cuStreamWaitEvent: %p is no event",
                  (void *)event);
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    return stream ? sim_cuda_stream_use(stream) : SIM_CUDA_INVALID_HANDLE;
}

/* ---- Events ---- */

kiln__cu_result cuEventCreate(kiln__cu_event *out_event, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_event && flags < 8, SIM_CUDA_INVALID_VALUE, "cuEventCreate: flags is %u", flags);
    sim_event *created = sim_object_new("event", sizeof *created);
    if (!created) return SIM_CUDA_OUT_OF_MEMORY;
    created->context = context;
    *out_event = created;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuEventDestroy_v2(kiln__cu_event event) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(sim_object_live("event", event), SIM_CUDA_INVALID_HANDLE, "cuEventDestroy: %p is no event",
                  (void *)event);
    sim_object_delete("event", event);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuEventRecord(kiln__cu_event event, kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live("event", event), SIM_CUDA_INVALID_HANDLE, "cuEventRecord: %p is no event",
                  (void *)event);
    SIM_CUDA_RULE(event->context == context, SIM_CUDA_INVALID_HANDLE,
                  "cuEventRecord: the event is of another context than the current one");
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (result) return result;
    event->captured = stream->capture == CAPTURE_ACTIVE;
    event->tick = ++clock_ticks;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuEventSynchronize(kiln__cu_event event) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(sim_object_live("event", event), SIM_CUDA_INVALID_HANDLE, "cuEventSynchronize: %p is no event",
                  (void *)event);
    return event->captured ? SIM_CUDA_CAPTURED_EVENT : SIM_CUDA_SUCCESS;
}

/* Recorded events lie half a millisecond apart. */
kiln__cu_result cuEventElapsedTime(float *out_milliseconds, kiln__cu_event start, kiln__cu_event end) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(out_milliseconds && sim_object_live("event", start) && sim_object_live("event", end),
                  SIM_CUDA_INVALID_HANDLE, "cuEventElapsedTime: no event, or the result is NULL");
    if (!start->tick || !end->tick || start->captured || end->captured) return SIM_CUDA_INVALID_HANDLE;
    *out_milliseconds = ((float)end->tick - (float)start->tick) * 0.5f;
    return SIM_CUDA_SUCCESS;
}

void sim_cuda_streams_sweep(const sim_context *context) {
    for (sim_stream *stream; (stream = sim_object_find("stream", of_context, context));)
        sim_object_delete("stream", stream);
    for (sim_stream *stream; (stream = sim_object_find(legacy_kind, of_context, context));)
        sim_object_delete(legacy_kind, stream);
    for (sim_event *event; (event = sim_object_find("event", event_of_context, context));)
        sim_object_delete("event", event);
}
