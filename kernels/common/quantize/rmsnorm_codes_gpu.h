/* The kernel of rmsnorm_fp8 and rmsnorm_int8 on devices. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/math/root.h"
#include "kernels/common/quantize/codes_gpu.h"
#include "kernels/common/quantize/rmsnorm_codes_args.h"

/* x, or x + residual, for an eight. */
KILN_INLINE void kiln_rmsnorm_sums(const kiln_rmsnorm_codes_args *args, float *sums, uint64_t row, uint32_t col,
                                   uint32_t count) {
    float addends[KILN_EIGHT];
    const kiln_element *x = (const kiln_element *)args->x + row * (uint64_t)args->x_stride + col;
    kiln_eight_values(sums, kiln_eight_load(x, count, args->out.shape.wide));
    if (!args->residual) return;
    const kiln_element *residual = (const kiln_element *)args->residual + row * (uint64_t)args->residual_stride + col;
    kiln_eight_values(addends, kiln_eight_load(residual, count, args->out.shape.wide));
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        sums[i] += addends[i];
}

/* Turns an eight of sums into results. */
KILN_INLINE void kiln_rmsnorm_weigh(const kiln_rmsnorm_codes_args *args, float *values, float scale, uint32_t col,
                                    uint32_t count) {
    float weights[KILN_EIGHT];
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        weights[i] = 1.0f;
    if (args->weight)
        kiln_eight_values(weights,
                          kiln_eight_load((const kiln_element *)args->weight + col, count, args->out.shape.wide));
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        values[i] = values[i] * scale * weights[i];
}

/* The passes over a row: its squares; its greatest magnitude, if that determines a scale; its codes. */
enum { KILN_RMSNORM_SQUARES, KILN_RMSNORM_GREATEST, KILN_RMSNORM_CODES, KILN_RMSNORM_PASSES };

/* A block's rows. The sums, and then the results, are kept in shared memory between the passes; those for which there
 * is no room are computed again. An input that sum replaces is read for the last time before the same thread writes
 * sum. All threads go through the loops alike. */
KILN_INLINE void kiln_rmsnorm_codes(const kiln_rmsnorm_codes_args *args, kiln_codes_kept *kept, float *exchange,
                                    kiln_codes_format format) {
    const kiln_codes_args *out = &args->out;
    kiln_codes_place p = kiln_codes_place_of(out);
    if (p.beyond) return;
    float scale = 0.0f, state = 0.0f; /* state: the squares, the greatest magnitude, then the factor of the codes */
    KILN_LOOP
    for (uint32_t pass = 0; pass < KILN_RMSNORM_PASSES; pass++) {
        if (pass == KILN_RMSNORM_GREATEST && !kiln_codes_of_row(out)) continue;
        if (pass == KILN_RMSNORM_CODES) state = kiln_codes_row_factor(out, p, state);
        KILN_LOOP
        for (uint32_t number = 0; number < out->rounds; number++) {
            uint32_t eight = p.lane + (number << out->shape.lanes_log2), held = number < out->kept;
            uint32_t count = kiln_eight_count(out, p, eight), col = eight * KILN_EIGHT;
            float values[KILN_EIGHT];
            if (held && pass != KILN_RMSNORM_SQUARES)
                kiln_eight_recall(kept, number, values);
            else
                kiln_rmsnorm_sums(args, values, p.row, col, count);
            if (args->sum && pass == (held ? KILN_RMSNORM_SQUARES : KILN_RMSNORM_CODES))
                kiln_eight_store((kiln_element *)args->sum + p.row * (uint64_t)args->sum_stride + col, values, count,
                                 out->shape.wide);
            if (pass == KILN_RMSNORM_SQUARES)
                state += kiln_eight_squares(values);
            else if (pass == KILN_RMSNORM_GREATEST || !kiln_codes_of_row(out) || !held)
                kiln_rmsnorm_weigh(args, values, scale, col, count);
            if (pass == KILN_RMSNORM_CODES) {
                kiln_eight_put(out, p, eight, values, count, state, format);
                continue;
            }
            if (pass == KILN_RMSNORM_GREATEST) state = kiln_eight_greatest(values, state);
            if (held) kiln_eight_keep(kept, number, values);
        }
        if (pass == KILN_RMSNORM_SQUARES) {
            state = kiln_reduce(state, out->shape.lanes_log2, exchange, KILN_REDUCE_SUM);
            scale = kiln_rsqrt(KILN_FMA(state, args->mean, args->eps));
            state = 0.0f;
        }
        if (pass == KILN_RMSNORM_GREATEST) state = kiln_reduce(state, out->shape.lanes_log2, exchange, KILN_REDUCE_MAX);
    }
}

#endif
