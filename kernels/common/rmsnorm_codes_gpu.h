/* The kernel of rmsnorm_fp8, rmsnorm_int8 and rmsnorm_nvfp4 on devices. */
#ifndef KILN_KERNELS_COMMON_RMSNORM_CODES_GPU_H
#define KILN_KERNELS_COMMON_RMSNORM_CODES_GPU_H

#include "kernels/common/codes_gpu.h"
#include "kernels/common/rmsnorm_codes_args.h"
#include "kernels/common/root.h"

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

KILN_INLINE void kiln_rmsnorm_store(const kiln_rmsnorm_codes_args *args, float *sums, uint64_t row, uint32_t col,
                                    uint32_t count) {
    kiln_element *target = (kiln_element *)args->sum + row * (uint64_t)args->sum_stride + col;
    if (args->sum) kiln_eight_store(target, sums, count, args->out.shape.wide);
}

/* A block's rows, in two or three passes: the squares; the greatest magnitude, if that determines a scale; the codes.
 * The sums, and then the results, are kept in shared memory between them; those for which there is no room are computed
 * again. An input that sum replaces is read for the last time before the same thread writes sum. All threads go through
 * the loops alike. */
KILN_INLINE void kiln_rmsnorm_codes(const kiln_rmsnorm_codes_args *args, kiln_codes_kept *kept, float *exchange,
                                    kiln_codes_format format) {
    const kiln_codes_args *out = &args->out;
    kiln_codes_place p = kiln_codes_place_of(out);
    if (p.beyond) return;
    float squares = 0.0f, state = 0.0f; /* state: at first the greatest magnitude */
    KILN_LOOP
    for (uint32_t number = 0, eight = p.lane; number < out->rounds; number++, eight += p.lanes) {
        uint32_t count = kiln_eight_count(out, p, eight), col = eight * KILN_EIGHT;
        float values[KILN_EIGHT];
        kiln_rmsnorm_sums(args, values, p.row, col, count);
        squares += kiln_eight_squares(values);
        if (number >= out->kept) continue;
        kiln_eight_keep(kept, number, values);
        kiln_rmsnorm_store(args, values, p.row, col, count);
    }
    squares = kiln_reduce(squares, out->shape.lanes_log2, exchange, KILN_REDUCE_SUM);
    float scale = kiln_rsqrt(KILN_FMA(squares, args->mean, args->eps));
    uint32_t of_row = kiln_codes_of_row(out);
    KILN_LOOP
    for (uint32_t last = !of_row; last < 2; last++) {
        if (last) state = kiln_codes_state(out, p, state, format);
        KILN_LOOP
        for (uint32_t number = 0, eight = p.lane; number < out->rounds; number++, eight += p.lanes) {
            uint32_t count = kiln_eight_count(out, p, eight), col = eight * KILN_EIGHT;
            float values[KILN_EIGHT];
            if (number < out->kept) {
                kiln_eight_recall(kept, number, values);
            } else {
                kiln_rmsnorm_sums(args, values, p.row, col, count);
                if (last) kiln_rmsnorm_store(args, values, p.row, col, count);
            }
            if (!last || !of_row || number >= out->kept) kiln_rmsnorm_weigh(args, values, scale, col, count);
            if (last) {
                kiln_eight_put(out, p, eight, values, count, state, format);
                continue;
            }
            state = kiln_eight_greatest(values, state);
            if (number < out->kept) kiln_eight_keep(kept, number, values);
        }
        if (!last) state = kiln_reduce(state, out->shape.lanes_log2, exchange, KILN_REDUCE_MAX);
    }
}

#endif
