/* rmsnorm_nvfp4, host side. */
#include "kernels/common/quantize/rmsnorm_codes_host.h"
#include <kiln/ops/fused.h>
#define KILN_HOST rmsnorm_nvfp4
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

static kiln_status rmsnorm_nvfp4(kiln_stream *stream, const kiln_rmsnorm_nvfp4_params *params, unsigned part,
                                 const char *name) {
    const kiln__rmsnorm_codes_call call = {
        .out =
            {
                .codes = params->codes,
                .scales = params->scales,
                .global_scale = params->global_scale,
                .rows = params->rows,
                .cols = params->cols,
                .scale_rows = params->scale_rows,
                .scale_cols = params->scale_cols,
                .codes_stride = params->codes_stride,
                .scale_layout = params->scale_layout,
                .static_scale = params->static_scale,
            },
        KILN__RMSNORM_CODES_CALL(params),
    };
    kiln_rmsnorm_codes_args args;
    kiln_launch_config config;
    KILN__TRY(
        kiln__rmsnorm_codes_prepare(name, &stream->device->info, &call, kiln__part_size_log2(part), &args, &config));
    if (KILN__UNLIKELY(!config.grid[0])) return KILN_OK;
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_rmsnorm_nvfp4, part, &kiln__bundle_rmsnorm_nvfp4, &module));
    const kiln_kernel *held = &module->kernels[KERNEL_rmsnorm_nvfp4_held];
    config.dynamic_shared_bytes = 0; /* results are in registers, or computed twice */
    const uint32_t half = KILN_RMSNORM_MOST / 2;
    if (!held->info.absent && kiln__codes_held(&args.out) && args.out.shape.lanes_log2 == KILN_BLOCK_LOG2 &&
        args.out.eights <= KILN_RMSNORM_MOST * KILN_RMSNORM_HELD) {
        config.block[0] = args.out.eights > half * KILN_RMSNORM_HELD ? KILN_RMSNORM_MOST : half;
        return kiln__call_launch(stream, held, &config, &args, sizeof args);
    }
    return launch(stream, part, KERNEL_rmsnorm_nvfp4, &config, &args, sizeof args);
}
