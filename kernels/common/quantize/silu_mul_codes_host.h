/* What the host sides of silu_mul_fp8, silu_mul_int8 and silu_mul_nvfp4 share. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_HOST_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_HOST_H

#include "kernels/common/gates.h"
#include "kernels/common/quantize/codes_host.h"
#include "kernels/common/quantize/silu_mul_codes_args.h"
#include "kernels/common/quantize/silu_mul_codes_cluster_args.h"
#include <kiln/ops/elementwise.h>

/* A call's params, under the names that all three operators use. */
typedef struct kiln__silu_mul_codes_call {
    kiln__codes_call out;
    const void *gate, *up;
    int64_t gate_stride, up_stride;
    int32_t activation, reserved;
} kiln__silu_mul_codes_call;

/* Takes them from an operator's params. */
#define KILN__SILU_MUL_CODES_CALL(params)                                             \
    .gate = (params)->gate, .up = (params)->up, .gate_stride = (params)->gate_stride, \
    .up_stride = (params)->up_stride, .activation = (params)->activation, .reserved = (params)->reserved

/* Fields of the argument struct that are copied as they are. */
typedef struct kiln__silu_mul_activation {
    float bound;
    float coefficients[KILN_SILU_MUL_CODES_COEFFICIENTS];
} kiln__silu_mul_activation;

/* Checks the inputs: without up, gate has both halves of each row. */
static inline kiln_status kiln__silu_mul_codes_tensors(const char *name, const kiln__silu_mul_codes_call *call,
                                                       unsigned size_log2, uint32_t *out_wide,
                                                       kiln_silu_mul_codes_args *args) {
    const int64_t rows = call->out.rows, cols = call->out.cols;
    kiln__tensor gate = kiln__tensor_of("gate", call->gate, call->gate_stride);
    kiln__tensor up = kiln__tensor_of("up", call->up, call->up_stride);
    uint32_t gate_wide, up_wide;
    KILN__TRY(kiln__tensors_check(name, &gate, 1, rows, call->up ? cols : 2 * cols, size_log2, &gate_wide));
    if (!call->up) {
        up.data = (const char *)call->gate + ((size_t)cols << size_log2);
        up.stride = gate.stride;
    }
    KILN__TRY(kiln__tensors_check(name, &up, 1, rows, cols, size_log2, &up_wide));
    args->gate = gate.data;
    args->up = up.data;
    args->gate_stride = gate.stride;
    args->up_stride = up.stride;
    *out_wide = gate_wide & up_wide;
    return KILN_OK;
}

/* The threads, as a logarithm, that share a row of which each has three or four eights (codes_four_gpu.h); 0: there are
 * none, or the device's kernels make no use of it. Those that do are AMD's, but for f32 only where a wave has 64
 * threads. */
static inline unsigned kiln__silu_mul_codes_four(const kiln_device_info *device, const kiln__silu_mul_codes_call *call,
                                                 unsigned size_log2, const kiln_codes_args *out) {
    enum { FOUR = 4, LEAST_LOG2 = KILN_EIGHTS_GROUP_LOG2, LEAST = 2 << LEAST_LOG2, MOST = FOUR << KILN_BLOCK_LOG2 };
    const int64_t whole = call->out.greatest == 0 ? 2 * KILN_EIGHT : KILN_EIGHT;
    if (device->backend != KILN_BACKEND_ROCM || (device->wave_size != 64 && size_log2 == 2) ||
        call->activation != KILN_GLU_SILU || out->static_scale != 0 || out->grouped || !out->shape.wide ||
        out->shape.cols % whole || out->smax != call->out.greatest || out->eights <= LEAST || out->eights > MOST)
        return 0;
    unsigned lanes_log2 = LEAST_LOG2;
    while (out->eights > (uint32_t)FOUR << lanes_log2)
        lanes_log2++;
    return lanes_log2;
}

/* Whether rows are for silu_mul_codes_eights.h: each is a block's, aligned and of whole eights that shared memory can
 * keep, with a computed scale, and smax is the format's greatest number. NVIDIA's kernels from sm_80 on make use of it.
 */
