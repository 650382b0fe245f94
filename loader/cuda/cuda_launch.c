#include "loader/cuda/cuda_backend.h"
#include <string.h>

/* Which property of a launch exceeds the limits of the device or the kernel, as a sentence; empty if none is known to.
 */
static void explain_shape(const kiln_kernel *kernel, const kiln_launch_config *config, kiln__text *out) {
    static const char *const axes[] = {"x", "y", "z"};
    static const uint32_t grid_most[] = {INT32_MAX, 65535, 65535}, block_most[] = {1024, 1024, 64};
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        threads *= config->block[i] ? config->block[i] : 1;
        if (config->grid[i] > grid_most[i])
            kiln__text_add(out, ": grid %s is %u, at most %u", axes[i], config->grid[i], grid_most[i]);
        if (config->block[i] > block_most[i])
            kiln__text_add(out, ": block %s is %u, at most %u", axes[i], config->block[i], block_most[i]);
    }
    if (kernel->max_threads && threads > kernel->max_threads)
        kiln__text_add(out, ": a block has %llu threads, at most %u", (unsigned long long)threads, kernel->max_threads);
    const uint32_t most = (uint32_t)kernel->device->info.max_shared_bytes;
    const uint32_t room = kernel->info.shared_bytes < most ? most - kernel->info.shared_bytes : 0;
    if (config->dynamic_shared_bytes > room)
        kiln__text_add(out, ": dynamic shared memory is %u bytes, at most %u", config->dynamic_shared_bytes, room);
}

static kiln_status __attribute__((cold, noinline))
launch_failed(const kiln_kernel *kernel, const kiln_launch_config *config, const char *call, kiln__cu_result result) {
    kiln_status status = kiln__cuda_fail(kernel->device, call, result);
    /* The handles and the arguments are kiln's; what can be invalid in a launch is its shape. */
    if (result == KILN__CU_ERROR_INVALID_VALUE) status = KILN_ERROR_INVALID_ARGUMENT;
    /* The image was chosen, and the kernel found, when it was loaded: such an error is the driver's own. */
    if (status == KILN_ERROR_NO_IMAGE || status == KILN_ERROR_NOT_FOUND) status = KILN_ERROR_DRIVER;
    char bytes[256] = "";
    kiln__text shape = {bytes, sizeof bytes, 0};
    explain_shape(kernel, config, &shape);
    return kiln__fail_within(status, "kernel %s, grid %ux%ux%u, block %ux%ux%u, %u bytes of dynamic shared memory%s",
                             kernel->name, kiln__at_least_one(config->grid[0]), kiln__at_least_one(config->grid[1]),
                             kiln__at_least_one(config->grid[2]), kiln__at_least_one(config->block[0]),
                             kiln__at_least_one(config->block[1]), kiln__at_least_one(config->block[2]),
                             config->dynamic_shared_bytes, bytes);
}

/* Checks that the device and the driver have what a launch needs of the driver's newer call; what says it in words. */
static kiln_status check_extended(const kiln_kernel *kernel, const char *what, int32_t capability) {
    const kiln_device_info *info = &kernel->device->info;
    if (info->target.compute_capability < capability)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kernel %s: %s need compute capability %d.%d, the device has %d.%d",
                          kernel->name, what, capability / 10, capability % 10, info->target.compute_capability / 10,
                          info->target.compute_capability % 10);
    if (!kiln__cuda.cuLaunchKernelEx)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kernel %s: %s need a driver of CUDA 11.8, this is %s", kernel->name,
                          what, info->driver);
    return KILN_OK;
}

enum { ATTRIBUTES_MAX = 4, PORTABLE_CLUSTER = 8 };

