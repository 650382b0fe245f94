/* What the host sides of quantize_fp8 and quantize_int8, and of dequantize_fp8 and dequantize_int8, share: how many
 * scales there are says which elements share one. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_HOST_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_HOST_H

#include "kernels/common/host.h"
#include "kernels/common/quantize/quantize_args.h"

/* A call's params, under the names that both operators use. */
typedef struct kiln__quantize_call {
    void *codes;
    float *scales;
    const void *x;
    const float *given, *amax;
    int64_t rows, cols, scale_rows, scale_cols, codes_stride, x_stride, x_col_stride;
    float smax, greatest; /* 0: the code's greatest number */
} kiln__quantize_call;

static inline int64_t kiln__quantize_groups(int64_t count) {
    return (count >> KILN_QUANTIZE_GROUP_LOG2) + ((count & (KILN_QUANTIZE_GROUP - 1)) != 0);
}

/* Checks the number of scales of a tensor of rows x cols, both positive. *out_rows_log2 is as in kiln_quantize_args. */
static inline kiln_status kiln__quantize_scales_check(const char *name, int64_t rows, int64_t cols, int64_t scale_rows,
                                                      int64_t scale_cols, uint32_t *out_rows_log2) {
    int64_t row_groups = kiln__quantize_groups(rows), col_groups = kiln__quantize_groups(cols);
    KILN__TRY(kiln__size_check(name, "scale_rows", scale_rows, rows));
    KILN__TRY(kiln__size_check(name, "scale_cols", scale_cols, col_groups));
    KILN__REQUIRE(scale_rows == rows || scale_rows == row_groups || scale_rows == 1,
                  "%s: scale_rows is %lld: must be 1, %lld (for every 128 rows) or %lld (for each)", name,
                  (long long)scale_rows, (long long)row_groups, (long long)rows);
    KILN__REQUIRE(scale_cols == col_groups || scale_cols == 1,
                  "%s: scale_cols is %lld: must be 1 or %lld (for every 128 columns)", name, (long long)scale_cols,
                  (long long)col_groups);
    *out_rows_log2 = scale_rows == rows ? 0 : scale_rows == row_groups ? KILN_QUANTIZE_GROUP_LOG2 : 63;
    return KILN_OK;
}

/* The same for a call, whose scales may have to be given. */
static inline kiln_status kiln__quantize_cut(const char *name, const kiln__quantize_call *call,
                                             kiln_quantize_args *args) {
    int64_t col_groups = kiln__quantize_groups(call->cols);
    KILN__TRY(kiln__quantize_scales_check(name, call->rows, call->cols, call->scale_rows, call->scale_cols,
                                          &args->rows_log2));
    args->grouped = call->scale_cols > 1;
    args->scale_cols = call->scale_cols;
    if (args->source != KILN_QUANTIZE_COMPUTED || !args->rows_log2) return KILN_OK;
    KILN__REQUIRE(
        args->rows_log2 == KILN_QUANTIZE_GROUP_LOG2 && call->scale_cols == col_groups,
        "%s: amax is NULL: must be given where a scale is of more than 128 x 128 elements and of several rows", name);
    return KILN_OK;
}

/* Checks the tensors that are not x. *out_wide: whether the codes of vectors of x are aligned. */
static inline kiln_status kiln__quantize_codes_check(const char *name, const kiln__quantize_call *call,
                                                     kiln_quantize_args *args, unsigned size_log2, uint32_t *out_wide) {
    int64_t scales_stride = call->scale_cols;
    args->codes_stride = call->codes_stride ? call->codes_stride : call->cols;
    KILN__TRY(kiln__tensor_check(name, "codes", call->codes, call->rows, call->cols, args->codes_stride, 0));
    if (call->scales)
        KILN__TRY(kiln__tensor_check(name, "scales", call->scales, call->scale_rows, scales_stride, scales_stride, 2));
    if (call->given)
        KILN__TRY(kiln__tensor_check(name, "given", call->given, call->scale_rows, scales_stride, scales_stride, 2));
    if (call->amax)
        KILN__TRY(kiln__tensor_check(name, "amax", call->amax, call->scale_rows, scales_stride, scales_stride, 2));
    uintptr_t places = (uintptr_t)call->codes | (call->rows > 1 ? (uintptr_t)args->codes_stride : 0);
    *out_wide = (places & ((1u << (4 - size_log2)) - 1)) == 0;
    return KILN_OK;
}

/* Checks the sizes of a call and which elements share a scale, and fills in what follows from them. If x is empty there
 * is nothing else to do. */
static inline kiln_status kiln__quantize_begin(const char *name, kiln__quantize_call *call, kiln_quantize_args *args) {
    KILN__TRY(kiln__size_check(name, "rows", call->rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "cols", call->cols, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "scale_rows", call->scale_rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "scale_cols", call->scale_cols, INT64_MAX));
    if (!call->scale_rows) call->scale_rows = call->rows;
    if (!call->scale_cols) call->scale_cols = 1;
    args->smax = call->smax == 0 ? call->greatest : call->smax;
    KILN__REQUIRE(args->smax >= 1 && args->smax <= call->greatest, "%s: smax is %g: must be 0 or from 1 to %g", name,
                  (double)call->smax, (double)call->greatest);
    if (KILN__UNLIKELY(!call->rows || !call->cols)) return KILN_OK;
    args->codes = call->codes;
    args->scales = call->scales;
    args->x = call->x;
    args->values = call->given ? call->given : call->amax;
    args->source = call->given ? KILN_QUANTIZE_GIVEN : call->amax ? KILN_QUANTIZE_AMAX : KILN_QUANTIZE_COMPUTED;
    return kiln__quantize_cut(name, call, args);
}

