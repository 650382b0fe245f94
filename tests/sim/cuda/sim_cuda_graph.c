/* Graphs: what a stream's capture recorded, and its replay. A stream has one order, so that a graph is a list. */
#include "tests/sim/cuda/sim_cuda.h"
#include <stdlib.h>
#include <string.h>

void sim_cuda_nodes_release(sim_nodes *nodes) {
    if (!nodes || --nodes->references) return;
    while (nodes->first) {
        sim_node *next = nodes->first->next;
        free(nodes->first->arguments);
        free(nodes->first);
        nodes->first = next;
    }
    free(nodes);
}

static kiln__cu_result node_add(sim_stream *stream, const sim_node *node) {
    sim_node *added = malloc(sizeof *added);
    if (!added) return SIM_CUDA_OUT_OF_MEMORY;
    *added = *node;
    sim_nodes *nodes = stream->nodes;
    if (nodes->last)
        nodes->last->next = added;
    else
        nodes->first = added;
    nodes->last = added;
    return SIM_CUDA_SUCCESS;
}

/* The arguments are the driver's from here on: the caller may change his copy. */
kiln__cu_result sim_cuda_capture_launch(sim_stream *stream, const sim_function *function, const void *arguments,
                                        const sim_launch *launch) {
    sim_node node = {.function = function, .launch = *launch, .arguments = malloc(launch->arguments_size + 1u)};
    if (!node.arguments) return SIM_CUDA_OUT_OF_MEMORY;
    if (launch->arguments_size) memcpy(node.arguments, arguments, launch->arguments_size);
    kiln__cu_result result = node_add(stream, &node);
    if (result) free(node.arguments);
    return result;
}

kiln__cu_result sim_cuda_capture_copy(sim_stream *stream, void *to, const void *from, size_t size) {
    return node_add(stream, &(sim_node){.to = to, .from = from, .size = size});
}

kiln__cu_result sim_cuda_capture_fill(sim_stream *stream, void *to, int value, size_t size) {
    return node_add(stream, &(sim_node){.to = to, .value = value, .size = size});
}

kiln__cu_result cuGraphDestroy(struct CUgraph_st *graph) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_object_live("graph", graph), SIM_CUDA_INVALID_VALUE, "cuGraphDestroy: %p is no graph",
                  (void *)graph);
    sim_cuda_nodes_release(graph->nodes);
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
    created->nodes = graph->nodes;
    created->nodes->references++;
    *out_executable = created;
    return SIM_CUDA_SUCCESS;
}

static void replay(sim_context *context, const sim_node *node) {
    if (!node->function) {
        if (node->from)
            memcpy(node->to, node->from, node->size);
        else
            memset(node->to, node->value, node->size);
        sim_memory_wrote(node->to, node->size);
        return;
    }
    sim_launch launch = node->launch;
    launch.captured = 0;
    sim_cuda_execute(context, node->function, node->arguments, &launch);
    sim_launch_add(&launch);
}

kiln__cu_result cuGraphLaunch(struct CUgraphExec_st *executable, kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live("executable graph", executable), SIM_CUDA_INVALID_VALUE,
                  "cuGraphLaunch: %p is no executable graph", (void *)executable);
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (result) return result;
    SIM_CUDA_RULE(!stream->capture, SIM_CUDA_STREAM_CAPTURE_UNSUPPORTED, "cuGraphLaunch: in a capture, not presented");
    for (const sim_node *node = executable->nodes->first; node && !context->fault; node = node->next)
        replay(context, node);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuGraphExecDestroy(struct CUgraphExec_st *executable) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_object_live("executable graph", executable), SIM_CUDA_INVALID_VALUE,
                  "cuGraphExecDestroy: %p is no executable graph", (void *)executable);
    sim_cuda_nodes_release(executable->nodes);
    sim_object_delete("executable graph", executable);
    return SIM_CUDA_SUCCESS;
}
