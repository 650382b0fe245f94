/* rmsnorm_int8, host side. */
#include "kernels/common/quantize/rmsnorm_codes_host.h"
#include <kiln/ops/fused.h>
#define KILN_HOST rmsnorm_int8
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

static kiln_status rmsnorm_int8(kiln_stream *stream, const kiln_rmsnorm_int8_params *params, unsigned part,
                                const char *name) {
    const kiln__rmsnorm_codes_call call = {
        .out =
            {
                .codes = params->codes,
                .scales = params->scales,
                .rows = params->rows,
                .cols = params->cols,
                .scale_cols = params->scale_cols,
                .codes_stride = params->codes_stride,
                .smax = params->smax,
                .static_scale = params->static_scale,
                .greatest = 127.0f,
            },
        KILN__RMSNORM_CODES_CALL(params),
    };
    kiln_rmsnorm_codes_args args;
    kiln_launch_config config;
    KILN__TRY(
        kiln__rmsnorm_codes_prepare(name, &stream->device->info, &call, kiln__part_size_log2(part), &args, &config));
    if (KILN__UNLIKELY(!config.grid[0])) return KILN_OK;
    return launch(stream, part, KERNEL_rmsnorm_int8, &config, &args, sizeof args);
}
