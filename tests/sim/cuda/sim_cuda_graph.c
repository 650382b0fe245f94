/* Graphs: what a capture recorded, and its replay. Each stream of the capture is a lane; a replay does the lanes' work
 * in any order that the lanes and their events allow. */
#include "tests/sim/cuda/sim_cuda.h"
#include <stdlib.h>

/* Of instantiation: neither makes a difference to graphs without memory, and where priorities are all the same. */
enum { AUTO_FREE = 1, NODE_PRIORITY = 8 };

static void record_release(sim_record *record) {
    if (--record->references) return;
    sim_cuda_nodes_free(&record->nodes);
    free(record);
}

sim_graph *sim_cuda_graph_new(sim_capture *capture) {
    sim_graph *graph = sim_object_new("graph", sizeof *graph);
    sim_record *record = graph ? calloc(1, sizeof *record) : NULL;
    if (!record) {
        if (graph) sim_object_delete("graph", graph);
        return NULL;
    }
    *record = (sim_record){1, capture->lanes, capture->nodes};
    capture->nodes = (sim_nodes){NULL, NULL};
    graph->record = record;
    return graph;
}

kiln__cu_result cuGraphDestroy(struct CUgraph_st *graph) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_object_live("graph", graph), SIM_CUDA_INVALID_VALUE, "cuGraphDestroy: %p is no graph",
                  (void *)graph);
    record_release(graph->record);
    sim_object_delete("graph", graph);
    return SIM_CUDA_SUCCESS;
}

/* The streams of the lanes but the first; what they have to do is done before they go. */
static void lanes_delete(sim_executable *executable) {
    for (uint32_t lane = 1; executable->lanes && lane < executable->record->lanes; lane++) {
        sim_stream *stream = executable->lanes[lane];
        if (!stream || !sim_object_live(SIM_CUDA_LANE, stream)) continue; /* gone with its context */
        sim_cuda_finish(stream);
        sim_cuda_stream_delete(SIM_CUDA_LANE, stream);
    }
    free(executable->lanes);
}

static bool lanes_new(sim_executable *executable, sim_context *context) {
    executable->lanes = calloc(executable->record->lanes, sizeof *executable->lanes);
    for (uint32_t lane = 1; executable->lanes && lane < executable->record->lanes; lane++) {
        executable->lanes[lane] = sim_cuda_stream_new(SIM_CUDA_LANE, context, KILN__CU_STREAM_NON_BLOCKING);
        if (!executable->lanes[lane]) return false;
    }
    return executable->lanes;
}

static void executable_delete(sim_executable *executable) {
    lanes_delete(executable);
    sim_cuda_mark_release(executable->done);
    record_release(executable->record);
    sim_object_delete("executable graph", executable);
}

kiln__cu_result cuGraphInstantiateWithFlags(struct CUgraphExec_st **out_executable, struct CUgraph_st *graph,
                                            unsigned long long flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_executable && sim_object_live("graph", graph), SIM_CUDA_INVALID_VALUE,
                  "cuGraphInstantiateWithFlags: %p is no graph", (void *)graph);
    SIM_CUDA_RULE(!(flags & ~(unsigned long long)(AUTO_FREE | NODE_PRIORITY)), SIM_CUDA_INVALID_VALUE,
                  "cuGraphInstantiateWithFlags: flags 0x%llx are not presented", flags);
    sim_executable *created = sim_object_new("executable graph", sizeof *created);
    if (!created) return SIM_CUDA_OUT_OF_MEMORY;
    created->record = graph->record;
    created->record->references++;
    if (lanes_new(created, context)) {
        *out_executable = created;
        return SIM_CUDA_SUCCESS;
    }
    executable_delete(created);
    return SIM_CUDA_OUT_OF_MEMORY;
}

/* ---- Updating ---- */

