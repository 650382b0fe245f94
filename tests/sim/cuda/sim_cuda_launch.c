/* Launches: every rule that a launch must keep, and a record of it. */
#include "tests/sim/cuda/sim_cuda.h"
#include "tests/sim/ptx/decode/ptx_code.h"
#include <stdio.h>
#include <string.h>

enum {
    BLOCK_MAX = 1024,
    BLOCK_Z_MAX = 64,
    GRID_YZ_MAX = 65535,
    ARGUMENTS_MAX = 32764,
    ATTRIBUTE_IGNORE = 0,
    ATTRIBUTE_COOPERATIVE = 2,
    ATTRIBUTE_OVERLAP = 6,
    ATTRIBUTE_PRIORITY = 8, /* a wish, which no order here is bound by */
    CLUSTER_MAX = 8,
    CLUSTER_NON_PORTABLE_MAX = 16
};

uint64_t sim_cuda_blocks_together(const sim_function *function, uint64_t threads, uint32_t shared_bytes) {
    kiln__cu_device device = function->module->context->device;
    return (uint64_t)sim_cuda_blocks_of(device, function->entry, (uint32_t)threads, shared_bytes) *
           sim_multiprocessors((uint32_t)sim_cuda_processor(device)->count);
}

/* The cluster that a launch or its kernel asks for; 0: neither. false: both do, and differ. */
static bool cluster_of(const sim_function *function, const sim_launch *launch, uint32_t out_size[3]) {
    const ptx_program *program = function->module->program;
    const ptx_code *code = program ? ptx_program_find(program, function->entry->name) : NULL;
    memcpy(out_size, launch->cluster, sizeof launch->cluster);
    if (!code || !code->function->cluster[0]) return true;
    memcpy(out_size, code->function->cluster, sizeof code->function->cluster);
    return !launch->cluster[0] || memcmp(out_size, launch->cluster, sizeof launch->cluster) == 0;
}

/* A shape that the device cannot launch is an error of the caller's data, which the driver reports and forgives. */
static kiln__cu_result check_shape(const sim_function *function, const sim_launch *launch) {
    uint64_t threads = (uint64_t)launch->group[0] * launch->group[1] * launch->group[2];
    for (int i = 0; i < 3; i++)
        if (!launch->grid[i] || !launch->group[i]) return SIM_CUDA_INVALID_VALUE;
    if (launch->grid[0] > INT32_MAX || launch->grid[1] > GRID_YZ_MAX || launch->grid[2] > GRID_YZ_MAX)
        return SIM_CUDA_INVALID_VALUE;
    if (launch->group[0] > BLOCK_MAX || launch->group[1] > BLOCK_MAX || launch->group[2] > BLOCK_Z_MAX)
        return SIM_CUDA_INVALID_VALUE;
    if (threads > BLOCK_MAX || launch->shared_bytes > function->max_dynamic_shared) return SIM_CUDA_INVALID_VALUE;
    if (function->module->program) {
        const ptx_code *code = ptx_program_find(function->module->program, function->entry->name);
        if (code->function->exact_threads && threads != code->function->max_threads) return SIM_CUDA_INVALID_VALUE;
    }
    if (threads > function->entry->max_threads) return SIM_CUDA_LAUNCH_OUT_OF_RESOURCES;
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (launch->cooperative && blocks > sim_cuda_blocks_together(function, threads, launch->shared_bytes))
        return SIM_CUDA_COOPERATIVE_LAUNCH_TOO_LARGE;
    uint32_t size[3];
    if (!cluster_of(function, launch, size)) return SIM_CUDA_INVALID_CLUSTER_SIZE;
    const uint64_t cluster = (uint64_t)size[0] * size[1] * size[2];
    SIM_CUDA_RULE(cluster <= 1 || sim_cuda_capability(function->module->context->device) >= 90, SIM_CUDA_NOT_SUPPORTED,
                  "cuLaunchKernelEx: clusters (attribute 4) need compute capability 9.0");
    for (int i = 0; i < 3; i++)
        if (size[i] && launch->grid[i] % size[i]) return SIM_CUDA_INVALID_CLUSTER_SIZE;
    return cluster <= (function->large_clusters ? CLUSTER_NON_PORTABLE_MAX : CLUSTER_MAX)
               ? SIM_CUDA_SUCCESS
               : SIM_CUDA_INVALID_CLUSTER_SIZE;
}

/* The packed arguments of a launch. */
typedef struct arguments {
    const void *bytes;
    size_t size;
    uint8_t gathered[ARGUMENTS_MAX];
} arguments;

