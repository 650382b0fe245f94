/* dequantize_fp8, host side. */
#include "kernels/common/quantize/dequantize_host.h"
#include <kiln/ops/quantize.h>
#define KILN_HOST dequantize_fp8
#include "kernels/common/operator.h"

static kiln_status dequantize_fp8(kiln_stream *stream, const kiln_dequantize_fp8_params *params, unsigned part,
                                  const char *name) {
    const kiln__dequantize_call call = {
        .y = params->y,
        .codes = params->codes,
        .scales = params->scales,
        .rows = params->rows,
        .cols = params->cols,
        .scale_rows = params->scale_rows,
        .scale_cols = params->scale_cols,
        .y_stride = params->y_stride,
        .codes_stride = params->codes_stride,
    };
    kiln_dequantize_args args;
    kiln_launch_config config;
    KILN__TRY(kiln__dequantize_prepare(name, &call, kiln__part_size_log2(part), &args, &config));
    if (KILN__UNLIKELY(!config.grid[0])) return KILN_OK;
    return launch(stream, part, KERNEL_dequantize_fp8, &config, &args, sizeof args);
}
