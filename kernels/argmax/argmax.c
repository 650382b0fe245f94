/* argmax, host side: rows of up to a chunk in one launch, longer ones in two with partials in the workspace. */
#include "kernels/argmax/argmax_args.h"
#include "kernels/common/host.h"

extern const kiln_bundle kiln__bundle_argmax;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/argmax/argmax.def"
};

enum { CHUNK_LOG2 = 13 }; /* elements */

static uint64_t chunks_of(int64_t cols) {
    return ((uint64_t)cols + (1u << CHUNK_LOG2) - 1) >> CHUNK_LOG2;
}

static uint64_t workspace_size(int64_t rows, int64_t cols) {
    uint64_t chunks = chunks_of(cols);
    return chunks <= 1 ? 0 : (uint64_t)rows * chunks * sizeof(kiln_argmax_best);
}

static kiln_status check_sizes(const char *name, int64_t rows, int64_t cols) {
    KILN__TRY(kiln__size_check(name, "rows", rows, INT32_MAX));
    return kiln__size_check(name, "cols", cols, INT32_MAX);
}

/* Rows of more than a chunk. */
static kiln_status launch_long(kiln_stream *stream, const kiln_argmax_params *params, const kiln_kernel *kernel,
                               kiln_argmax_args *args, const char *name) {
    uint64_t needed = workspace_size(params->rows, params->cols);
    KILN__REQUIRE(params->workspace_size >= needed, "%s: workspace_size is %zu: must be at least %llu", name,
                  params->workspace_size, (unsigned long long)needed);
    KILN__REQUIRE(params->workspace && !((uintptr_t)params->workspace & (KILN_VECTOR_BYTES - 1)),
                  "%s: workspace is %p: must be 16-byte aligned device memory", name, params->workspace);
    kiln_launch_config config;
    args->partials = params->workspace;
    args->chunks = (uint32_t)chunks_of(params->cols);
    args->phase = KILN_ARGMAX_PARTIAL;
    KILN__TRY(kiln__grid(name, args->chunks, (uint64_t)params->rows, &config));
    KILN__TRY(kiln__operator_launch(stream, kernel, &config, args, sizeof *args));
    args->phase = KILN_ARGMAX_FINISH;
    KILN__TRY(kiln__grid(name, 1, (uint64_t)params->rows, &config));
    return kiln__operator_launch(stream, kernel, &config, args, sizeof *args);
}

KILN__HOST_SIDE kiln_status argmax(kiln_stream *stream, const kiln_argmax_params *params, size_t params_size,
                                   unsigned part, const char *name) {
    kiln_argmax_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(check_sizes(name, rows, cols));
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t x_stride = params->x_stride ? params->x_stride : cols;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, 1, rows, rows, 2));
    KILN__TRY(kiln__tensor_check(name, "x", params->x, rows, cols, x_stride, size_log2));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_argmax, part, &kiln__bundle_argmax, &module));
    const kiln_kernel *kernel = &module->kernels[KERNEL_argmax];
    unsigned lanes_log2 = kiln__lanes_log2(kiln__vectors(cols, size_log2));
    if (lanes_log2 > KILN_SUBGROUP_LOG2) lanes_log2 = KILN_BLOCK_LOG2;
    kiln_argmax_args args = {
        .y = params->y,
        .x = params->x,
        .shape = {.rows = rows,
                  .cols = cols,
                  .tile = 1u << CHUNK_LOG2,
                  .lanes_log2 = lanes_log2,
                  .wide = kiln__rows_wide((uintptr_t)params->x, rows, x_stride, size_log2)},
        .x_stride = x_stride,
        .chunks = 1,
        .phase = KILN_ARGMAX_ROWS,
    };
    if (cols > 1 << CHUNK_LOG2) return launch_long(stream, params, kernel, &args, name);
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(rows, lanes_log2), &config));
    return kiln__operator_launch(stream, kernel, &config, &args, sizeof args);
}

static kiln_status argmax_workspace(const kiln_argmax_params *params, size_t params_size, size_t *out_size,
                                    const char *name) {
    KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);
    *out_size = 0;
    kiln_argmax_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(check_sizes(name, params->rows, params->cols));
    *out_size = workspace_size(params->rows, params->cols);
    return KILN_OK;
}

#define ARGMAX(part, size)                                                                                      \
    KILN__OPERATOR_FUNCTION(argmax, part)                                                                       \
    kiln_status kiln_argmax_##part##_workspace_size_sized(const kiln_argmax_params *params, size_t params_size, \
                                                          size_t *out_size) {                                   \
        return argmax_workspace(params, params_size, out_size, "argmax_" #part);                                \
    }
KILN__FLOAT_PARTS(ARGMAX)
