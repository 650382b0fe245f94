/* softmax, host side: rows of up to a chunk in one launch, longer ones in two with partials in the workspace. */
#include "kernels/common/host.h"
#include "kernels/softmax/softmax_args.h"

extern const kiln_bundle kiln__bundle_softmax;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/softmax/softmax.def"
};

/* A block holds a row of up to a chunk, in at most SLOTS vectors of each thread. */
enum { CHUNK_BYTES_LOG2 = 15, SLOTS = (1 << CHUNK_BYTES_LOG2) / KILN_VECTOR_BYTES / KILN_BLOCK };

static uint64_t chunks_of(int64_t cols, unsigned size_log2) {
    return ((uint64_t)cols + (1u << (CHUNK_BYTES_LOG2 - size_log2)) - 1) >> (CHUNK_BYTES_LOG2 - size_log2);
}

static uint64_t workspace_size(int64_t rows, int64_t cols, unsigned size_log2) {
    uint64_t chunks = chunks_of(cols, size_log2);
    return chunks <= 1 ? 0 : (uint64_t)rows * chunks * sizeof(kiln_softmax_partial);
}

/* How many threads share a row where lanes_log2 would: a subgroup as long as it holds the row, then the whole block. */
static inline unsigned row_lanes_log2(unsigned lanes_log2, uint64_t vectors) {
    if (vectors > SLOTS << KILN_SUBGROUP_LOG2) return KILN_BLOCK_LOG2;
    return lanes_log2 < KILN_SUBGROUP_LOG2 ? lanes_log2 : KILN_SUBGROUP_LOG2;
}

/* Rows of more than a chunk. */
static kiln_status launch_long(kiln_stream *stream, const kiln_softmax_params *params, const kiln_kernel *kernels,
                               kiln_softmax_args *args, kiln_launch_config *config, const char *name,
                               unsigned size_log2) {
    uint64_t needed = workspace_size(params->rows, params->cols, size_log2);
    KILN__REQUIRE(params->workspace_size >= needed, "%s: workspace_size is %zu: must be at least %llu", name,
                  params->workspace_size, (unsigned long long)needed);
    KILN__REQUIRE(params->workspace && !((uintptr_t)params->workspace & (KILN_VECTOR_BYTES - 1)),
                  "%s: workspace is %p: must be 16-byte aligned device memory", name, params->workspace);
    KILN__TRY(kiln__grid(name, chunks_of(params->cols, size_log2), (uint64_t)params->rows, config));
    config->dynamic_shared_bytes = 1 << CHUNK_BYTES_LOG2;
    args->partials = params->workspace;
    args->chunks = config->grid[0];
    args->phase = KILN_SOFTMAX_PARTIAL;
    KILN__TRY(kiln__operator_launch(stream, &kernels[KERNEL_softmax_rows], config, args, sizeof *args));
    args->phase = KILN_SOFTMAX_FINISH;
    return kiln__operator_launch(stream, &kernels[KERNEL_softmax_rows], config, args, sizeof *args);
}

/* Every call that is not ordinary, wrong ones and the first one, which loads, among them. */
static kiln_status __attribute__((noinline)) softmax_any(kiln_stream *stream, const kiln_softmax_params *params,
                                                         size_t params_size, unsigned part, const char *name) {
    kiln_softmax_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__sizes_check(name, stream, params->rows, params->cols));
    if (KILN__UNLIKELY(!params->rows || !params->cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t y_stride = params->y_stride ? params->y_stride : params->cols;
    int64_t x_stride = params->x_stride ? params->x_stride : params->cols;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, params->rows, params->cols, y_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "x", params->x, params->rows, params->cols, x_stride, size_log2));
    KILN__TRY(kiln__in_place_check(name, "y", params->y, y_stride, "x", params->x, x_stride));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_softmax, part, &kiln__bundle_softmax, &module));

    uint64_t vectors = kiln__vectors(params->cols, size_log2);
    unsigned lanes_log2 = row_lanes_log2(kiln__lanes_log2(vectors), vectors);
    kiln_softmax_args args = {
        .y = params->y,
        .x = params->x,
        .shape = {.rows = params->rows,
                  .cols = params->cols,
                  .tile = 1u << (CHUNK_BYTES_LOG2 - size_log2),
                  .lanes_log2 = lanes_log2,
                  .wide = kiln__rows_wide((uintptr_t)params->y | (uintptr_t)params->x, params->rows,
                                          y_stride | x_stride, size_log2)},
        .y_stride = y_stride,
        .x_stride = x_stride,
        .chunks = 1,
    };
    kiln_launch_config config = {0};
    if (KILN__UNLIKELY(vectors > SLOTS << KILN_BLOCK_LOG2))
        return launch_long(stream, params, module->kernels, &args, &config, name, size_log2);

    uint64_t rounds = (vectors + (1u << lanes_log2) - 1) >> lanes_log2;
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(params->rows, lanes_log2), &config));
    config.dynamic_shared_bytes = (uint32_t)rounds * KILN_BLOCK * KILN_VECTOR_BYTES;
    return kiln__operator_launch(stream, &module->kernels[KERNEL_softmax_rows], &config, &args, sizeof args);
}

