/* quantize_nvfp4, host side. */
#include "kernels/common/quantize/nvfp4_host.h"
#include "kernels/common/quantize/transposed_host.h"
#include "kernels/quantize_nvfp4/quantize_nvfp4_args.h"
#include "kernels/quantize_nvfp4/quantize_nvfp4_transposed_args.h"
#include <kiln/ops/quantize.h>
#define KILN_HOST quantize_nvfp4
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

static kiln_status check_global(const char *name, const char *tensor, const float *data, int64_t rows) {
    return data ? kiln__tensor_check(name, tensor, data, 1, rows, rows, 2) : KILN_OK;
}

/* Checks the tensors and fills in the arguments, except for the shape; wide: of x. */
static kiln_status take_tensors(const char *name, const kiln_quantize_nvfp4_params *params,
                                const kiln__nvfp4_sizes *sizes, int64_t x_stride, uint32_t wide,
                                kiln_quantize_nvfp4_args *args) {
    const int64_t code_cols = KILN__NVFP4_BLOCK_BYTES * params->scale_cols;
    *args = (kiln_quantize_nvfp4_args){
        .codes = params->codes,
        .scales = params->scales,
        .global_scale = params->global_scale,
        .x = params->x,
        .values = params->given ? params->given : params->amax,
        .rows = params->rows,
        .cols = params->cols,
        .codes_stride = params->codes_stride ? params->codes_stride : code_cols,
        .x_stride = x_stride,
        .given = params->given != NULL,
        .swizzled = params->scale_layout == KILN_SCALES_128X4,
        .each = params->global_rows > 1,
    };
    KILN__TRY(kiln__nvfp4_scales_check(name, sizes));
    KILN__TRY(kiln__tensor_check(name, "codes", params->codes, params->rows, code_cols, args->codes_stride, 0));
    KILN__TRY(kiln__tensor_check(name, "scales", params->scales, params->scale_rows, params->scale_cols,
                                 params->scale_cols, 0));
    KILN__TRY(check_global(name, "global_scale", params->global_scale, params->global_rows));
    KILN__TRY(check_global(name, "given", params->given, params->global_rows));
    KILN__TRY(check_global(name, "amax", params->amax, params->global_rows));
    KILN__REQUIRE(args->values, "%s: amax is NULL: must be given where given is NULL", name);
    const uintptr_t places = (uintptr_t)params->codes | (params->rows > 1 ? (uintptr_t)args->codes_stride : 0);
    args->shape.wide = wide && places % KILN__NVFP4_BLOCK_BYTES == 0;
    return KILN_OK;
}

/* The launch where x's columns are not adjacent. */
static kiln_status launch_transposed(kiln_stream *stream, const kiln_quantize_nvfp4_params *params,
                                     const kiln__nvfp4_sizes *sizes, unsigned part, const char *name) {
    kiln_quantize_nvfp4_transposed_args args;
    kiln_launch_config config;
    KILN__TRY(kiln__transposed_check(name, params->x, params->rows, params->cols, params->x_stride,
                                     params->x_col_stride, kiln__part_size_log2(part), &args.x));
    KILN__TRY(take_tensors(name, params, sizes, args.x.row_stride, 1, &args.plain));
    args.plain.shape.rows = params->scale_rows;
    args.plain.shape.cols = params->scale_cols;
    args.whole = args.x.wide && args.plain.shape.wide ? params->rows >> args.x.rows_log2 << args.x.rows_log2 : 0;
    const uint64_t blocks = KILN_TRANSPOSED_COLS >> KILN__NVFP4_BLOCK_LOG2, rows = 1ull << args.x.rows_log2;
    KILN__TRY(kiln__grid(name, ((uint64_t)params->scale_cols + blocks - 1) / blocks,
                         ((uint64_t)params->scale_rows + rows - 1) / rows, &config));
    return launch(stream, part, KERNEL_quantize_nvfp4_transposed, &config, &args, sizeof args);
}

static kiln_status quantize_nvfp4(kiln_stream *stream, const kiln_quantize_nvfp4_params *params, unsigned part,
                                  const char *name) {
    kiln_quantize_nvfp4_args args;
    kiln_launch_config config;
    uint32_t wide;
    const kiln__nvfp4_sizes sizes = {.rows = params->rows,
                                     .cols = params->cols,
                                     .scale_rows = params->scale_rows,
                                     .scale_cols = params->scale_cols,
                                     .global_rows = params->global_rows,
                                     .scale_layout = params->scale_layout};
    KILN__TRY(kiln__nvfp4_limits_check(name, &sizes));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!params->rows || !params->cols)) return KILN_OK;
    if (kiln__is_transposed(params->cols, params->x_stride, params->x_col_stride))
        return launch_transposed(stream, params, &sizes, part, name);
    kiln__tensor x = kiln__tensor_of("x", params->x, params->x_stride);
    KILN__TRY(kiln__tensors_check(name, &x, 1, params->rows, params->cols, kiln__part_size_log2(part), &wide));
    KILN__TRY(take_tensors(name, params, &sizes, x.stride, wide, &args));

    const unsigned lanes_log2 = kiln__lanes_log2((uint64_t)params->scale_cols);
    const uint32_t tile = (uint32_t)KILN_THREAD_VECTORS << lanes_log2;
    args.shape.rows = params->scale_rows;
    args.shape.cols = params->scale_cols;
    args.shape.tile = tile;
    args.shape.lanes_log2 = lanes_log2;
    KILN__TRY(kiln__grid(name, ((uint64_t)params->scale_cols + tile - 1) / tile,
                         kiln__blocks(params->scale_rows, lanes_log2), &config));
    return launch(stream, part, KERNEL_quantize_nvfp4, &config, &args, sizeof args);
}