/* Checks a call and prepares its arguments and its launch. An empty grid means that there is nothing to launch. */
static inline kiln_status kiln__quantize_prepare(const char *name, kiln__quantize_call *call, unsigned size_log2,
                                                 kiln_quantize_args *args, kiln_launch_config *config) {
    uint32_t wide, codes_wide;
    *config = (kiln_launch_config){0};
    KILN__TRY(kiln__quantize_begin(name, call, args));
    if (KILN__UNLIKELY(!call->rows || !call->cols)) return KILN_OK;
    kiln__tensor x = kiln__tensor_of("x", call->x, call->x_stride);
    KILN__TRY(kiln__tensors_check(name, &x, 1, call->rows, call->cols, size_log2, &wide));
    KILN__TRY(kiln__quantize_codes_check(name, call, args, size_log2, &codes_wide));
    args->x_stride = x.stride;
    wide &= codes_wide;

    uint64_t vectors = kiln__vectors(call->cols, size_log2), tiles = 1;
    unsigned lanes_log2 = kiln__lanes_log2(vectors);
    const bool computed = args->source == KILN_QUANTIZE_COMPUTED, shared = computed && args->rows_log2;
    if (!computed && !args->grouped) {
        KILN__TRY(kiln__elementwise(name, call->rows, call->cols, size_log2, wide, &args->shape, config));
        args->block_rows = KILN_BLOCK >> args->shape.lanes_log2;
        args->scale_lanes_log2 = args->shape.lanes_log2;
        return KILN_OK;
    }
    args->shape = (kiln_shape){.rows = call->rows, .cols = call->cols, .tile = (uint32_t)call->cols, .wide = wide};
    if (shared || args->grouped) {
        lanes_log2 = KILN_QUANTIZE_GROUP_LOG2 - (4 - size_log2); /* one vector of a group for each thread */
        args->shape.tile = KILN_QUANTIZE_GROUP;
        tiles = (uint64_t)kiln__quantize_groups(call->cols);
    } else if (lanes_log2 > KILN_SUBGROUP_LOG2) {
        lanes_log2 = KILN_BLOCK_LOG2;
    }
    args->shape.lanes_log2 = lanes_log2;
    args->block_rows = (uint32_t)(shared ? KILN_QUANTIZE_GROUP : KILN_BLOCK >> lanes_log2);
    if (args->grouped && !shared && call->rows >= KILN_QUANTIZE_MANY) args->block_rows *= KILN_QUANTIZE_TIMES;
    args->scale_lanes_log2 = shared ? KILN_BLOCK_LOG2 : lanes_log2;
    return kiln__grid(name, tiles, ((uint64_t)call->rows + args->block_rows - 1) / args->block_rows, config);
}

/* Has the blocks of a prepared launch keep all elements of a scale (quantize_held.h), where two blocks have shared
 * memory for that: 128 x 128, and rows of which a thread has several vectors. Up to four of 16 bits are in registers
 * from sm_90a on (quantize_sm90a.h). */
static inline void kiln__quantize_hold(const kiln_device_info *device, const kiln__quantize_call *call,
                                       unsigned size_log2, kiln_quantize_args *args, kiln_launch_config *config) {
    enum { SQUARE = KILN_QUANTIZE_GROUP * KILN_QUANTIZE_GROUP, IN_REGISTERS = 4, OTHERS = 1024 };
    const uint64_t step = (uint64_t)KILN_BLOCK * KILN_VECTOR_BYTES >> size_log2, cols = (uint64_t)call->cols;
    const bool of_square = args->scale_lanes_log2 > args->shape.lanes_log2;
    const bool of_row = !of_square && args->source == KILN_QUANTIZE_COMPUTED && !args->grouped &&
                        args->shape.lanes_log2 == KILN_BLOCK_LOG2;
    const bool usual =
        of_row && size_log2 == 1 && device->target.compute_capability >= 90 && cols <= IN_REGISTERS * step;
    if (!(of_square || of_row) || usual || !args->shape.wide || args->smax != call->greatest) return;
    const uint64_t behind = ((of_square ? SQUARE : cols) - 1) / step; /* vectors of a thread, but its first */
    const uint64_t bytes = behind * KILN_BLOCK * KILN_VECTOR_BYTES;
    if (cols % (KILN_VECTOR_BYTES >> size_log2) || !behind || bytes + OTHERS > (uint64_t)device->max_shared_bytes / 2)
        return;
    args->source = KILN_QUANTIZE_HELD;
    config->dynamic_shared_bytes = (uint32_t)bytes;
}

#endif
