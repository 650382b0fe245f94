/* quantize_fp8, host side. */
#include "kernels/common/quantize/quantize_transposed_host.h"
#include <kiln/ops/quantize.h>
#define KILN_HOST quantize_fp8
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

static kiln_status quantize_fp8(kiln_stream *stream, const kiln_quantize_fp8_params *params, unsigned part,
                                const char *name) {
    kiln__quantize_call call = {
        .codes = params->codes,
        .scales = params->scales,
        .x = params->x,
        .given = params->given,
        .amax = params->amax,
        .rows = params->rows,
        .cols = params->cols,
        .scale_rows = params->scale_rows,
        .scale_cols = params->scale_cols,
        .codes_stride = params->codes_stride,
        .x_stride = params->x_stride,
        .x_col_stride = params->x_col_stride,
        .smax = params->smax,
        .greatest = 448.0f,
    };
    kiln_quantize_args args;
    kiln_launch_config config;
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (kiln__is_transposed(params->cols, params->x_stride, params->x_col_stride)) {
        kiln_quantize_transposed_args transposed;
        KILN__TRY(kiln__quantize_transposed_prepare(name, &stream->device->info, &call, kiln__part_size_log2(part),
                                                    &transposed, &config));
        if (KILN__UNLIKELY(!config.grid[0])) return KILN_OK;
        const kiln_module *module;
        KILN__TRY(
            kiln__operator_require(stream, KILN__OPERATOR_quantize_fp8, part, &kiln__bundle_quantize_fp8, &module));
        const kiln_kernel *cluster = &module->kernels[KERNEL_quantize_fp8_transposed_cluster];
        if (kiln__quantize_transposed_cluster(cluster, kiln__part_size_log2(part), &transposed, &config))
            return kiln__call_launch(stream, cluster, &config, &transposed, sizeof transposed);
        return kiln__call_launch(stream, &module->kernels[KERNEL_quantize_fp8_transposed], &config, &transposed,
                                 sizeof transposed);
    }
    KILN__TRY(kiln__quantize_prepare(name, &call, kiln__part_size_log2(part), &args, &config));
    if (KILN__UNLIKELY(!config.grid[0])) return KILN_OK;
    kiln__quantize_hold(&stream->device->info, &call, kiln__part_size_log2(part), &args, &config);
    return launch(stream, part, KERNEL_quantize_fp8, &config, &args, sizeof args);
}
