/* Streams and events. */
#include "tests/sim/cuda/sim_cuda.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char legacy_kind[] = ".default stream";
static const char thread_kind[] = ".thread stream";

enum { EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4 };

/* ---- Which stream ---- */

static bool of_context(const void *stream, const void *context) {
    return ((const sim_stream *)stream)->context == context;
}

static bool event_of_context(const void *event, const void *context) {
    return ((const sim_event *)event)->context == context;
}

static bool of_thread(const void *stream, const void *context) {
    return of_context(stream, context) && ((const sim_stream *)stream)->thread == gettid();
}

sim_stream *sim_cuda_stream_new(const char *kind, sim_context *context, uint32_t flags) {
    sim_stream *created = sim_object_new(kind, sizeof *created);
    if (!created) return NULL;
    *created = (sim_stream){.context = context, .flags = flags};
    sim_cuda_stream_add(created);
    return created;
}

void sim_cuda_stream_delete(const char *kind, sim_stream *stream) {
    sim_cuda_stream_remove(stream);
    sim_cuda_capture_release(stream->capture);
    stream->capture = NULL;
    sim_object_delete(kind, stream);
}

static bool is_default(kiln__cu_stream handle) {
    return (uintptr_t)handle <= 2;
}

static bool is_per_thread(kiln__cu_stream handle) {
    return (uintptr_t)handle == 2;
}

/* The legacy default stream of a context, or that of the calling thread, made when it is first used. */
static sim_stream *default_stream(sim_context *context, bool per_thread) {
    const char *kind = per_thread ? thread_kind : legacy_kind;
    sim_stream *found = sim_object_find(kind, per_thread ? of_thread : of_context, context);
    if (found) return found;
    found = sim_cuda_stream_new(kind, context, 0);
    if (found && per_thread) found->thread = gettid();
    return found;
}

bool sim_cuda_is_legacy(const sim_stream *stream) {
    return sim_object_live(legacy_kind, stream);
}

sim_stream *sim_cuda_stream(const char *function, sim_context *context, kiln__cu_stream handle) {
    if (is_default(handle)) return default_stream(context, is_per_thread(handle));
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

/* ---- Streams ---- */

kiln__cu_result cuStreamCreate(kiln__cu_stream *out_stream, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_stream && flags <= KILN__CU_STREAM_NON_BLOCKING, SIM_CUDA_INVALID_VALUE,
                  "cuStreamCreate: flags is %u, or the result is NULL", flags);
    *out_stream = sim_cuda_stream_new("stream", context, flags);
    return *out_stream ? SIM_CUDA_SUCCESS : SIM_CUDA_OUT_OF_MEMORY;
}

/* Any priority will do: it is taken for the next that there is. */
kiln__cu_result cuStreamCreateWithPriority(kiln__cu_stream *out_stream, unsigned int flags, int priority) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)priority;
    SIM_CUDA_RULE(out_stream && flags <= KILN__CU_STREAM_NON_BLOCKING, SIM_CUDA_INVALID_VALUE,
                  "cuStreamCreateWithPriority: flags is %u, or the result is NULL", flags);
    *out_stream = sim_cuda_stream_new("stream", context, flags);
    return *out_stream ? SIM_CUDA_SUCCESS : SIM_CUDA_OUT_OF_MEMORY;
}

kiln__cu_result cuStreamGetPriority(kiln__cu_stream handle, int *out_priority) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_priority, SIM_CUDA_INVALID_VALUE, "cuStreamGetPriority: the result is NULL");
    if (!sim_cuda_stream(__func__, context, handle)) return SIM_CUDA_INVALID_HANDLE;
    *out_priority = 0;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuStreamGetFlags(kiln__cu_stream handle, unsigned int *out_flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_flags, SIM_CUDA_INVALID_VALUE, "cuStreamGetFlags: the result is NULL");
    const sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    *out_flags = stream->flags;
    return SIM_CUDA_SUCCESS;
}

/* Of any context's stream; a default stream is the current one's. */
kiln__cu_result cuStreamGetCtx(kiln__cu_stream handle, kiln__cu_context *out_context) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_context && (is_default(handle) || sim_object_live("stream", handle)), SIM_CUDA_INVALID_HANDLE,
                  "cuStreamGetCtx: %p is no stream, or the result is NULL", (void *)handle);
    *out_context = is_default(handle) ? context : handle->context;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuLaunchHostFunc(kiln__cu_stream handle, void (*function)(void *data), void *data) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(function, SIM_CUDA_INVALID_VALUE, "cuLaunchHostFunc: the function is NULL");
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    return result ? result : sim_cuda_submit(stream, &(sim_node){.host = function, .host_data = data});
}

/* What is enqueued is done all the same; that it is done at once is one of the orders there can be. */
kiln__cu_result cuStreamDestroy_v2(kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(!is_default(handle), SIM_CUDA_INVALID_HANDLE, "cuStreamDestroy: of a default stream");
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    sim_cuda_finish(stream);
    sim_cuda_stream_delete("stream", stream);
    return SIM_CUDA_SUCCESS;
}

/* Waiting for a stream that is captured can never end well. */
kiln__cu_result cuStreamSynchronize(kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (result) return result;
    if (!stream->capture) return sim_cuda_finish(stream);
    stream->capture->invalidated = true;
    return SIM_CUDA_STREAM_CAPTURE_UNSUPPORTED;
}

