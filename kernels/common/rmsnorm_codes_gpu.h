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
    kiln_eight_load(sums, (const kiln_element *)args->x + row * (uint64_t)args->x_stride + col, count,
                    args->out.shape.wide);
    if (!args->residual) return;
    kiln_eight_load(addends, (const kiln_element *)args->residual + row * (uint64_t)args->residual_stride + col, count,
                    args->out.shape.wide);
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
    if (args->weight) kiln_eight_load(weights, (const kiln_element *)args->weight + col, count, args->out.shape.wide);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        values[i] = values[i] * scale * weights[i];
}

/* The passes over a row: its squares; its greatest magnitude, if that determines a scale; its codes. */
enum { KILN_RMSNORM_SQUARES, KILN_RMSNORM_GREATEST, KILN_RMSNORM_CODES, KILN_RMSNORM_PASSES };

/* A block's rows. An input that sum replaces is read for the last time in the last pass, by the thread that writes sum.
 */
KILN_INLINE void kiln_rmsnorm_codes(const kiln_rmsnorm_codes_args *args, float *exchange, kiln_codes_format format) {
    const kiln_codes_args *out = &args->out;
    kiln_codes_place p = kiln_codes_place_of(out);
    if (p.beyond) return;
    float scale = 0.0f, state = 0.0f;
    KILN_LOOP
    for (uint32_t pass = 0; pass < KILN_RMSNORM_PASSES; pass++) {
        uint32_t eights = pass == KILN_RMSNORM_GREATEST && !kiln_codes_of_row(out) ? 0u : out->eights;
        float found = 0.0f;
        if (pass == KILN_RMSNORM_CODES) state = kiln_codes_state(out, p, state, format);
        KILN_LOOP
        for (uint32_t first = 0; first < eights; first += p.lanes) { /* by all threads alike */
            uint32_t eight = first + p.lane, count = kiln_eight_count(out, p, eight), col = eight * KILN_EIGHT;
            float values[KILN_EIGHT];
            kiln_rmsnorm_sums(args, values, p.row, col, count);
            if (pass == KILN_RMSNORM_SQUARES) {
                found += kiln_eight_squares(values);
                continue;
            }
            if (pass == KILN_RMSNORM_CODES && args->sum)
                kiln_eight_store((kiln_element *)args->sum + p.row * (uint64_t)args->sum_stride + col, values, count,
                                 out->shape.wide);
            kiln_rmsnorm_weigh(args, values, scale, col, count);
            if (pass == KILN_RMSNORM_GREATEST)
                found = kiln_eight_greatest(values, found);
            else
                kiln_eight_put(out, p, eight, values, count, &state, format);
        }
        if (pass == KILN_RMSNORM_SQUARES) {
            found = kiln_reduce(found, out->shape.lanes_log2, exchange, KILN_REDUCE_SUM);
            scale = kiln_rsqrt(KILN_FMA(found, args->mean, args->eps));
        }
        if (eights && pass == KILN_RMSNORM_GREATEST)
            state = kiln_reduce(found, out->shape.lanes_log2, exchange, KILN_REDUCE_MAX);
    }
}

#endif