KILN__HOST_SIDE kiln_status softmax(kiln_stream *stream, const kiln_softmax_params *params, size_t params_size,
                                    unsigned part, const char *name) {
    if (KILN__UNLIKELY(!kiln__is_current(stream, params, params_size, sizeof *params)))
        return softmax_any(stream, params, params_size, part, name);
    const unsigned size_log2 = kiln__part_size_log2(part);
    int64_t cols = params->cols;
    int64_t stride = params->x_stride ? params->x_stride : cols;
    uintptr_t addresses = (uintptr_t)params->y | (uintptr_t)params->x;
    bool ordinary = kiln__both_set(params->y, params->x) && params->y_stride == params->x_stride &&
                    kiln__is_ordinary(params->rows, cols, stride, addresses, size_log2, SLOTS << KILN_BLOCK_LOG2);
    if (KILN__UNLIKELY(!ordinary)) return softmax_any(stream, params, params_size, part, name);

    const kiln_module *module = kiln__operator_get(stream, KILN__OPERATOR_softmax, part);
    if (KILN__UNLIKELY(!module)) return softmax_any(stream, params, params_size, part, name);
    uint32_t last = (uint32_t)(cols - 1) >> (4 - size_log2); /* vector of a row */
    unsigned lanes_log2 = row_lanes_log2(kiln__ordinary_lanes_log2(cols, size_log2), last + 1);
    const kiln_softmax_args args = {
        .y = params->y,
        .x = params->x,
        .shape = {.rows = params->rows,
                  .cols = cols,
                  .tile = 1u << (CHUNK_BYTES_LOG2 - size_log2),
                  .lanes_log2 = lanes_log2,
                  .wide = 1},
        .y_stride = stride,
        .x_stride = stride,
        .chunks = 1,
    };
    kiln_launch_config config;
    uint32_t rounds = (last >> lanes_log2) + 1;
    kiln__ordinary_launch(params->rows, lanes_log2, rounds * (KILN_BLOCK * KILN_VECTOR_BYTES), &config);
    return kiln__operator_launch(stream, &module->kernels[KERNEL_softmax_rows], &config, &args, sizeof args);
}

static kiln_status softmax_workspace(const kiln_softmax_params *params, size_t params_size, size_t *out_size,
                                     unsigned part, const char *name) {
    KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);
    *out_size = 0;
    kiln_softmax_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__REQUIRE(params->rows >= 0, "%s: rows is %lld: must not be negative", name, (long long)params->rows);
    KILN__REQUIRE(params->cols >= 0, "%s: cols is %lld: must not be negative", name, (long long)params->cols);
    int64_t count;
    KILN__REQUIRE(!__builtin_mul_overflow(params->rows, params->cols, &count) && count <= INT64_MAX >> 3,
                  "%s: %lld rows of %lld elements are too large", name, (long long)params->rows,
                  (long long)params->cols);
    *out_size = workspace_size(params->rows, params->cols, kiln__part_size_log2(part));
    return KILN_OK;
}

#define SOFTMAX(part, size)                                                                                       \
    KILN__OPERATOR_FUNCTION(softmax, part)                                                                        \
    kiln_status kiln_softmax_##part##_workspace_size_sized(const kiln_softmax_params *params, size_t params_size, \
                                                           size_t *out_size) {                                    \
        return softmax_workspace(params, params_size, out_size, KILN__PART_##part, "softmax_" #part);             \
    }
KILN__FLOAT_PARTS(SOFTMAX)