/* The driver's CUgraphExecUpdateResultInfo. */
struct CUgraphExecUpdateResultInfo_st {
    kiln__cu_enum result;
    void *node, *from;
};
enum { UPDATED, UPDATE_ERROR, UPDATE_TOPOLOGY_CHANGED, UPDATE_NODE_TYPE_CHANGED, UPDATE_PARAMETERS_CHANGED = 5 };
enum { UPDATE_ATTRIBUTES_CHANGED = 8 };

/* What two nodes in the same place differ in. Marks stand for edges: those of an event's record, and its waits. */
static kiln__cu_enum difference(const sim_node *old, const sim_node *new) {
    if (old->lane != new->lane || !old->mark != !new->mark || old->waits != new->waits) return UPDATE_TOPOLOGY_CHANGED;
    if (!old->function != !new->function || !old->host != !new->host || !old->from != !new->from)
        return UPDATE_NODE_TYPE_CHANGED;
    if (old->function && old->launch.cooperative != new->launch.cooperative) return UPDATE_ATTRIBUTES_CHANGED;
    if (old->function && old->function->module->context != new->function->module->context)
        return UPDATE_PARAMETERS_CHANGED;
    if (old->to_device != new->to_device || old->from_device != new->from_device) return UPDATE_PARAMETERS_CHANGED;
    return UPDATED;
}

/* The place of the record that a node waits for. */
static size_t awaited(const sim_nodes *nodes, const sim_mark *mark) {
    size_t at = 0;
    for (const sim_node *node = nodes->first; node && (node->waits || node->mark != mark); node = node->next)
        at++;
    return at;
}

static kiln__cu_enum differences(const sim_record *old, const sim_record *new) {
    const sim_node *a = old->nodes.first, *b = new->nodes.first;
    if (old->lanes != new->lanes) return UPDATE_TOPOLOGY_CHANGED;
    for (; a && b; a = a->next, b = b->next) {
        const kiln__cu_enum found = difference(a, b);
        if (found) return found;
        if (a->waits && awaited(&old->nodes, a->mark) != awaited(&new->nodes, b->mark)) return UPDATE_TOPOLOGY_CHANGED;
    }
    return a || b ? UPDATE_TOPOLOGY_CHANGED : UPDATED;
}

/* The executable has the graph's nodes from its next launch on, if they differ in nothing but their parameters. */
kiln__cu_result cuGraphExecUpdate_v2(struct CUgraphExec_st *executable, struct CUgraph_st *graph,
                                     struct CUgraphExecUpdateResultInfo_st *out_info) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_info && sim_object_live("executable graph", executable) && sim_object_live("graph", graph),
                  SIM_CUDA_INVALID_VALUE, "cuGraphExecUpdate: no executable graph, no graph, or the result is NULL");
    *out_info = (struct CUgraphExecUpdateResultInfo_st){.result = differences(executable->record, graph->record)};
    if (out_info->result) return SIM_CUDA_GRAPH_EXEC_UPDATE_FAILURE;
    graph->record->references++;
    record_release(executable->record);
    executable->record = graph->record;
    return SIM_CUDA_SUCCESS;
}

/* ---- Launching ---- */

/* A launch has marks of its own in the place of the record's. */
typedef struct mark_pair {
    const sim_mark *recorded;
    sim_mark *launched;
} mark_pair;

typedef struct graph_launch {
    sim_executable *executable;
    sim_stream *stream;
    mark_pair *pairs; /* room for one for each node */
    size_t pair_count;
} graph_launch;

static sim_mark *mark_of(graph_launch *launch, const sim_mark *recorded) {
    for (size_t i = 0; i < launch->pair_count; i++)
        if (launch->pairs[i].recorded == recorded) return launch->pairs[i].launched;
    sim_mark *launched = sim_cuda_mark_new();
    if (launched) launch->pairs[launch->pair_count++] = (mark_pair){recorded, launched};
    return launched;
}

