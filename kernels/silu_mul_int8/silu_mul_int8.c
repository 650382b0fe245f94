/* silu_mul_int8, host side. Few long rows of one scale each are for clusters of blocks, where an image has that kernel:
 * a block alone took 7.4 us for 1 x 14336 of bf16 in a step of the Llama-3-8B shape (E4M3; H100, driver 580.159.04,
 * 2026-11-26). That of clusters is not measured. */
#include "kernels/common/quantize/silu_mul_codes_host.h"
#include <kiln/ops/fused.h>
#define KILN_HOST silu_mul_int8
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

static kiln_status silu_mul_int8(kiln_stream *stream, const kiln_silu_mul_int8_params *params, unsigned part,
                                 const char *name) {
    const kiln__silu_mul_codes_call call = {
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
        KILN__SILU_MUL_CODES_CALL(params),
    };
    kiln_silu_mul_codes_args args;
    kiln_launch_config config;
    KILN__TRY(
        kiln__silu_mul_codes_prepare(name, &stream->device->info, &call, kiln__part_size_log2(part), &args, &config));
    if (KILN__UNLIKELY(!config.grid[0])) return KILN_OK;
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_silu_mul_int8, part, &kiln__bundle_silu_mul_int8, &module));
    const kiln_kernel *cluster = &module->kernels[KERNEL_silu_mul_int8_cluster];
    if (kiln__silu_mul_codes_cluster(cluster, &call, &args.out, &config))
        return kiln__call_launch(stream, cluster, &config, &args, sizeof args);
    return kiln__call_launch(stream, &module->kernels[KERNEL_silu_mul_int8], &config, &args, sizeof args);
}
