/* silu_mul_nvfp4, host side. */
#include "kernels/common/quantize/silu_mul_codes_host.h"
#include <kiln/ops/fused.h>
#define KILN_HOST silu_mul_nvfp4
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

/* Gives the launch shared memory for a thread's blocks of 16 columns: at least for one, and for those that it keeps
 * between two passes, at most a quarter of what a block of threads can have on the device, so that several are
 * resident. */
static void keep_blocks(const kiln_device_info *device, kiln_codes_args *args, kiln_launch_config *config) {
    const uint32_t bytes = KILN_BLOCK * 2 * KILN_EIGHT * (uint32_t)sizeof(float), rounds = (args->rounds + 1) / 2;
    const uint32_t most = (uint32_t)device->max_shared_bytes / 4 / bytes;
    const uint32_t wanted = args->static_scale != 0.0f ? 0 : rounds;
    args->kept = wanted < most ? wanted : most;
    config->dynamic_shared_bytes = (args->kept ? args->kept : 1) * bytes;
}

/* How many eights of a row threads of silu_mul_nvfp4_held have of a part, as a logarithm. */
static unsigned held_log2(unsigned part) {
    enum { OF_16_BITS = 3 };
    _Static_assert(KILN_SILU_MUL_HELD == 1 << OF_16_BITS, "as codes_held.h says");
    return OF_16_BITS + 1 - kiln__part_size_log2(part);
}

/* Divides rows among blocks of that kernel: a block has a row, as those of many columns were divided already, or, of
 * rows that a warp is enough for, as many as it has threads for. */
static kiln_status divide_held(const char *name, kiln_codes_args *args, unsigned each_log2,
                               kiln_launch_config *config) {
    const unsigned warp_log2 = each_log2 + KILN_SUBGROUP_LOG2;
    const uint32_t needed = (args->eights - 1) >> each_log2; /* threads, less one */
    config->dynamic_shared_bytes = 0;
    if (args->eights > 1u << warp_log2) {
        if (args->shape.lanes_log2 != KILN_BLOCK_LOG2) /* few columns, but scales of many */
            KILN__TRY(kiln__codes_divide(name, KILN_BLOCK_LOG2, args, config));
        config->block[0] = (((args->eights - 1) >> warp_log2) + 1) << KILN_SUBGROUP_LOG2;
        return KILN_OK;
    }
    const unsigned lanes_log2 =
        needed >> KILN_SILU_MUL_LEAST_LOG2 ? 32 - (unsigned)__builtin_clz(needed) : (unsigned)KILN_SILU_MUL_LEAST_LOG2;
    return kiln__codes_divide(name, lanes_log2, args, config);
}

static kiln_status silu_mul_nvfp4(kiln_stream *stream, const kiln_silu_mul_nvfp4_params *params, unsigned part,
                                  const char *name) {
    const kiln__silu_mul_codes_call call = {
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
        KILN__SILU_MUL_CODES_CALL(params),
    };
    kiln_silu_mul_codes_args args;
    kiln_launch_config config;
    KILN__TRY(
        kiln__silu_mul_codes_prepare(name, &stream->device->info, &call, kiln__part_size_log2(part), &args, &config));
    if (KILN__UNLIKELY(!config.grid[0])) return KILN_OK;
    const kiln_module *module;
    KILN__TRY(
        kiln__operator_require(stream, KILN__OPERATOR_silu_mul_nvfp4, part, &kiln__bundle_silu_mul_nvfp4, &module));
    const kiln_kernel *held = &module->kernels[KERNEL_silu_mul_nvfp4_held];
    if (!held->info.absent && kiln__codes_held(&args.out) &&
        args.out.eights <= (uint32_t)KILN_SILU_MUL_MOST << held_log2(part)) {
        KILN__TRY(divide_held(name, &args.out, held_log2(part), &config));
        return kiln__call_launch(stream, held, &config, &args, sizeof args);
    }
    if (!args.four) keep_blocks(&stream->device->info, &args.out, &config);
    return launch(stream, part, KERNEL_silu_mul_nvfp4, &config, &args, sizeof args);
}
