/* rmsnorm_fp8 and rmsnorm_int8 from sm_80 on, for aligned rows that a block shares and has in registers: a thread has
 * up to four eights of a row as pairs of f32 (eights.h). */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_EIGHTS_H
#define KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_EIGHTS_H

#include "kernels/common/quantize/eights.h"
#include "kernels/common/quantize/rmsnorm_codes_gpu.h"

enum {
    KILN_RMSNORM_SM100 = __CUDA_ARCH__ >= 1000,
    KILN_RMSNORM_EIGHTS = 4,
    KILN_RMSNORM_FULL = KILN_VECTOR > 4 || !KILN_RMSNORM_SM100,  /* whether rows can be without questions */
    KILN_RMSNORM_OTHERS = KILN_VECTOR > 4 || KILN_RMSNORM_SM100, /* and with them, which spilled elsewhere */
    KILN_RMSNORM_SOME = KILN_RMSNORM_SM100 ? 4 : 3,              /* eights of these: ptxas would spill */
    KILN_RMSNORM_WEIGHTS = KILN_VECTOR > 4 && KILN_RMSNORM_SM100 /* whether registers are for all weights, too */
};

/* kiln_eight_squares of pairs. */
KILN_INLINE float kiln_eight_pairs_squares(const kiln_packed *pairs) {
    kiln_packed sums[2];
    float both[2];
    KILN_UNROLL
    for (int i = 0; i < 2; i++)
        sums[i] = kiln_packed_add(kiln_packed_mul(pairs[i], pairs[i]), kiln_packed_mul(pairs[i + 2], pairs[i + 2]));
    kiln_unpack(both, kiln_packed_add(sums[0], sums[1]));
    return both[0] + both[1];
}

/* A block's row. */
template <int COUNT, bool FULL>
KILN_INLINE void kiln_rmsnorm_row_of(const kiln_rmsnorm_codes_args *args, kiln_codes_exchange *exchange,
                                     kiln_codes_format format) {
    enum { STEP = KILN_BLOCK * KILN_EIGHT };
    const kiln_codes_args *out = &args->out;
    const kiln_codes_place p = kiln_codes_place_of_block(out);
    if (p.beyond) return;
    const uint32_t eights = (uint32_t)out->shape.cols / KILN_EIGHT, col = p.lane * KILN_EIGHT;
    const kiln_element *x = (const kiln_element *)args->x + p.row * (uint64_t)args->x_stride + col;
    kiln_eight_loaded loaded[COUNT];
    kiln_packed values[COUNT][KILN_EIGHT_PAIRS];
    float state = 0.0f;
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++)
        if (kiln_eight_is<FULL>(i, eights)) loaded[i] = kiln_eight_loaded_from(x + i * STEP);
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++)
        kiln_eight_pairs(values[i], &loaded[i]);
    if (args->residual) {
        const kiln_element *residual =
            (const kiln_element *)args->residual + p.row * (uint64_t)args->residual_stride + col;
        KILN_UNROLL
        for (uint32_t i = 0; i < COUNT; i++)
            if (kiln_eight_is<FULL>(i, eights)) loaded[i] = kiln_eight_loaded_from(residual + i * STEP);
        KILN_UNROLL
        for (uint32_t i = 0; i < COUNT; i++) {
            kiln_packed addends[KILN_EIGHT_PAIRS];
            kiln_eight_pairs(addends, &loaded[i]);
            KILN_UNROLL
            for (int e = 0; e < KILN_EIGHT_PAIRS; e++)
                values[i][e] = kiln_packed_add(values[i][e], addends[e]);
        }
    }
    if (args->sum) {
        kiln_element *sum = (kiln_element *)args->sum + p.row * (uint64_t)args->sum_stride + col;
        KILN_UNROLL
        for (uint32_t i = 0; i < COUNT; i++)
            if (kiln_eight_is<FULL>(i, eights)) kiln_eight_pairs_store(sum + i * STEP, values[i]);
    }
    const kiln_element *weight = (const kiln_element *)args->weight;
    if (weight && KILN_RMSNORM_WEIGHTS) { /* under way while the block adds up */
        KILN_UNROLL
        for (uint32_t i = 0; i < COUNT; i++)
            if (kiln_eight_is<FULL>(i, eights)) loaded[i] = kiln_eight_loaded_from(weight + col + i * STEP);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++)
        if (kiln_eight_is<FULL>(i, eights)) state += kiln_eight_pairs_squares(values[i]);
    state = kiln_eights_block_sum(state, exchange);
    const float scale = kiln_rsqrt(KILN_FMA(state, args->mean, args->eps));
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++)
        kiln_eight_scale(values[i], kiln_pack(scale, scale));
    if (weight) {
        KILN_UNROLL
        for (uint32_t i = 0; i < COUNT; i++) {
            kiln_packed factors[KILN_EIGHT_PAIRS];
            if (!KILN_RMSNORM_WEIGHTS && kiln_eight_is<FULL>(i, eights))
                loaded[i] = kiln_eight_loaded_from(weight + col + i * STEP);
            kiln_eight_pairs(factors, &loaded[i]);
            kiln_eight_multiply(values[i], factors);
        }
    }
    kiln_eights_put<COUNT, FULL>(out, p, eights, values, exchange, format);
}

/* Returns whether it did the call. Rows of 4096 and 8192 columns are without questions for each eight, of
 * f32 those of 8192 before sm_100, which are the only ones there. */
KILN_INLINE bool kiln_rmsnorm_eights(const kiln_rmsnorm_codes_args *args, kiln_codes_exchange *exchange,
                                     kiln_codes_format format) {
    enum { MOST = KILN_RMSNORM_EIGHTS, HALF = MOST / 2 };
    if (!kiln_eights_usual(&args->out, format)) return false;
    if (KILN_RMSNORM_FULL && args->out.eights == MOST * KILN_BLOCK)
        kiln_rmsnorm_row_of<MOST, true>(args, exchange, format);
    else if (KILN_RMSNORM_FULL && KILN_RMSNORM_OTHERS && args->out.eights == HALF * KILN_BLOCK)
        kiln_rmsnorm_row_of<HALF, true>(args, exchange, format);
    else if (KILN_RMSNORM_OTHERS && args->out.rounds <= KILN_RMSNORM_SOME)
        kiln_rmsnorm_row_of<KILN_RMSNORM_SOME, false>(args, exchange, format);
    else
        return false;
    return true;
}

#endif