static inline bool kiln__silu_mul_codes_eights(const kiln_device_info *device, const kiln__silu_mul_codes_call *call,
                                               const kiln_codes_args *out) {
    return device->backend == KILN_BACKEND_CUDA && call->activation == KILN_GLU_SILU && out->shape.wide &&
           out->shape.lanes_log2 == KILN_BLOCK_LOG2 && out->shape.cols % KILN_EIGHT == 0 && call->out.greatest != 0 &&
           out->smax == call->out.greatest && out->rounds <= out->kept;
}

/* Checks a call and prepares its arguments and its launch. An empty grid means that there is nothing to launch. */
static inline kiln_status kiln__silu_mul_codes_prepare(const char *name, const kiln_device_info *device,
                                                       const kiln__silu_mul_codes_call *call, unsigned size_log2,
                                                       kiln_silu_mul_codes_args *args, kiln_launch_config *config) {
    static const kiln__silu_mul_activation activations[] = {
        [KILN_GLU_SILU] = {KILN__GATE_SILU},
        [KILN_GLU_GELU_TANH] = {KILN__GATE_GELU_TANH},
    };
    uint32_t wide;
    *config = (kiln_launch_config){0};
    KILN__TRY(kiln__codes_limits_check(name, &call->out));
    KILN__REQUIRE((uint32_t)call->activation < sizeof activations / sizeof *activations,
                  "%s: activation is %d: must be silu (0) or gelu_tanh (1)", name, call->activation);
    KILN__REQUIRE(call->reserved == 0, "%s: reserved is %d: must be 0", name, call->reserved);
    KILN__REQUIRE(call->up || !call->up_stride, "%s: up_stride is %lld: must be 0 without up", name,
                  (long long)call->up_stride);
    if (KILN__UNLIKELY(!call->out.rows || !call->out.cols)) return KILN_OK;
    KILN__TRY(kiln__silu_mul_codes_tensors(name, call, size_log2, &wide, args));
    memcpy(&args->bound, &activations[call->activation], sizeof *activations);
    KILN__TRY(kiln__codes_prepare(name, &call->out, wide, &args->out, config));
    const unsigned four_log2 = kiln__silu_mul_codes_four(device, call, size_log2, &args->out);
    args->four = four_log2 != 0;
    if (args->four) return kiln__codes_divide(name, four_log2, &args->out, config);
    if (call->out.static_scale != 0 || args->out.grouped) return KILN_OK;
    kiln__codes_keep(device, &args->out, config);
    args->four = kiln__silu_mul_codes_eights(device, call, &args->out);
    return KILN_OK;
}

/* Whether clusters of blocks do a call of SiLU, for which *config becomes their launch: if the image has that kernel,
 * for long, aligned rows of one scale each that are too few to occupy the device. */
static inline bool kiln__silu_mul_codes_cluster(const kiln_kernel *cluster, const kiln__silu_mul_codes_call *call,
                                                const kiln_codes_args *args, kiln_launch_config *config) {
    enum {
        LEAST = 2 * KILN_BLOCK,
        MOST = KILN_SILU_MUL_CLUSTER * KILN_SILU_MUL_THREADS * KILN_SILU_MUL_EIGHTS
    }; /* eights of a row */
    if (cluster->info.absent || call->activation != KILN_GLU_SILU || args->static_scale != 0 || args->grouped ||
        !args->shape.wide || args->shape.cols % KILN_EIGHT || args->smax != call->out.greatest ||
        args->eights <= LEAST || args->eights > MOST || args->rows > cluster->device->info.multiprocessors / 2)
        return false;
    const uint32_t warp = KILN_SILU_MUL_CLUSTER * KILN_SUBGROUP * KILN_SILU_MUL_EIGHTS;
    config->grid[0] = KILN_SILU_MUL_CLUSTER;
    config->block[0] = (args->eights + warp - 1) / warp * KILN_SUBGROUP;
    config->dynamic_shared_bytes = 0;
    return true;
}

#endif
