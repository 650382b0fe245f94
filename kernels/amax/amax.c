/* amax, host side: one launch where the threads of a block have all elements of a result, else two, with partial
 * results in the workspace. */
#include "kernels/amax/amax_args.h"
#include "kernels/amax/amax_transposed_args.h"
#include "kernels/common/quantize/quantize_host.h"
#include "kernels/common/quantize/transposed_host.h"
#include <kiln/ops/quantize.h>
#define KILN_HOST amax
#include "kernels/common/operator.h"

enum { CHUNK_LOG2 = 13, FEW_ROWS = 8 }; /* per block: elements of a row, and rows that share a result */
enum { CHUNK_TILES = 8 };               /* per block where columns are not adjacent */

static int64_t parts_of(int64_t count, int64_t part) {
    return count / part + (count % part != 0);
}

/* Checks the sizes and divides the call into blocks; leaves the other arguments 0. A call on an empty tensor has no
 * rows. */
static kiln_status cut(const char *name, const kiln_amax_params *params, unsigned size_log2, kiln_amax_args *args) {
    const int64_t rows = params->rows, cols = params->cols;
    uint32_t rows_log2 = 0;
    *args = (kiln_amax_args){0};
    KILN__TRY(kiln__size_check(name, "rows", rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "cols", cols, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "scale_rows", params->scale_rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "scale_cols", params->scale_cols, INT64_MAX));
    if (KILN__UNLIKELY(!rows || !cols || !params->scale_rows || !params->scale_cols)) return KILN_OK;
    KILN__TRY(kiln__quantize_scales_check(name, rows, cols, params->scale_rows, params->scale_cols, &rows_log2));

    const bool grouped = params->scale_cols > 1;
    unsigned lanes_log2 = kiln__lanes_log2(kiln__vectors(cols, size_log2));
    if (lanes_log2 > KILN_SUBGROUP_LOG2) lanes_log2 = KILN_BLOCK_LOG2;
    if (grouped) lanes_log2 = KILN_QUANTIZE_GROUP_LOG2 - (4 - size_log2); /* one vector of a group for each thread */
    args->shared = rows_log2 != 0;
    args->block_rows = KILN_BLOCK >> lanes_log2;
    if (args->shared && args->block_rows < FEW_ROWS) args->block_rows = FEW_ROWS;
    if (args->shared && (grouped || args->block_rows > KILN_QUANTIZE_GROUP)) args->block_rows = KILN_QUANTIZE_GROUP;
    uint32_t chunk = 1u << CHUNK_LOG2;
    if (kiln__is_transposed(params->cols, params->x_stride, params->x_col_stride)) {
        args->block_rows = 1u << kiln__transposed_rows_log2(size_log2);
        chunk = CHUNK_TILES << KILN_TRANSPOSED_COLS_LOG2;
    }
    args->shape = (kiln_shape){
        .rows = rows, .cols = cols, .tile = grouped ? KILN_QUANTIZE_GROUP : chunk, .lanes_log2 = lanes_log2};
    args->partial_rows = args->shared ? parts_of(rows, args->block_rows) : rows;
    args->partial_cols = parts_of(cols, args->shape.tile);
    args->scale_cols = params->scale_cols;
    args->join_cols = grouped ? 1 : args->partial_cols;
    args->join_rows = rows_log2 == 63 ? args->partial_rows : rows_log2 ? KILN_QUANTIZE_GROUP / args->block_rows : 1;
    return KILN_OK;
}

static bool joins(const kiln_amax_args *args) {
    return args->join_rows > 1 || args->join_cols > 1;
}

/* Bytes of the partial results, of which there are fewer than elements. */
static uint64_t partials_size(const kiln_amax_args *args) {
    return joins(args) ? (uint64_t)args->partial_rows * (uint64_t)args->partial_cols * sizeof(float) : 0;
}

/* The launch that reads x. */
static kiln_status find(kiln_stream *stream, const kiln_amax_params *params, unsigned part, const char *name,
                        kiln_amax_args *args, const kiln_transposed *transposed) {
    kiln_launch_config config;
    KILN__TRY(
        kiln__grid(name, (uint64_t)args->partial_cols, (uint64_t)parts_of(params->rows, args->block_rows), &config));
    if (!transposed) return launch(stream, part, KERNEL_amax, &config, args, sizeof *args);
    const kiln_amax_transposed_args turned = {.partials = args->partials,
                                              .x = *transposed,
                                              .partial_cols = args->partial_cols,
                                              .tiles = args->shape.tile >> KILN_TRANSPOSED_COLS_LOG2,
                                              .shared = args->shared};
    return launch(stream, part, KERNEL_amax_transposed, &config, &turned, sizeof turned);
}

static kiln_status amax(kiln_stream *stream, const kiln_amax_params *params, unsigned part, const char *name) {
    const unsigned size_log2 = kiln__part_size_log2(part);
    const bool is_transposed = kiln__is_transposed(params->cols, params->x_stride, params->x_col_stride);
    kiln_amax_args args;
    kiln_transposed transposed;
    kiln_launch_config config;
    uint32_t wide;
    KILN__TRY(cut(name, params, size_log2, &args));
    if (KILN__UNLIKELY(!args.shape.rows)) return KILN_OK;
    kiln__tensor x = kiln__tensor_of("x", params->x, params->x_stride);
    if (is_transposed) {
        KILN__TRY(kiln__transposed_check(name, params->x, params->rows, params->cols, params->x_stride,
                                         params->x_col_stride, size_log2, &transposed));
    } else {
        KILN__TRY(kiln__tensors_check(name, &x, 1, params->rows, params->cols, size_log2, &wide));
        args.shape.wide = wide;
    }
    KILN__TRY(kiln__tensor_check(name, "y", params->y, params->scale_rows, params->scale_cols, params->scale_cols, 2));
    args.y = params->y;
    args.partials = params->y;
    args.x = params->x;
    args.x_stride = x.stride;
    if (joins(&args)) {
        KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size, partials_size(&args)));
        args.partials = params->workspace;
    }
    KILN__TRY(find(stream, params, part, name, &args, is_transposed ? &transposed : NULL));
    if (!joins(&args)) return KILN_OK;
    KILN__TRY(kiln__grid(name, (uint64_t)params->scale_cols, (uint64_t)params->scale_rows, &config));
    args.joining = 1;
    return launch(stream, part, KERNEL_amax, &config, &args, sizeof args);
}

static kiln_status amax_workspace_size(kiln_stream *stream, const kiln_amax_params *params, unsigned part,
                                       const char *name, size_t *out_size) {
    kiln_amax_args args;
    (void)stream;
    KILN__TRY(cut(name, params, kiln__part_size_log2(part), &args));
    *out_size = args.shape.rows ? partials_size(&args) : 0;
    return KILN_OK;
}
