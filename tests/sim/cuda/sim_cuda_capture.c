/* Stream capture: what takes part in one, and what it forbids. */
#include "tests/sim/cuda/sim_cuda.h"
#include <stdlib.h>
#include <unistd.h>

enum { STATUS_NONE, STATUS_ACTIVE, STATUS_INVALIDATED };
enum { MODE_GLOBAL, MODE_THREAD_LOCAL, MODE_RELAXED };

static _Thread_local kiln__cu_enum thread_mode = MODE_GLOBAL;

void sim_cuda_capture_release(sim_capture *capture) {
    if (!capture || --capture->references) return;
    sim_cuda_nodes_free(&capture->nodes);
    free(capture);
}

static void join(sim_stream *stream, sim_capture *capture) {
    stream->capture = capture;
    stream->lane = capture->lanes++;
    capture->references++;
}

bool sim_cuda_is_capturing(const sim_stream *stream) {
    return stream->capture && !stream->capture->invalidated;
}

/* A capture that a thread's unsafe call disturbs: any thread's in the global mode, its own in the thread-local one. */
static bool is_disturbed(const sim_stream *stream) {
    const sim_capture *capture = stream->capture;
    if (!sim_cuda_is_capturing(stream) || thread_mode == MODE_RELAXED || capture->mode == MODE_RELAXED) return false;
    if (capture->thread == gettid()) return true;
    return capture->mode == MODE_GLOBAL && thread_mode == MODE_GLOBAL;
}

kiln__cu_result sim_cuda_unsafe(void) {
    kiln__cu_result result = SIM_CUDA_SUCCESS;
    for (sim_stream *stream = sim_cuda_streams(); stream; stream = stream->next) {
        if (!is_disturbed(stream)) continue;
        stream->capture->invalidated = true;
        result = SIM_CUDA_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

/* A captured stream that the legacy default stream would wait for, or NULL. */
static sim_stream *blocking_capture(const sim_context *context) {
    for (sim_stream *stream = sim_cuda_streams(); stream; stream = stream->next) {
        if (sim_cuda_is_capturing(stream) && stream->context == context &&
            !(stream->flags & KILN__CU_STREAM_NON_BLOCKING))
            return stream;
    }
    return NULL;
}

kiln__cu_result sim_cuda_stream_use(sim_stream *stream) {
    if (stream->capture && stream->capture->invalidated) return SIM_CUDA_STREAM_CAPTURE_INVALIDATED;
    sim_stream *captured = sim_cuda_is_legacy(stream) ? blocking_capture(stream->context) : NULL;
    if (!captured) return SIM_CUDA_SUCCESS;
    captured->capture->invalidated = true;
    return SIM_CUDA_STREAM_CAPTURE_IMPLICIT;
}

kiln__cu_result sim_cuda_capture_wait(sim_stream *stream, const sim_event *event) {
    sim_capture *capture = event->captured;
    if (!capture) return SIM_CUDA_STREAM_CAPTURE_ISOLATION; /* on the world outside */
    if (!capture->origin) return SIM_CUDA_CAPTURED_EVENT;   /* of a capture that has ended */
    if (capture->invalidated) return SIM_CUDA_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture) return stream->capture == capture ? SIM_CUDA_SUCCESS : SIM_CUDA_STREAM_CAPTURE_MERGE;
    if (sim_cuda_is_legacy(stream)) return SIM_CUDA_STREAM_CAPTURE_IMPLICIT;
    join(stream, capture);
    return SIM_CUDA_SUCCESS;
}

/* ---- The end ---- */

static bool is_work(const sim_node *node) {
    return !node->mark;
}

/* Whether the first lane, at its end, has waited for the last work of every other: a walk backwards over the nodes, in
 * which reached has a bit for each lane whose nodes, from here to the front, come before that end. */
static bool is_joined(const sim_capture *capture) {
    bool joined = true;
    size_t count = 0;
    for (const sim_node *node = capture->nodes.first; node; node = node->next)
        count++;
    const sim_node **nodes = calloc(count + 1, sizeof *nodes);
    bool *reached = calloc(capture->lanes, sizeof *reached), *awaited = calloc(count + 1, sizeof *awaited);
    size_t at = 0;
    for (const sim_node *node = capture->nodes.first; node && nodes; node = node->next)
        nodes[at++] = node;
    if (reached) reached[0] = true;
    while (nodes && reached && awaited && at--) {
        const sim_node *node = nodes[at];
        if (awaited[at]) reached[node->lane] = true;
        if (!reached[node->lane]) {
            joined &= !is_work(node);
        } else if (node->waits) {
            for (size_t record = 0; record < at; record++)
                awaited[record] |= nodes[record]->mark == node->mark && !nodes[record]->waits;
        }
    }
    free(nodes);
    free(reached);
    free(awaited);
    return joined;
}

/* No stream takes part any more; the capture lives on in its events. */
static void end(sim_capture *capture) {
    capture->origin = NULL;
    for (sim_stream *stream = sim_cuda_streams(); stream; stream = stream->next) {
        if (stream->capture != capture) continue;
        stream->capture = NULL;
        sim_cuda_capture_release(capture);
    }
}

/* ---- The driver's functions ---- */

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
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    SIM_CUDA_RULE(!sim_cuda_is_legacy(stream) && mode <= MODE_RELAXED, SIM_CUDA_INVALID_VALUE,
                  "cuStreamBeginCapture: the legacy default stream, or no such mode");
    if (stream->capture) return SIM_CUDA_ILLEGAL_STATE;
    sim_capture *capture = calloc(1, sizeof *capture);
    if (!capture) return SIM_CUDA_OUT_OF_MEMORY;
    *capture = (sim_capture){.origin = stream, .mode = mode, .thread = gettid()};
    join(stream, capture);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuStreamEndCapture(kiln__cu_stream handle, struct CUgraph_st **out_graph) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_graph, SIM_CUDA_INVALID_VALUE, "cuStreamEndCapture: the result is NULL");
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    *out_graph = NULL;
    sim_capture *capture = stream->capture;
    if (!capture) return SIM_CUDA_ILLEGAL_STATE;
    if (capture->origin != stream) return SIM_CUDA_STREAM_CAPTURE_UNMATCHED;
    kiln__cu_result result = capture->invalidated  ? SIM_CUDA_STREAM_CAPTURE_INVALIDATED
                             : !is_joined(capture) ? SIM_CUDA_STREAM_CAPTURE_UNJOINED
                                                   : SIM_CUDA_SUCCESS;
    if (!result) *out_graph = sim_cuda_graph_new(capture);
    if (!result && !*out_graph) result = SIM_CUDA_OUT_OF_MEMORY;
    end(capture);
    return result;
}

kiln__cu_result cuStreamIsCapturing(kiln__cu_stream handle, kiln__cu_enum *out_status) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_status, SIM_CUDA_INVALID_VALUE, "cuStreamIsCapturing: the result is NULL");
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    if (sim_cuda_is_legacy(stream) && blocking_capture(context)) return SIM_CUDA_STREAM_CAPTURE_IMPLICIT;
    *out_status = !stream->capture ? STATUS_NONE : stream->capture->invalidated ? STATUS_INVALIDATED : STATUS_ACTIVE;
    return SIM_CUDA_SUCCESS;
}
