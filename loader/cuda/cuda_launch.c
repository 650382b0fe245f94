#include "loader/cuda/cuda_backend.h"
#include <string.h>

static kiln_status __attribute__((cold, noinline))
launch_failed(const kiln_kernel *kernel, const kiln_launch_config *config, const char *call, kiln__cu_result result) {
    kiln_status status = kiln__cuda_fail(kernel->device, call, result);
    /* The handles and the arguments are kiln's; what can be invalid in a launch is its shape. */
    if (result == KILN__CU_ERROR_INVALID_VALUE) status = KILN_ERROR_INVALID_ARGUMENT;
    return kiln__fail_within(status, "kernel %s, grid %ux%ux%u, group %ux%ux%u, %u bytes of dynamic shared memory",
                             kernel->name, config->grid[0], config->grid[1], config->grid[2], config->group[0],
                             config->group[1], config->group[2], config->dynamic_shared_bytes);
}

static inline unsigned at_least_one(unsigned count) {
    return count + (count == 0);
}

static kiln_status __attribute__((cold, noinline))
launch_cluster(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config, void **extra) {
    if (kernel->device->info.target.compute_capability < 90)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "kernel %s: clusters need compute capability 9.0, the device has %d.%d", kernel->name,
                          kernel->device->info.target.compute_capability / 10,
                          kernel->device->info.target.compute_capability % 10);
    if (!kiln__cuda.cuLaunchKernelEx)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kernel %s: clusters need a driver of CUDA 11.8, this is %s",
                          kernel->name, kernel->device->info.driver);
    kiln__cu_launch_attribute cluster = {
        .id = KILN__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        .value.cluster = {at_least_one(config->cluster[0]), at_least_one(config->cluster[1]),
                          at_least_one(config->cluster[2])},
    };
    const kiln__cu_launch_config shape = {
        .grid_x = at_least_one(config->grid[0]),
        .grid_y = at_least_one(config->grid[1]),
        .grid_z = at_least_one(config->grid[2]),
        .block_x = at_least_one(config->group[0]),
        .block_y = at_least_one(config->group[1]),
        .block_z = at_least_one(config->group[2]),
        .shared_bytes = config->dynamic_shared_bytes,
        .stream = stream->native,
        .attributes = &cluster,
        .attribute_count = 1,
    };
    kiln__cu_result result = kiln__cuda.cuLaunchKernelEx(&shape, kernel->function, NULL, extra);
    return result ? launch_failed(kernel, config, "cuLaunchKernelEx", result) : KILN_OK;
}

/* A launch of no cluster, some of whose dimensions are zero, which mean one. */
static kiln_status __attribute__((noinline))
launch_zeros(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config, void **extra) {
    kiln__cu_result result = kiln__cuda.cuLaunchKernel(
        kernel->function, at_least_one(config->grid[0]), at_least_one(config->grid[1]), at_least_one(config->grid[2]),
        at_least_one(config->group[0]), at_least_one(config->group[1]), at_least_one(config->group[2]),
        config->dynamic_shared_bytes, stream->native, NULL, extra);
    return KILN__LIKELY(!result) ? KILN_OK : launch_failed(kernel, config, "cuLaunchKernel", result);
}

/* Reads two of the three as one word. */
static inline bool has_cluster(const kiln_launch_config *config) {
    uint64_t two;
    memcpy(&two, config->cluster, sizeof two);
    return (two | config->cluster[2]) != 0;
}

/* With the device's context current. A product that overflows to zero goes by launch_zeros too, which changes nothing.
 */
static inline kiln_status launch_here(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                                      void **extra) {
    const uint32_t *grid = config->grid, *group = config->group;
    if (KILN__UNLIKELY(has_cluster(config))) return launch_cluster(stream, kernel, config, extra);
    if (KILN__UNLIKELY(grid[0] * grid[1] * grid[2] * group[0] * group[1] * group[2] == 0))
        return launch_zeros(stream, kernel, config, extra);
    kiln__cu_result result =
        kiln__cuda.cuLaunchKernel(kernel->function, grid[0], grid[1], grid[2], group[0], group[1], group[2],
                                  config->dynamic_shared_bytes, stream->native, NULL, extra);
    return KILN__LIKELY(!result) ? KILN_OK : launch_failed(kernel, config, "cuLaunchKernel", result);
}

static kiln_status __attribute__((cold, noinline)) leave_failed(kiln__cu_context previous, kiln_status status) {
    (void)kiln__cuda.cuCtxSetCurrent(previous);
    return status;
}

/* Every instruction here counts: tests/bench/launch_overhead.sh. */
kiln_status kiln__cuda_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                              const void *arguments, size_t arguments_size) {
    /* The driver reads the arguments and does not write them, though its prototype does not say so. */
    void *extra[] = {KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)arguments,
                     KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, &arguments_size, KILN__CU_LAUNCH_PARAM_END};
    kiln__cu_context current = NULL;
    kiln__cu_result result = kiln__cuda.cuCtxGetCurrent(&current);
    /* The device is asked of the stream each time: kept, it would cost a register to save. */
    if (KILN__LIKELY(current == stream->device->native)) return launch_here(stream, kernel, config, extra);
    if (KILN__UNLIKELY(result)) return kiln__cuda_fail(stream->device, "cuCtxGetCurrent", result);
    KILN__CUDA_TRY(stream->device, cuCtxSetCurrent, stream->device->native);
    kiln_status status = launch_here(stream, kernel, config, extra);
    if (KILN__UNLIKELY(status != KILN_OK)) return leave_failed(current, status);
    (void)kiln__cuda.cuCtxSetCurrent(current);
    return KILN_OK;
}
