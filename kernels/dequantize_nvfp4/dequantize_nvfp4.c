/* dequantize_nvfp4, host side. */
#include "kernels/common/quantize/nvfp4_host.h"
#include "kernels/dequantize_nvfp4/dequantize_nvfp4_args.h"
#include <kiln/ops/quantize.h>
#define KILN_HOST dequantize_nvfp4
#include "kernels/common/operator.h"

static kiln_status dequantize_nvfp4(kiln_stream *stream, const kiln_dequantize_nvfp4_params *params, unsigned part,
                                    const char *name) {
    const kiln__nvfp4_sizes sizes = {.rows = params->rows,
                                     .cols = params->cols,
                                     .scale_rows = params->scale_rows,
                                     .scale_cols = params->scale_cols,
                                     .global_rows = params->global_rows,
                                     .scale_layout = params->scale_layout};
    const unsigned size_log2 = kiln__part_size_log2(part);
    const int64_t rows = params->rows, globals = params->global_rows;
    const int64_t code_cols = KILN__NVFP4_BLOCK_BYTES * params->scale_cols;
    kiln__tensor y = kiln__tensor_of("y", params->y, params->y_stride);
    kiln_launch_config config;
    uint32_t wide;
    KILN__TRY(kiln__nvfp4_limits_check(name, &sizes));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!rows || !params->cols)) return KILN_OK;
    kiln_dequantize_nvfp4_args args = {
        .y = params->y,
        .codes = params->codes,
        .scales = params->scales,
        .global_scale = params->global_scale,
        .codes_stride = params->codes_stride ? params->codes_stride : code_cols,
        .scale_cols = params->scale_cols,
        .swizzled = params->scale_layout == KILN_SCALES_128X4,
        .each = globals > 1,
    };
    KILN__TRY(kiln__tensors_check(name, &y, 1, rows, params->cols, size_log2, &wide));
    KILN__TRY(kiln__nvfp4_scales_check(name, &sizes));
    KILN__TRY(kiln__tensor_check(name, "codes", params->codes, rows, code_cols, args.codes_stride, 0));
    KILN__TRY(kiln__tensor_check(name, "scales", params->scales, params->scale_rows, params->scale_cols,
                                 params->scale_cols, 0));
    KILN__TRY(kiln__tensor_check(name, "global_scale", params->global_scale, 1, globals, globals, 2));
    const uintptr_t places = (uintptr_t)params->codes | (rows > 1 ? (uintptr_t)args.codes_stride : 0);
    wide &= (places & ((1u << (3 - size_log2)) - 1)) == 0; /* half a byte for each element of a vector */
    args.y_stride = y.stride;
    KILN__TRY(kiln__elementwise(name, rows, params->cols, size_log2, wide, &args.shape, &config));
    return launch(stream, part, KERNEL_dequantize_nvfp4, &config, &args, sizeof args);
}
