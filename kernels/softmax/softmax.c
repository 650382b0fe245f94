/* softmax, host side: rows of up to a chunk in one launch, longer rows in two, with partial results in the workspace.
 */
#include "kernels/softmax/softmax_args.h"
#include <kiln/ops/softmax.h>
#define KILN_HOST softmax
#include "kernels/common/operator.h"

/* A block holds rows of up to a chunk, with at most SLOTS vectors per thread. */
enum { CHUNK_BYTES_LOG2 = 15, SLOTS = (1 << CHUNK_BYTES_LOG2) / KILN_VECTOR_BYTES / KILN_BLOCK };

static uint64_t chunks_of(int64_t cols, unsigned size_log2) {
    return ((uint64_t)cols + (1u << (CHUNK_BYTES_LOG2 - size_log2)) - 1) >> (CHUNK_BYTES_LOG2 - size_log2);
}

static uint64_t partials_size(int64_t rows, int64_t cols, unsigned size_log2) {
    uint64_t chunks = chunks_of(cols, size_log2);
    return chunks <= 1 ? 0 : (uint64_t)rows * chunks * sizeof(kiln_softmax_partial);
}

/* How many threads, as a logarithm, share a row of that many vectors: up to a subgroup while that can hold the row,
 * else the whole block. */
static unsigned row_lanes_log2(uint64_t vectors) {
    if (vectors > SLOTS << KILN_SUBGROUP_LOG2) return KILN_BLOCK_LOG2;
    unsigned lanes_log2 = kiln__lanes_log2(vectors);
    return lanes_log2 < KILN_SUBGROUP_LOG2 ? lanes_log2 : KILN_SUBGROUP_LOG2;
}

/* Rows of more than a chunk. */
static kiln_status launch_long(kiln_stream *stream, const kiln_softmax_params *params, unsigned part,
                               kiln_softmax_args *args, const char *name) {
    unsigned size_log2 = kiln__part_size_log2(part);
    uint64_t needed = partials_size(params->rows, params->cols, size_log2);
    KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size, needed));
    kiln_launch_config config = {0};
    KILN__TRY(kiln__grid(name, chunks_of(params->cols, size_log2), (uint64_t)params->rows, &config));
    config.dynamic_shared_bytes = 1 << CHUNK_BYTES_LOG2;
    args->partials = params->workspace;
    args->chunks = config.grid[0];
    args->phase = KILN_SOFTMAX_PARTIAL;
    KILN__TRY(launch(stream, part, KERNEL_softmax_rows, &config, args, sizeof *args));
    args->phase = KILN_SOFTMAX_FINISH;
    return launch(stream, part, KERNEL_softmax_rows, &config, args, sizeof *args);
}

static kiln_status softmax(kiln_stream *stream, const kiln_softmax_params *params, unsigned part, const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln__tensor tensors[] = {kiln__tensor_of("y", params->y, params->y_stride),
                              kiln__tensor_of("x", params->x, params->x_stride)};
    uint32_t wide;
    KILN__TRY(kiln__tensors_check(name, tensors, 2, rows, cols, size_log2, &wide));
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[0], &tensors[1]));

    uint64_t vectors = kiln__vectors(cols, size_log2);
    unsigned lanes_log2 = row_lanes_log2(vectors);
    kiln_softmax_args args = {
        .y = params->y,
        .x = params->x,
        .shape = {.rows = rows,
                  .cols = cols,
                  .tile = 1u << (CHUNK_BYTES_LOG2 - size_log2),
                  .lanes_log2 = lanes_log2,
                  .wide = wide},
        .y_stride = tensors[0].stride,
        .x_stride = tensors[1].stride,
        .chunks = 1,
    };
    if (vectors > SLOTS << KILN_BLOCK_LOG2) return launch_long(stream, params, part, &args, name);
    uint64_t rounds = (vectors + (1u << lanes_log2) - 1) >> lanes_log2;
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(rows, lanes_log2), &config));
    config.dynamic_shared_bytes = (uint32_t)rounds * KILN_BLOCK * KILN_VECTOR_BYTES;
    return launch(stream, part, KERNEL_softmax_rows, &config, &args, sizeof args);
}

static kiln_status softmax_workspace_size(kiln_stream *stream, const kiln_softmax_params *params, unsigned part,
                                          const char *name, size_t *out_size) {
    KILN__TRY(kiln__sizes_check(name, stream, params->rows, params->cols));
    int64_t count;
    KILN__REQUIRE(!__builtin_mul_overflow(params->rows, params->cols, &count) && count <= INT64_MAX >> 3,
                  "%s: %lld rows of %lld elements are too large", name, (long long)params->rows,
                  (long long)params->cols);
    *out_size = partials_size(params->rows, params->cols, kiln__part_size_log2(part));
    return KILN_OK;
}