/* One stream's work from here on comes after what the other has to do now. */
static kiln__cu_result order(sim_stream *before, sim_stream *after) {
    sim_mark *mark = sim_cuda_mark_new();
    if (!mark) return SIM_CUDA_OUT_OF_MEMORY;
    kiln__cu_result result = sim_cuda_submit(before, &(sim_node){.mark = mark});
    if (!result) result = sim_cuda_submit(after, &(sim_node){.mark = mark, .waits = true});
    sim_cuda_mark_release(mark);
    return result;
}

static kiln__cu_result submit(graph_launch *launch, const sim_node *node) {
    sim_node launched = *node;
    sim_stream *stream = node->lane ? launch->executable->lanes[node->lane] : launch->stream;
    launched.launch.captured = stream->capture != NULL;
    if (node->mark && !(launched.mark = mark_of(launch, node->mark))) return SIM_CUDA_OUT_OF_MEMORY;
    return sim_cuda_submit(stream, &launched);
}

/* Each launch of an executable begins after the last one, on whatever streams they are. */
static kiln__cu_result await_last(const graph_launch *launch) {
    if (!launch->executable->done || launch->stream->capture) return SIM_CUDA_SUCCESS;
    return sim_cuda_submit(launch->stream, &(sim_node){.mark = launch->executable->done, .waits = true});
}

static kiln__cu_result tell_next(const graph_launch *launch) {
    sim_mark *done = launch->stream->capture ? NULL : sim_cuda_mark_new();
    if (!done) return launch->stream->capture ? SIM_CUDA_SUCCESS : SIM_CUDA_OUT_OF_MEMORY;
    sim_cuda_mark_release(launch->executable->done);
    launch->executable->done = done;
    return sim_cuda_submit(launch->stream, &(sim_node){.mark = done});
}

static kiln__cu_result submit_all(graph_launch *launch) {
    const sim_record *record = launch->executable->record;
    kiln__cu_result result = await_last(launch);
    for (uint32_t lane = 1; lane < record->lanes && !result; lane++)
        result = order(launch->stream, launch->executable->lanes[lane]);
    for (const sim_node *node = record->nodes.first; node && !result; node = node->next)
        result = submit(launch, node);
    for (uint32_t lane = 1; lane < record->lanes && !result; lane++)
        result = order(launch->executable->lanes[lane], launch->stream);
    return result ? result : tell_next(launch);
}

/* In a capture a graph of one lane becomes a part of the other, node by node. */
kiln__cu_result cuGraphLaunch(struct CUgraphExec_st *executable, kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live("executable graph", executable), SIM_CUDA_INVALID_VALUE,
                  "cuGraphLaunch: %p is no executable graph", (void *)executable);
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (result) return result;
    SIM_CUDA_RULE(!stream->capture || executable->record->lanes == 1, SIM_CUDA_STREAM_CAPTURE_UNSUPPORTED,
                  "cuGraphLaunch: a graph of several streams inside of a capture is not presented");
    size_t count = 0;
    for (const sim_node *node = executable->record->nodes.first; node; node = node->next)
        count++;
    graph_launch launch = {
        .executable = executable, .stream = stream, .pairs = calloc(count + 1, sizeof *launch.pairs)};
    result = launch.pairs ? submit_all(&launch) : SIM_CUDA_OUT_OF_MEMORY;
    while (launch.pair_count)
        sim_cuda_mark_release(launch.pairs[--launch.pair_count].launched);
    free(launch.pairs);
    return result;
}

/* There is nothing to prepare. */
kiln__cu_result cuGraphUpload(struct CUgraphExec_st *executable, kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live("executable graph", executable), SIM_CUDA_INVALID_VALUE,
                  "cuGraphUpload: %p is no executable graph", (void *)executable);
    return sim_cuda_stream(__func__, context, handle) ? SIM_CUDA_SUCCESS : SIM_CUDA_INVALID_HANDLE;
}

kiln__cu_result cuGraphExecDestroy(struct CUgraphExec_st *executable) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_object_live("executable graph", executable), SIM_CUDA_INVALID_VALUE,
                  "cuGraphExecDestroy: %p is no executable graph", (void *)executable);
    executable_delete(executable);
    return SIM_CUDA_SUCCESS;
}
