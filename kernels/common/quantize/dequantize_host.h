/* What the host sides of dequantize_fp8 and dequantize_int8 share. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_DEQUANTIZE_HOST_H
#define KILN_KERNELS_COMMON_QUANTIZE_DEQUANTIZE_HOST_H

#include "kernels/common/quantize/dequantize_args.h"
#include "kernels/common/quantize/quantize_host.h"

/* A call's params, under the names that both operators use. */
typedef struct kiln__dequantize_call {
    void *y;
    const void *codes;
    const float *scales;
    int64_t rows, cols, scale_rows, scale_cols, y_stride, codes_stride;
} kiln__dequantize_call;

/* Checks a call and prepares its arguments and its launch. An empty grid means that there is nothing to launch. */
static inline kiln_status kiln__dequantize_prepare(const char *name, const kiln__dequantize_call *call,
                                                   unsigned size_log2, kiln_dequantize_args *args,
                                                   kiln_launch_config *config) {
    const int64_t rows = call->rows, cols = call->cols;
    const int64_t scale_rows = call->scale_rows ? call->scale_rows : rows;
    const int64_t scale_cols = call->scale_cols ? call->scale_cols : 1;
    kiln__tensor y = kiln__tensor_of("y", call->y, call->y_stride);
    uint32_t wide;
    *config = (kiln_launch_config){0};
    KILN__TRY(kiln__size_check(name, "rows", rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "cols", cols, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "scale_rows", scale_rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "scale_cols", scale_cols, INT64_MAX));
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;
    *args = (kiln_dequantize_args){
        .y = call->y,
        .codes = call->codes,
        .scales = call->scales,
        .codes_stride = call->codes_stride ? call->codes_stride : cols,
        .scale_cols = scale_cols,
        .grouped = scale_cols > 1,
    };
    KILN__TRY(kiln__quantize_scales_check(name, rows, cols, scale_rows, scale_cols, &args->rows_log2));
    KILN__TRY(kiln__tensors_check(name, &y, 1, rows, cols, size_log2, &wide));
    KILN__TRY(kiln__tensor_check(name, "codes", call->codes, rows, cols, args->codes_stride, 0));
    KILN__TRY(kiln__tensor_check(name, "scales", call->scales, scale_rows, scale_cols, scale_cols, 2));
    const uintptr_t places = (uintptr_t)call->codes | (rows > 1 ? (uintptr_t)args->codes_stride : 0);
    wide &= (places & ((1u << (4 - size_log2)) - 1)) == 0;
    args->y_stride = y.stride;
    return kiln__elementwise(name, rows, cols, size_log2, wide, &args->shape, config);
}

#endif