/* The attributes that a launch's cluster and flags ask for. */
static kiln_status list_attributes(const kiln_kernel *kernel, const kiln_launch_config *config,
                                   kiln__cu_launch_attribute out_attributes[ATTRIBUTES_MAX], unsigned *out_count) {
    const uint32_t *cluster = config->cluster;
    unsigned count = 0;
    *out_count = 0;
    KILN__TRY(kiln__launch_flags_check(kernel, config));
    if (cluster[0] || cluster[1] || cluster[2]) {
        KILN__TRY(check_extended(kernel, "clusters", 90));
        out_attributes[count++] = (kiln__cu_launch_attribute){.id = KILN__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                                              .value.cluster = {kiln__at_least_one(cluster[0]),
                                                                                kiln__at_least_one(cluster[1]),
                                                                                kiln__at_least_one(cluster[2])}};
    }
    if (config->flags & KILN_LAUNCH_COOPERATIVE) {
        KILN__TRY(check_extended(kernel, "cooperative launches", 0));
        out_attributes[count++] =
            (kiln__cu_launch_attribute){.id = KILN__CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.number = 1};
    }
    if (config->flags & KILN_LAUNCH_PROGRAMMATIC) {
        KILN__TRY(check_extended(kernel, "programmatic dependent launches", 90));
        out_attributes[count++] = (kiln__cu_launch_attribute){
            .id = KILN__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.number = 1};
    }
    if (config->flags & KILN_LAUNCH_PRIORITY) {
        KILN__TRY(check_extended(kernel, "launches with a priority", 0));
        out_attributes[count++] =
            (kiln__cu_launch_attribute){.id = KILN__CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.number = config->priority};
    }
    *out_count = count;
    return KILN_OK;
}

/* A cluster of more than 8 blocks, which not every device has room for, must be allowed for its kernel. */
static kiln_status allow_cluster(const kiln_kernel *kernel, const uint32_t cluster[3]) {
    uint64_t blocks =
        (uint64_t)kiln__at_least_one(cluster[0]) * kiln__at_least_one(cluster[1]) * kiln__at_least_one(cluster[2]);
    if (blocks > PORTABLE_CLUSTER)
        KILN__CUDA_CALL(kernel->device, cuFuncSetAttribute, kernel->function,
                        KILN__CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    return KILN_OK;
}

/* A launch of clusters or with flags, or one some of whose dimensions are zero, which mean one. */
static kiln_status __attribute__((cold, noinline))
launch_any(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config, const void *arguments) {
    kiln__cu_launch_attribute attributes[ATTRIBUTES_MAX];
    unsigned count;
    KILN__TRY(list_attributes(kernel, config, attributes, &count));
    const kiln__cu_launch_config shape = {
        .grid_x = kiln__at_least_one(config->grid[0]),
        .grid_y = kiln__at_least_one(config->grid[1]),
        .grid_z = kiln__at_least_one(config->grid[2]),
        .block_x = kiln__at_least_one(config->block[0]),
        .block_y = kiln__at_least_one(config->block[1]),
        .block_z = kiln__at_least_one(config->block[2]),
        .shared_bytes = config->dynamic_shared_bytes,
        .stream = stream->native,
        .attributes = attributes,
        .attribute_count = count,
    };
    size_t arguments_size = kernel->arguments_size;
    void *extra[] = {KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)arguments,
                     KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, &arguments_size, KILN__CU_LAUNCH_PARAM_END};
    KILN__TRY(allow_cluster(kernel, config->cluster));
    kiln__cuda_scope here;
    KILN__TRY(kiln__cuda_enter(kernel->device, &here));
    kiln__cu_result result =
        count ? kiln__cuda.cuLaunchKernelEx(&shape, kernel->function, NULL, extra)
              : kiln__cuda.cuLaunchKernel(kernel->function, shape.grid_x, shape.grid_y, shape.grid_z, shape.block_x,
                                          shape.block_y, shape.block_z, shape.shared_bytes, shape.stream, NULL, extra);
    kiln__cuda_leave(&here);
    if (!result) return KILN_OK;
    return launch_failed(kernel, config, count ? "cuLaunchKernelEx" : "cuLaunchKernel", result);
}

/* No cluster, no flag and no dimension of zero: what most launches are. The cluster's three and the flags are read as
 * two words. A product that overflows to zero is not plain either, which changes nothing. */
static inline bool is_plain(const kiln_launch_config *config) {
    const uint32_t *grid = config->grid, *block = config->block;
    uint64_t extended[2];
    _Static_assert(offsetof(kiln_launch_config, flags) == offsetof(kiln_launch_config, cluster) + 12,
                   "one behind the other");
    memcpy(extended, (const char *)config + offsetof(kiln_launch_config, cluster), sizeof extended);
    return (extended[0] | extended[1]) == 0 && grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2] != 0;
}

