/* What kernels ask of the driver while they run: a place for what they print, and a heap. Both are a context's, made
 * when its first kernel that may need them runs. */
#include "tests/sim/cuda/sim_cuda.h"
#include "tests/sim/ptx/memory/ptx_heap.h"
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRINTED = 1 << 20, HEAP = 8 << 20 }; /* the driver's defaults */
enum { LIMIT_PRINTED = 1, LIMIT_HEAP = 2 };

struct sim_runtime {
    uint64_t limits[3]; /* by their numbers */
    ptx_heap *heap;
    pthread_mutex_t lock; /* of what follows: blocks on several threads print */
    char *printed;
    uint64_t length;
    bool lost;
};

static sim_runtime *runtime_of(sim_context *context) {
    if (context->runtime || !(context->runtime = calloc(1, sizeof *context->runtime))) return context->runtime;
    context->runtime->limits[LIMIT_PRINTED] = PRINTED;
    context->runtime->limits[LIMIT_HEAP] = HEAP;
    pthread_mutex_init(&context->runtime->lock, NULL);
    return context->runtime;
}

/* Keeps as much as there is room for, the newest. */
static void print(void *context, const char *text, size_t size) {
    sim_runtime *runtime = context;
    uint64_t room = runtime->limits[LIMIT_PRINTED];
    pthread_mutex_lock(&runtime->lock);
    if (!runtime->printed) runtime->printed = malloc(room);
    if (!runtime->printed || size > room) {
        runtime->lost = true;
    } else {
        uint64_t over = runtime->length + size > room ? runtime->length + size - room : 0;
        memmove(runtime->printed, runtime->printed + over, runtime->length - over);
        memcpy(runtime->printed + runtime->length - over, text, size);
        runtime->length += size - over;
        runtime->lost |= over != 0;
    }
    pthread_mutex_unlock(&runtime->lock);
}

bool sim_cuda_runtime_begin(sim_context *context, ptx_launch *launch) {
    sim_runtime *runtime = runtime_of(context);
    if (!runtime) return false;
    launch->print = print;
    launch->print_context = runtime;
    if (!launch->program->uses_heap) return true;
    if (!runtime->heap) runtime->heap = ptx_heap_new(runtime->limits[LIMIT_HEAP]);
    launch->heap = runtime->heap;
    return runtime->heap;
}

void sim_cuda_runtime_flush(const sim_context *context) {
    sim_runtime *runtime = context->runtime;
    if (!runtime || !(runtime->length || runtime->lost)) return;
    fwrite(runtime->printed, 1, runtime->length, stdout);
    fflush(stdout);
    if (runtime->lost)
        sim_violation("printf: kernels print more than the %llu bytes that there is room for until something waits",
                      (unsigned long long)runtime->limits[LIMIT_PRINTED]);
    runtime->length = 0;
    runtime->lost = false;
}

void sim_cuda_runtime_end(sim_context *context) {
    sim_runtime *runtime = context->runtime;
    if (!runtime) return;
    sim_cuda_runtime_flush(context);
    ptx_heap_free(runtime->heap);
    pthread_mutex_destroy(&runtime->lock);
    free(runtime->printed);
    free(runtime);
    context->runtime = NULL;
}

kiln__cu_result cuCtxSetLimit(kiln__cu_enum limit, size_t value) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(limit == LIMIT_PRINTED || limit == LIMIT_HEAP, SIM_CUDA_INVALID_VALUE,
                  "cuCtxSetLimit: limit %u is not presented", limit);
    kiln__cu_result result = sim_cuda_finish_all(context);
    sim_runtime *runtime = runtime_of(context);
    if (result || !runtime) return result ? result : SIM_CUDA_OUT_OF_MEMORY;
    /* As it was when the first kernel needed it. */
    if (limit == LIMIT_HEAP ? runtime->heap != NULL : runtime->printed != NULL) return SIM_CUDA_INVALID_VALUE;
    runtime->limits[limit] = value;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuCtxGetLimit(size_t *out_value, kiln__cu_enum limit) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_value && (limit == LIMIT_PRINTED || limit == LIMIT_HEAP), SIM_CUDA_INVALID_VALUE,
                  "cuCtxGetLimit: limit %u is not presented, or the result is NULL", limit);
    sim_runtime *runtime = runtime_of(context);
    if (!runtime) return SIM_CUDA_OUT_OF_MEMORY;
    *out_value = runtime->limits[limit];
    return SIM_CUDA_SUCCESS;
}
