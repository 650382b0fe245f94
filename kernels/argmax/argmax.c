/* argmax, host side: rows of up to a chunk in one launch, longer rows in two, with partial results in the workspace. */
#include "kernels/argmax/argmax_args.h"
#include "kernels/common/held_host.h"
#include <kiln/ops/sample.h>
#define KILN_HOST argmax
#include "kernels/common/operator.h"

/* Rows of more elements than a block holds. */
enum { CHUNK_LOG2 = 13 };

static bool is_long(int64_t cols) {
    return cols > 1 << CHUNK_LOG2;
}

static uint64_t partials_size(int64_t rows, int64_t cols, unsigned size_log2) {
    return is_long(cols) && rows ? (uint64_t)rows * kiln__chunks(rows, cols, size_log2) * sizeof(kiln_argmax_best) : 0;
}

static kiln_status check_sizes(const char *name, int64_t rows, int64_t cols) {
    KILN__TRY(kiln__size_check(name, "rows", rows, INT32_MAX));
    return kiln__size_check(name, "cols", cols, INT32_MAX);
}

/* Rows of more than a chunk. */
static kiln_status launch_long(kiln_stream *stream, const kiln_argmax_params *params, unsigned part,
                               kiln_argmax_args *args, const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    unsigned size_log2 = kiln__part_size_log2(part);
    uint64_t needed = partials_size(rows, cols, size_log2);
    KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size, needed));
    kiln_launch_config config;
    args->partials = params->workspace;
    args->chunks = (uint32_t)kiln__chunks(rows, cols, size_log2);
    args->shape.tile = 1u << kiln__chunk_log2(rows, cols, size_log2);
    args->phase = KILN_ARGMAX_PARTIAL;
    KILN__TRY(kiln__grid(name, args->chunks, (uint64_t)rows, &config));
    KILN__TRY(launch(stream, part, KERNEL_argmax, &config, args, sizeof *args));
    args->phase = KILN_ARGMAX_FINISH;
    KILN__TRY(kiln__grid(name, 1, (uint64_t)rows, &config));
    return launch(stream, part, KERNEL_argmax, &config, args, sizeof *args);
}

static kiln_status argmax(kiln_stream *stream, const kiln_argmax_params *params, unsigned part, const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(check_sizes(name, rows, cols));
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln__tensor x = kiln__tensor_of("x", params->x, params->x_stride);
    uint32_t wide;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, 1, rows, rows, 2));
    KILN__TRY(kiln__tensors_check(name, &x, 1, rows, cols, size_log2, &wide));
    unsigned lanes_log2 = kiln__held_lanes_log2(rows, kiln__vectors(cols, size_log2));
    kiln_argmax_args args = {
        .y = params->y,
        .x = params->x,
        .shape = {.rows = rows, .cols = cols, .tile = (uint32_t)cols, .lanes_log2 = lanes_log2, .wide = wide},
        .x_stride = x.stride,
        .chunks = 1,
        .phase = KILN_ARGMAX_ROWS,
    };
    if (is_long(cols)) return launch_long(stream, params, part, &args, name);
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(rows, lanes_log2), &config));
    return launch(stream, part, KERNEL_argmax, &config, &args, sizeof args);
}

static kiln_status argmax_workspace_size(kiln_stream *stream, const kiln_argmax_params *params, unsigned part,
                                         const char *name, size_t *out_size) {
    (void)stream;
    KILN__TRY(check_sizes(name, params->rows, params->cols));
    *out_size = partials_size(params->rows, params->cols, kiln__part_size_log2(part));
    return KILN_OK;
}
