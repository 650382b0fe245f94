/* rmsnorm_fp8 and rmsnorm_int8 on sm_90a, for aligned rows that a block shares: a thread processes two
 * eights at a time, and keeps them in registers between the passes if it has no more, else in shared memory. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_SM90A_H
#define KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_SM90A_H

#include "kernels/common/quantize/codes_sm90a.h"
#include "kernels/common/quantize/rmsnorm_codes_gpu.h"

/* A block's row. keeps: a thread has more than two eights. */
KILN_INLINE void kiln_rmsnorm_row(const kiln_rmsnorm_codes_args *args, kiln_codes_kept *kept,
                                  kiln_codes_exchange *exchange, kiln_codes_format format, bool keeps) {
    const kiln_codes_args *out = &args->out;
    const uint32_t rounds = keeps ? out->rounds : 2;
    const kiln_codes_place p = kiln_codes_place_of_block(out);
    if (p.beyond) return;
    const uint32_t eights = p.inside ? (uint32_t)out->shape.cols / KILN_EIGHT : 0;
    const kiln_element *x = (const kiln_element *)args->x + p.row * (uint64_t)args->x_stride;
    const kiln_element *residual = (const kiln_element *)args->residual + p.row * (uint64_t)args->residual_stride;
    const kiln_element *weight = (const kiln_element *)args->weight;
    float values[2][KILN_EIGHT], state = 0.0f;
    KILN_LOOP
    for (uint32_t number = 0; number < rounds; number += 2) {
        const uint32_t first = p.lane + number * KILN_BLOCK;
        kiln_codes_pair pair = kiln_codes_pair_load(x, first, eights);
        if (args->residual) {
            kiln_codes_pair addends = kiln_codes_pair_load(residual, first, eights);
            KILN_UNROLL
            for (int i = 0; i < 2; i++) {
                float others[KILN_EIGHT];
                kiln_vector_values(values[i], pair.vectors[i]);
                kiln_vector_values(others, addends.vectors[i]);
                KILN_UNROLL
                for (int e = 0; e < KILN_EIGHT; e++)
                    values[i][e] += others[e];
            }
        } else {
            KILN_UNROLL
            for (int i = 0; i < 2; i++)
                kiln_vector_values(values[i], pair.vectors[i]);
        }
        if (args->sum) {
            kiln_element *sum = (kiln_element *)args->sum + p.row * (uint64_t)args->sum_stride + first * KILN_EIGHT;
            KILN_UNROLL
            for (int i = 0; i < 2; i++)
                if (first + i * KILN_BLOCK < eights)
                    kiln_vector_store(sum + i * KILN_BLOCK * KILN_EIGHT, kiln_vector_of(values[i]));
        }
        KILN_UNROLL
        for (int i = 0; i < 2; i++) {
            state += kiln_eight_squares(values[i]);
            if (keeps && number + i < rounds) kiln_eight_keep(kept, number + i, values[i]);
        }
    }
    kiln_codes_pair weights = {};
    if (weight && !keeps)
        weights = kiln_codes_pair_load(weight, p.lane, eights); /* under way while the block adds up */
    state = kiln_codes_block_sum(state, exchange);
    const float scale = kiln_rsqrt(KILN_FMA(state, args->mean, args->eps));
    state = 0.0f;
    KILN_LOOP
    for (uint32_t number = 0; number < rounds; number += 2) {
        const uint32_t first = p.lane + number * KILN_BLOCK;
        if (weight && keeps) weights = kiln_codes_pair_load(weight, first, eights);
        KILN_UNROLL
        for (int i = 0; i < 2; i++)
            if (keeps && number + i < rounds) kiln_eight_recall(kept, number + i, values[i]);
        KILN_UNROLL
        for (int i = 0; i < 2; i++) {
            KILN_UNROLL
            for (int e = 0; e < KILN_EIGHT; e++)
                values[i][e] *= scale;
        }
        if (weight) {
            KILN_UNROLL
            for (int i = 0; i < 2; i++) {
                float factors[KILN_EIGHT];
                kiln_vector_values(factors, weights.vectors[i]);
                KILN_UNROLL
                for (int e = 0; e < KILN_EIGHT; e++)
                    values[i][e] *= factors[e];
            }
        }
        KILN_UNROLL
        for (int i = 0; i < 2; i++) {
            if (number + i >= rounds) continue;
            state = kiln_eight_greatest(values[i], state);
            if (keeps) kiln_eight_keep(kept, number + i, values[i]);
        }
    }
    if (kiln_codes_of_row(out)) state = kiln_codes_block_greatest(state, exchange);
    const float factor = kiln_codes_block_factor(out, p, state);
    KILN_LOOP
    for (uint32_t number = 0; number < rounds; number += 2) {
        KILN_UNROLL
        for (int i = 0; i < 2; i++)
            if (keeps && number + i < rounds) kiln_eight_recall(kept, number + i, values[i]);
        kiln_codes_put<2>(out, p, p.lane + number * KILN_BLOCK, eights, values, factor, format, out->grouped);
    }
}

/* Returns whether it did the call. */
KILN_INLINE bool kiln_rmsnorm_held(const kiln_rmsnorm_codes_args *args, kiln_codes_kept *kept,
                                   kiln_codes_exchange *exchange, kiln_codes_format format) {
    if (!kiln_codes_regular(&args->out)) return false;
    if (args->out.rounds <= 2) {
        kiln_rmsnorm_row(args, kept, exchange, format, false);
        return true;
    }
    if (args->out.rounds > args->out.kept) return false;
    kiln_rmsnorm_row(args, kept, exchange, format, true);
    return true;
}

#endif