/* Takes a buffer that ends before the kernel's parameters do, as the driver does: what is behind it is not copied. */
static void cut_short(uint32_t size, arguments *read) {
    enum { LEFT_BEHIND = 0xa5 };
    memset(read->gathered, LEFT_BEHIND, size);
    memcpy(read->gathered, read->bytes, read->size);
    read->bytes = read->gathered;
    read->size = size;
}

/* The extra array must be pointer, size, end, in the documented form. A buffer of more bytes than the kernel's
 * parameters have is refused as out of resources, which was seen of driver 580; so was that one of fewer is taken. */
static kiln__cu_result read_extra(const sim_function *function, void **extra, arguments *read) {
    SIM_CUDA_RULE(extra[0] == KILN__CU_LAUNCH_PARAM_BUFFER_POINTER && extra[2] == KILN__CU_LAUNCH_PARAM_BUFFER_SIZE &&
                      extra[4] == KILN__CU_LAUNCH_PARAM_END,
                  SIM_CUDA_INVALID_VALUE, "cuLaunchKernel: extra is not {pointer, p, size, &n, end}");
    SIM_CUDA_RULE(extra[3], SIM_CUDA_INVALID_VALUE, "cuLaunchKernel: the pointer to the size is NULL");
    read->bytes = extra[1];
    read->size = *(const size_t *)extra[3];
    const sim_entry *entry = function->entry;
    SIM_CUDA_RULE(read->size <= ARGUMENTS_MAX && (read->bytes || (!read->size && !entry->arguments_size)),
                  SIM_CUDA_INVALID_VALUE, "cuLaunchKernel: %zu bytes of arguments at %p", read->size, read->bytes);
    if (!entry->arguments_known) return SIM_CUDA_SUCCESS;
    SIM_CUDA_RULE(read->size <= entry->arguments_size, SIM_CUDA_LAUNCH_OUT_OF_RESOURCES,
                  "cuLaunchKernel: %zu bytes of arguments, %s takes %u", read->size, entry->name,
                  entry->arguments_size);
    if (read->size < entry->arguments_size) cut_short(entry->arguments_size, read);
    return SIM_CUDA_SUCCESS;
}

/* A pointer for each parameter of the kernel. */
static kiln__cu_result gather(const sim_entry *entry, void **parameters, arguments *read) {
    SIM_CUDA_RULE(entry->arguments_known && entry->arguments_size <= ARGUMENTS_MAX, SIM_CUDA_INVALID_IMAGE,
                  "cuLaunchKernel: the parameters of %s are not known", entry->name);
    SIM_CUDA_RULE(parameters || !entry->parameter_count, SIM_CUDA_INVALID_VALUE,
                  "cuLaunchKernel: no arguments, %s takes %u", entry->name, entry->parameter_count);
    for (uint32_t i = 0; i < entry->parameter_count; i++) {
        SIM_CUDA_RULE(parameters[i], SIM_CUDA_INVALID_VALUE, "cuLaunchKernel: argument %u of %s is NULL", i,
                      entry->name);
        memcpy(read->gathered + entry->parameters[i].offset, parameters[i], entry->parameters[i].size);
    }
    read->bytes = read->gathered;
    read->size = entry->arguments_size;
    return SIM_CUDA_SUCCESS;
}

static kiln__cu_result read_arguments(const sim_function *function, void **parameters, void **extra, arguments *read) {
    SIM_CUDA_RULE(!parameters || !extra, SIM_CUDA_INVALID_VALUE,
                  "cuLaunchKernel: the arguments are given twice, in parameters and in extra");
    return extra ? read_extra(function, extra, read) : gather(function->entry, parameters, read);
}

