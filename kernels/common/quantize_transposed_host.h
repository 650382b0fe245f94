/* What the host sides of quantize_fp8 and quantize_int8 share where x's columns are not adjacent. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_HOST_H
#define KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_HOST_H

#include "kernels/common/quantize_host.h"
#include "kernels/common/quantize_transposed_args.h"
#include "kernels/common/transposed_host.h"

/* Checks a call and prepares its arguments and its launch. An empty grid means that there is nothing to launch. */
static inline kiln_status kiln__quantize_transposed_prepare(const char *name, kiln__quantize_call *call,
                                                            unsigned size_log2, kiln_quantize_transposed_args *args,
                                                            kiln_launch_config *config) {
    kiln_quantize_args *q = &args->quantize;
    uint32_t wide;
    *config = (kiln_launch_config){0};
    *args = (kiln_quantize_transposed_args){.tiles = 1};
    KILN__TRY(kiln__quantize_begin(name, call, q));
    if (KILN__UNLIKELY(!call->rows || !call->cols)) return KILN_OK;
    KILN__TRY(kiln__transposed_check(name, call->x, call->rows, call->cols, call->x_stride, call->x_col_stride,
                                     size_log2, &args->x));
    KILN__TRY(kiln__quantize_codes_check(name, call, q, size_log2, &wide));
    q->shape = (kiln_shape){.rows = call->rows, .cols = call->cols, .wide = wide};

    const bool computed = q->source == KILN_QUANTIZE_COMPUTED, rows = computed && !q->rows_log2 && !q->grouped;
    uint64_t across = (uint64_t)kiln__quantize_groups(call->cols);
    args->down = computed && q->rows_log2;
    if (rows) {
        args->tiles = kiln__transposed_rows(&args->x, size_log2);
        across = 1;
    }
    q->block_rows = args->down ? KILN_QUANTIZE_GROUP : 1u << args->x.rows_log2;
    return kiln__grid(name, across, ((uint64_t)call->rows + q->block_rows - 1) / q->block_rows, config);
}

#endif