kiln__cu_result cuStreamQuery(kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (result) return result;
    if (stream->capture) {
        stream->capture->invalidated = true;
        return SIM_CUDA_STREAM_CAPTURE_UNSUPPORTED;
    }
    sim_cuda_pass();
    if (context->fault) return (kiln__cu_result)context->fault;
    return stream->work.first || stream->calls ? SIM_CUDA_NOT_READY : SIM_CUDA_SUCCESS;
}

kiln__cu_result cuStreamWaitEvent(kiln__cu_stream handle, kiln__cu_event event, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(flags == 0, SIM_CUDA_INVALID_VALUE, "cuStreamWaitEvent: flags is %u", flags);
    SIM_CUDA_RULE(sim_object_live("event", event), SIM_CUDA_INVALID_HANDLE, "cuStreamWaitEvent: %p is no event",
                  (void *)event);
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (result || !event->mark) return result;
    if (event->captured || stream->capture) result = sim_cuda_capture_wait(stream, event);
    return result ? result : sim_cuda_submit(stream, &(sim_node){.mark = event->mark, .waits = true});
}

/* ---- Events ---- */

kiln__cu_result cuEventCreate(kiln__cu_event *out_event, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_event && flags < 8, SIM_CUDA_INVALID_VALUE, "cuEventCreate: flags is %u", flags);
    SIM_CUDA_RULE(!(flags & EVENT_INTERPROCESS) || flags & EVENT_DISABLE_TIMING, SIM_CUDA_INVALID_VALUE,
                  "cuEventCreate: an event of several processes has no timing, and flags is %u", flags);
    sim_event *created = sim_object_new("event", sizeof *created);
    if (!created) return SIM_CUDA_OUT_OF_MEMORY;
    created->context = context;
    created->flags = flags;
    *out_event = created;
    return SIM_CUDA_SUCCESS;
}

static void event_delete(sim_event *event) {
    sim_cuda_mark_release(event->mark);
    sim_cuda_capture_release(event->captured);
    sim_object_delete("event", event);
}

kiln__cu_result cuEventDestroy_v2(kiln__cu_event event) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(sim_object_live("event", event), SIM_CUDA_INVALID_HANDLE, "cuEventDestroy: %p is no event",
                  (void *)event);
    event_delete(event);
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
    sim_mark *mark = sim_cuda_mark_new();
    if (!mark) return SIM_CUDA_OUT_OF_MEMORY;
    sim_cuda_mark_release(event->mark);
    event->mark = mark;
    sim_cuda_capture_release(event->captured);
    event->captured = stream->capture;
    if (event->captured) event->captured->references++;
    return sim_cuda_submit(stream, &(sim_node){.mark = mark});
}

kiln__cu_result cuEventSynchronize(kiln__cu_event event) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live("event", event), SIM_CUDA_INVALID_HANDLE, "cuEventSynchronize: %p is no event",
                  (void *)event);
    if (event->captured) return SIM_CUDA_CAPTURED_EVENT;
    return event->mark ? sim_cuda_reach(context, event->mark) : SIM_CUDA_SUCCESS;
}

kiln__cu_result cuEventQuery(kiln__cu_event event) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live("event", event), SIM_CUDA_INVALID_HANDLE, "cuEventQuery: %p is no event",
                  (void *)event);
    if (event->captured) return SIM_CUDA_CAPTURED_EVENT;
    sim_cuda_pass();
    if (context->fault) return (kiln__cu_result)context->fault;
    return event->mark && !event->mark->reached ? SIM_CUDA_NOT_READY : SIM_CUDA_SUCCESS;
}

/* Recorded events lie half a millisecond apart. */
static kiln__cu_result elapsed_time(float *out_milliseconds, const sim_event *start, const sim_event *end) {
    SIM_CUDA_RULE(out_milliseconds && sim_object_live("event", start) && sim_object_live("event", end),
                  SIM_CUDA_INVALID_HANDLE, "cuEventElapsedTime: no event, or the result is NULL");
    SIM_CUDA_RULE(!((start->flags | end->flags) & EVENT_DISABLE_TIMING), SIM_CUDA_INVALID_HANDLE,
                  "cuEventElapsedTime: an event was created with timing disabled");
    if (!start->mark || !end->mark || start->captured || end->captured) return SIM_CUDA_INVALID_HANDLE;
    if (!start->mark->reached || !end->mark->reached) return SIM_CUDA_NOT_READY;
    *out_milliseconds = (float)(int64_t)(end->mark->tick - start->mark->tick) * 0.5f;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuEventElapsedTime(float *out_milliseconds, kiln__cu_event start, kiln__cu_event end) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    return elapsed_time(out_milliseconds, start, end);
}

kiln__cu_result cuEventElapsedTime_v2(float *out_milliseconds, kiln__cu_event start, kiln__cu_event end) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    return elapsed_time(out_milliseconds, start, end);
}

void sim_cuda_streams_sweep(const sim_context *context) {
    static const char *const kinds[] = {"stream", legacy_kind, thread_kind, SIM_CUDA_LANE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (sim_stream *stream; (stream = sim_object_find(kinds[i], of_context, context));)
            sim_cuda_stream_delete(kinds[i], stream);
    for (sim_event *event; (event = sim_object_find("event", event_of_context, context));)
        event_delete(event);
}