static kiln__cu_result launch(const char *call, sim_context *context, kiln__cu_function function,
                              kiln__cu_stream handle, void **parameters, void **extra, sim_launch *shape) {
    SIM_CUDA_RULE(sim_object_live(".function", function), SIM_CUDA_INVALID_HANDLE, "%s: %p is no function", call,
                  (void *)function);
    SIM_CUDA_RULE(function->module->context == context, SIM_CUDA_INVALID_CONTEXT,
                  "%s: %s is of another context than the current one", call, function->entry->name);
    sim_stream *stream = sim_cuda_stream(call, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (!result) result = check_shape(function, shape);
    arguments read = {0};
    if (!result) result = read_arguments(function, parameters, extra, &read);
    if (result) return result;
    SIM_CUDA_RULE(function->loaded || !stream->capture, SIM_CUDA_STREAM_CAPTURE_UNSUPPORTED,
                  "%s: %s would be loaded inside a capture", call, function->entry->name);
    function->loaded = true;
    snprintf(shape->kernel, sizeof shape->kernel, "%s", function->entry->name);
    size_t kept = read.size < sizeof shape->arguments ? read.size : sizeof shape->arguments;
    if (kept) memcpy(shape->arguments, read.bytes, kept);
    shape->arguments_size = (uint32_t)read.size;
    shape->stream = (uintptr_t)handle;
    shape->device = context->device;
    shape->captured = stream->capture != 0;
    /* A launch that is not executed is recorded now, else when it is. */
    if (shape->captured || !function->module->program) sim_launch_add(shape);
    if (!function->module->program && !shape->captured) return SIM_CUDA_SUCCESS;
    void *bytes = (void *)(uintptr_t)read.bytes; /* copied */
    return sim_cuda_submit(stream, &(sim_node){.function = function, .launch = *shape, .arguments = bytes});
}

kiln__cu_result cuLaunchKernel(kiln__cu_function function, unsigned int grid_x, unsigned int grid_y,
                               unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
                               unsigned int shared_bytes, kiln__cu_stream stream, void **parameters, void **extra) {
    SIM_CUDA_ENTER_CONTEXT(context);
    sim_launch shape = {
        .grid = {grid_x, grid_y, grid_z}, .group = {block_x, block_y, block_z}, .shared_bytes = shared_bytes};
    return launch(__func__, context, function, stream, parameters, extra, &shape);
}

kiln__cu_result cuLaunchCooperativeKernel(kiln__cu_function function, unsigned int grid_x, unsigned int grid_y,
                                          unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                          unsigned int block_z, unsigned int shared_bytes, kiln__cu_stream stream,
                                          void **parameters) {
    SIM_CUDA_ENTER_CONTEXT(context);
    sim_launch shape = {.grid = {grid_x, grid_y, grid_z},
                        .group = {block_x, block_y, block_z},
                        .cooperative = 1,
                        .shared_bytes = shared_bytes};
    return launch(__func__, context, function, stream, parameters, NULL, &shape);
}

kiln__cu_result cuLaunchKernelEx(const kiln__cu_launch_config *config, kiln__cu_function function, void **parameters,
                                 void **extra) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(config && (!config->attribute_count || config->attributes), SIM_CUDA_INVALID_VALUE,
                  "cuLaunchKernelEx: no configuration, or attributes that are NULL");
    sim_launch shape = {.grid = {config->grid_x, config->grid_y, config->grid_z},
                        .group = {config->block_x, config->block_y, config->block_z},
                        .shared_bytes = config->shared_bytes};
    for (unsigned int i = 0; i < config->attribute_count; i++) {
        const kiln__cu_launch_attribute *attribute = &config->attributes[i];
        if (attribute->id == ATTRIBUTE_IGNORE) continue;
        if (attribute->id == ATTRIBUTE_PRIORITY) {
            memcpy(&shape.priority, attribute->value.bytes, sizeof shape.priority);
            continue;
        }
        if (attribute->id == ATTRIBUTE_COOPERATIVE) {
            shape.cooperative = (int32_t)(uint32_t)attribute->value.bytes[0];
            continue;
        }
        if (attribute->id == ATTRIBUTE_OVERLAP) {
            int32_t value;
            memcpy(&value, attribute->value.bytes, sizeof value);
            SIM_CUDA_RULE(value == 0 || value == 1, SIM_CUDA_INVALID_VALUE,
                          "cuLaunchKernelEx: programmatic stream serialization (attribute 6) is %d", value);
            SIM_CUDA_RULE(!value || sim_cuda_capability(context->device) >= 90, SIM_CUDA_NOT_SUPPORTED,
                          "cuLaunchKernelEx: programmatic stream serialization (attribute 6) needs compute capability "
                          "9.0");
            shape.overlap = value;
            continue;
        }
        SIM_CUDA_RULE(attribute->id == KILN__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, SIM_CUDA_INVALID_VALUE,
                      "cuLaunchKernelEx: attribute %u is not presented", attribute->id);
        shape.cluster[0] = attribute->value.cluster.x;
        shape.cluster[1] = attribute->value.cluster.y;
        shape.cluster[2] = attribute->value.cluster.z;
    }
    return launch(__func__, context, function, config->stream, parameters, extra, &shape);
}
