/* What the host sides of rmsnorm_fp8, rmsnorm_int8 and rmsnorm_nvfp4 share. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_HOST_H
#define KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_HOST_H

#include "kernels/common/quantize/codes_host.h"
#include "kernels/common/quantize/rmsnorm_codes_args.h"
#include "kernels/common/rms.h"

/* A call's params, under the names that all three operators use. */
typedef struct kiln__rmsnorm_codes_call {
    kiln__codes_call out;
    void *sum;
    const void *x, *residual, *weight;
    int64_t sum_stride, x_stride, residual_stride;
    float eps;
    int32_t reserved;
} kiln__rmsnorm_codes_call;

/* Takes them from an operator's params. */
#define KILN__RMSNORM_CODES_CALL(params)                                                                              \
    .sum = (params)->sum, .x = (params)->x, .residual = (params)->residual, .weight = (params)->weight,               \
    .sum_stride = (params)->sum_stride, .x_stride = (params)->x_stride, .residual_stride = (params)->residual_stride, \
    .eps = (params)->eps, .reserved = (params)->reserved

/* Checks the inputs, and sum. The thread that writes an element of sum has read that element of all inputs before, so
 * sum may be an input if their rows coincide. */
static inline kiln_status kiln__rmsnorm_codes_tensors(const char *name, const kiln__rmsnorm_codes_call *call,
                                                      unsigned size_log2, uint32_t *out_wide,
                                                      kiln_rmsnorm_codes_args *args) {
    const int64_t rows = call->out.rows, cols = call->out.cols;
    kiln__tensor tensors[] = {kiln__tensor_of("x", call->x, call->x_stride),
                              kiln__optional_row("weight", call->weight)};
    kiln__tensor residual = kiln__tensor_of("residual", call->residual, call->residual_stride);
    kiln__tensor sum = kiln__tensor_of("sum", call->sum, call->sum_stride);
    uint32_t wide;
    KILN__TRY(kiln__tensors_check(name, tensors, 2, rows, cols, size_log2, out_wide));
    KILN__REQUIRE(call->residual || !call->residual_stride, "%s: residual_stride is %lld: must be 0 without residual",
                  name, (long long)call->residual_stride);
    KILN__REQUIRE(call->sum || !call->sum_stride, "%s: sum_stride is %lld: must be 0 without sum", name,
                  (long long)call->sum_stride);
    if (call->residual) {
        KILN__TRY(kiln__tensors_check(name, &residual, 1, rows, cols, size_log2, &wide));
        *out_wide &= wide;
    }
    if (call->sum) {
        KILN__TRY(kiln__tensors_check(name, &sum, 1, rows, cols, size_log2, &wide));
        KILN__TRY(kiln__tensor_in_place_check(name, &sum, &tensors[0]));
        KILN__TRY(kiln__tensor_in_place_check(name, &sum, &residual));
        *out_wide &= wide;
    }
    args->sum = call->sum;
    args->x = call->x;
    args->residual = call->residual;
    args->weight = call->weight;
    args->sum_stride = sum.stride;
    args->x_stride = tensors[0].stride;
    args->residual_stride = residual.stride;
    return KILN_OK;
}

/* Checks a call and prepares its arguments and its launch. An empty grid means that there is nothing to launch. */
static inline kiln_status kiln__rmsnorm_codes_prepare(const char *name, const kiln_device_info *device,
                                                      const kiln__rmsnorm_codes_call *call, unsigned size_log2,
                                                      kiln_rmsnorm_codes_args *args, kiln_launch_config *config) {
    uint32_t wide;
    *config = (kiln_launch_config){0};
    KILN__TRY(kiln__codes_limits_check(name, &call->out));
    KILN__TRY(kiln__eps_resolve(name, call->eps, &args->eps));
    KILN__REQUIRE(call->reserved == 0, "%s: reserved is %d: must be 0", name, call->reserved);
    if (KILN__UNLIKELY(!call->out.rows || !call->out.cols)) return KILN_OK;
    KILN__TRY(kiln__rmsnorm_codes_tensors(name, call, size_log2, &wide, args));
    args->mean = 1.0f / (float)call->out.cols;
    KILN__TRY(kiln__codes_prepare(name, &call->out, wide, &args->out, config));
    kiln__codes_keep(device, &args->out, config);
    return KILN_OK;
}

#endif
