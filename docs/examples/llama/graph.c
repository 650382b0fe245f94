#include "graph.h"
#include <dlfcn.h>
#include <stdlib.h>

/* What the driver exports of graphs and, since capturing and launching want one, of contexts; 0 is success. */
typedef struct graph_functions {
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*get_current)(void **context);
    int (*make_current)(void *context);
    int (*begin)(void *stream, int mode);
    int (*end)(void *stream, void **graph);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch)(void *executable, void *stream);
    int (*destroy)(void *graph);
    int (*destroy_executable)(void *executable);
} graph_functions;

struct llama_graph {
    void *driver, *context, *executable;
    int device;
    bool retained;
    graph_functions functions;
};

enum { CAPTURE_THREAD = 1 };

static bool find_functions(void *driver, graph_functions *out) {
    *(void **)&out->retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&out->release = dlsym(driver, "cuDevicePrimaryCtxRelease_v2");
    *(void **)&out->get_current = dlsym(driver, "cuCtxGetCurrent");
    *(void **)&out->make_current = dlsym(driver, "cuCtxSetCurrent");
    *(void **)&out->begin = dlsym(driver, "cuStreamBeginCapture_v2");
    *(void **)&out->end = dlsym(driver, "cuStreamEndCapture");
    *(void **)&out->instantiate = dlsym(driver, "cuGraphInstantiateWithFlags");
    *(void **)&out->launch = dlsym(driver, "cuGraphLaunch");
    *(void **)&out->destroy = dlsym(driver, "cuGraphDestroy");
    *(void **)&out->destroy_executable = dlsym(driver, "cuGraphExecDestroy");
    return out->retain && out->release && out->get_current && out->make_current && out->begin && out->end &&
           out->instantiate && out->launch && out->destroy && out->destroy_executable;
}

/* Finds the driver, which kiln has loaded already, and the device's primary context, which is kiln's. */
static bool find_driver(llama_graph *graph, const kiln_stream *stream) {
    kiln_device_info info;
    if (kiln_device_get_info(stream->device, &info) != KILN_OK || info.backend != KILN_BACKEND_CUDA) return false;
    graph->driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!graph->driver || !find_functions(graph->driver, &graph->functions)) return false;
    graph->device = info.ordinal; /* the driver's devices are their own numbers */
    graph->retained = graph->functions.retain(&graph->context, graph->device) == 0;
    return graph->retained;
}

/* Makes the context current, as kiln does in each call of its own: the thread may have another, or none. */
static bool enter(const llama_graph *graph, void **out_before) {
    return graph->functions.get_current(out_before) == 0 &&
           (*out_before == graph->context || graph->functions.make_current(graph->context) == 0);
}

static void leave(const llama_graph *graph, void *before) {
    if (before != graph->context) graph->functions.make_current(before);
}

/* The context is current. */
static bool capture(llama_graph *graph, kiln_stream *stream, kiln_status (*record)(void *user), void *user,
                    kiln_status *out_status) {
    void *recorded = NULL;
    if (graph->functions.begin(stream->native, CAPTURE_THREAD)) return false;
    *out_status = record(user);
    bool captured = graph->functions.end(stream->native, &recorded) == 0 && *out_status == KILN_OK;
    bool good = captured && graph->functions.instantiate(&graph->executable, recorded, 0) == 0;
    if (recorded) graph->functions.destroy(recorded);
    return good;
}

llama_graph *llama_graph_capture(kiln_stream *stream, kiln_status (*record)(void *user), void *user,
                                 kiln_status *out_status) {
    llama_graph *graph = calloc(1, sizeof *graph);
    void *before;
    bool good = false;
    *out_status = KILN_OK;
    if (!graph) return NULL;
    if (find_driver(graph, stream) && enter(graph, &before)) {
        good = capture(graph, stream, record, user, out_status);
        leave(graph, before);
    }
    if (good) return graph;
    llama_graph_destroy(graph);
    return NULL;
}

bool llama_graph_launch(llama_graph *graph, kiln_stream *stream) {
    void *before;
    if (!enter(graph, &before)) return false;
    bool good = graph->functions.launch(graph->executable, stream->native) == 0;
    leave(graph, before);
    return good;
}

void llama_graph_destroy(llama_graph *graph) {
    if (!graph) return;
    if (graph->executable) graph->functions.destroy_executable(graph->executable);
    if (graph->retained) graph->functions.release(graph->device);
    if (graph->driver) dlclose(graph->driver);
    free(graph);
}