/* What a launch needs after a call of the driver. The driver has pointers into it, so the compiler leaves it in memory
 * and saves no register. */
typedef struct launch_frame {
    const kiln_launch_config *config;
    kiln__cu_context previous;
    void *extra[5];
    void *native; /* the stream's */
} launch_frame;

/* Where the driver reads the size is where the kernel begins. */
static inline const kiln_kernel *frame_kernel(const launch_frame *frame) {
    _Static_assert(offsetof(kiln_kernel, arguments_size) == 0, "a kernel begins with the size of its arguments");
    return frame->extra[3];
}

/* With the device's context current. */
static inline kiln_status launch_here(launch_frame *frame) {
    const kiln_launch_config *config = frame->config;
    const uint32_t *grid = config->grid, *block = config->block;
    kiln__cu_result result =
        kiln__cuda.cuLaunchKernel(frame_kernel(frame)->function, grid[0], grid[1], grid[2], block[0], block[1],
                                  block[2], config->dynamic_shared_bytes, frame->native, NULL, frame->extra);
    return KILN__LIKELY(!result) ? KILN_OK
                                 : launch_failed(frame_kernel(frame), frame->config, "cuLaunchKernel", result);
}

static kiln_status __attribute__((cold, noinline)) leave_failed(kiln__cu_context previous, kiln_status status) {
    (void)kiln__cuda.cuCtxSetCurrent(previous);
    return status;
}

/* Every instruction here counts: tests/bench/launch_overhead.sh. */
static inline __attribute__((always_inline)) kiln_status
launch_plain(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config, const void *arguments) {
    launch_frame frame;
    frame.native = stream->native;
    frame.config = config;
    frame.previous = NULL;
    /* The driver reads the arguments and their size and does not write them, though its prototype does not say so. */
    frame.extra[0] = KILN__CU_LAUNCH_PARAM_BUFFER_POINTER;
    frame.extra[1] = (void *)(uintptr_t)arguments;
    frame.extra[2] = KILN__CU_LAUNCH_PARAM_BUFFER_SIZE;
    frame.extra[3] = (void *)(uintptr_t)kernel;
    frame.extra[4] = KILN__CU_LAUNCH_PARAM_END;
    kiln__cu_result result = kiln__cuda.cuCtxGetCurrent(&frame.previous);
    kiln__cu_context context = frame_kernel(&frame)->device->native;
    if (KILN__LIKELY(frame.previous == context)) return launch_here(&frame);
    if (KILN__UNLIKELY(result)) return kiln__cuda_fail(frame_kernel(&frame)->device, "cuCtxGetCurrent", result);
    KILN__CUDA_TRY(frame_kernel(&frame)->device, cuCtxSetCurrent, context);
    kiln_status status = launch_here(&frame);
    if (KILN__UNLIKELY(status != KILN_OK)) return leave_failed(frame.previous, status);
    (void)kiln__cuda.cuCtxSetCurrent(frame.previous);
    return KILN_OK;
}

/* A launch on a programmatic stream. */
static kiln_status __attribute__((noinline))
launch_programmatic(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                    const void *arguments) {
    kiln_launch_config overlapping = *config;
    if (kernel->info.programmatic) overlapping.flags |= KILN_LAUNCH_PROGRAMMATIC;
    return launch_any(stream, kernel, &overlapping, arguments);
}

kiln_status kiln__cuda_launch_plain(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                                    const void *arguments) {
    if (KILN__UNLIKELY(kiln__cuda_stream_bits(stream) & KILN__CUDA_STREAM_PROGRAMMATIC))
        return launch_programmatic(stream, kernel, config, arguments);
    return launch_plain(stream, kernel, config, arguments);
}

kiln_status kiln__cuda_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                              const void *arguments) {
    if (KILN__UNLIKELY(kiln__cuda_stream_bits(stream) & KILN__CUDA_STREAM_PROGRAMMATIC))
        return launch_programmatic(stream, kernel, config, arguments);
    if (KILN__UNLIKELY(!is_plain(config))) return launch_any(stream, kernel, config, arguments);
    return launch_plain(stream, kernel, config, arguments);
}
