/* Graphs: what a stream's capture recorded, and its replay. A stream has one order, so that a graph is a list. */
#include "tests/sim/cuda/sim_cuda.h"
#include <stdlib.h>

static void record_release(sim_record *record) {
    if (--record->references) return;
    sim_cuda_nodes_free(&record->nodes);
    free(record);
}

sim_graph *sim_cuda_graph_new(sim_nodes *nodes) {
    sim_graph *graph = sim_object_new("graph", sizeof *graph);
    sim_record *record = graph ? calloc(1, sizeof *record) : NULL;
    if (!record) {
        if (graph) sim_object_delete("graph", graph);
        return NULL;
    }
    *record = (sim_record){1, *nodes};
    *nodes = (sim_nodes){NULL, NULL};
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

kiln__cu_result cuGraphInstantiateWithFlags(struct CUgraphExec_st **out_executable, struct CUgraph_st *graph,
                                            unsigned long long flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(out_executable && !flags && sim_object_live("graph", graph), SIM_CUDA_INVALID_VALUE,
                  "cuGraphInstantiateWithFlags: %p is no graph, or flags that are not presented", (void *)graph);
    sim_executable *created = sim_object_new("executable graph", sizeof *created);
    if (!created) return SIM_CUDA_OUT_OF_MEMORY;
    created->record = graph->record;
    created->record->references++;
    *out_executable = created;
    return SIM_CUDA_SUCCESS;
}

/* In a capture the graph becomes a part of the other, node by node. */
kiln__cu_result cuGraphLaunch(struct CUgraphExec_st *executable, kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live("executable graph", executable), SIM_CUDA_INVALID_VALUE,
                  "cuGraphLaunch: %p is no executable graph", (void *)executable);
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    for (const sim_node *node = executable->record->nodes.first; node && !result; node = node->next) {
        sim_node launched = *node;
        launched.launch.captured = stream->capture != 0;
        result = sim_cuda_submit(stream, &launched);
    }
    return result;
}

kiln__cu_result cuGraphExecDestroy(struct CUgraphExec_st *executable) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_object_live("executable graph", executable), SIM_CUDA_INVALID_VALUE,
                  "cuGraphExecDestroy: %p is no executable graph", (void *)executable);
    record_release(executable->record);
    sim_object_delete("executable graph", executable);
    return SIM_CUDA_SUCCESS;
}
