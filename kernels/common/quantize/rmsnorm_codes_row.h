/* A row of rmsnorm_fp8, rmsnorm_int8 or rmsnorm_nvfp4 on devices, and its columns one by one. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_ROW_H
#define KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_ROW_H

#include "kernels/common/quantize/codes_gpu.h"
#include "kernels/common/quantize/rmsnorm_codes_args.h"

/* A row's tensors, of which args says whether there are a residual, a weight and a sum: pointers that may be NULL would
 * not be taken for those to global memory. */
typedef struct kiln_rmsnorm_codes_row {
    const kiln_rmsnorm_codes_args *args;
    const kiln_element *x, *residual, *weight;
    kiln_element *sum;
} kiln_rmsnorm_codes_row;

KILN_INLINE kiln_rmsnorm_codes_row kiln_rmsnorm_codes_row_of(const kiln_rmsnorm_codes_args *args, uint64_t row) {
    kiln_rmsnorm_codes_row r;
    r.args = args;
    r.x = (const kiln_element *)args->x + row * (uint64_t)args->x_stride;
    r.residual = (const kiln_element *)args->residual + row * (uint64_t)args->residual_stride;
    r.weight = (const kiln_element *)args->weight;
    r.sum = (kiln_element *)args->sum + row * (uint64_t)args->sum_stride;
    return r;
}

/* x, or x + residual, of one column, and its result. */
KILN_INLINE float kiln_rmsnorm_column(const kiln_rmsnorm_codes_row *r, uint32_t col) {
    const float x = kiln_element_to_f32(r->x[col]);
    return r->args->residual ? x + kiln_element_to_f32(r->residual[col]) : x;
}
KILN_INLINE float kiln_rmsnorm_column_weigh(const kiln_rmsnorm_codes_row *r, float sum, float scale, uint32_t col) {
    return r->args->weight ? sum * scale * kiln_element_to_f32(r->weight[col]) : sum * scale;
}

/* kiln_eight_squares of an eight of a row, column by column. */
KILN_INLINE float kiln_rmsnorm_column_squares(const kiln_rmsnorm_codes_row *r, uint32_t col, uint32_t cols) {
    float even = 0.0f, odd = 0.0f; /* of the sums of pairs of columns, in turn */
    KILN_LOOP
    for (uint32_t i = col; i < col + KILN_EIGHT / 2; i++) {
        const float low = i < cols ? kiln_rmsnorm_column(r, i) : 0.0f;
        const float high = i + KILN_EIGHT / 2 < cols ? kiln_rmsnorm_column(r, i + KILN_EIGHT / 2) : 0.0f;
        const float last = even;
        even = odd;
        odd = last + (low * low + high * high);
    }
    return even + odd;
}

#endif
