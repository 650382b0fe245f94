/* Attention on codes of 8 bits for sm_90a: what a consumer has of a tile, its products, and how they become weights.
 * attention_codes_sm90a.h tells the whole, and what its includers define. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_CODES_SM90A_WEIGHTS_H
#define KILN_KERNELS_COMMON_ATTENTION_CODES_SM90A_WEIGHTS_H

#include "kernels/arch/sm89_codes.h"
#include "kernels/arch/sm90a_products.h"
#include "kernels/common/attention_codes_sm90a_tiles.h"

template <uint32_t DIM> struct tile_state {
    rows_of_warp<DIM> rows;
    typename unit::sums products[TILE_KEYS / 8][4]; /* of queries and keys */
    float values[DIM / 8 + 1][4];                   /* products of weights and values, and with GREATEST */
    uint32_t weights[TILE_KEYS / 32][4];
    float keep[2]; /* the factor of what the rows have had before the tile of the weights */
    uint32_t zero; /* 0, which the compiler does not know */
};

template <bool VALUE> struct is_masked {
    enum : bool { value = VALUE };
};

/* Begins products = queries keys^T. */
template <uint32_t DIM>
KILN_INLINE void begin_products(typename unit::sums (*products)[4], uint32_t queries, uint32_t keys) {
    uint64_t a = kiln_sm90a_swizzled_128(queries, 16, ATOM), b = kiln_sm90a_swizzled_128(keys, 16, ATOM);
    KILN_UNROLL
    for (uint32_t step = 0; step < DIM / 32; step++)
        unit::multiply(products[0], a + 2 * step, b + 2 * step, step > 0);
    kiln_sm90a_wgmma_commit();
}

/* Begins products = weights values. */
template <uint32_t DIM>
KILN_INLINE void begin_values(float (*products)[4], const uint32_t (*weights)[4], uint32_t values) {
    uint64_t b = kiln_sm90a_swizzled_128(values, 16, ATOM);
    KILN_UNROLL
    for (uint32_t step = 0; step < TILE_KEYS / 32; step++) {
        if (DIM == 64) kiln_sm90a_wgmma_e4m3_n72(products[0], weights[step], b + 2 * step, step > 0);
        if (DIM == 96) kiln_sm90a_wgmma_e4m3_n104(products[0], weights[step], b + 2 * step, step > 0);
        if (DIM == 128) kiln_sm90a_wgmma_e4m3_n136(products[0], weights[step], b + 2 * step, step > 0);
    }
    kiln_sm90a_wgmma_commit();
}

/* Waits for this consumer's turn with the matrix units, and gives it to the other. */
KILN_INLINE void take_turn(uint32_t group) {
    kiln_sm90a_barrier_sync(OF_TURN + group, CONSUMERS * WARPGROUP);
}
KILN_INLINE void pass_turn(uint32_t group) {
    kiln_sm90a_barrier_arrive(OF_TURN + 1 - group, CONSUMERS * WARPGROUP);
}

/* Takes the products with a tile's values over, of `count` results of a row. */
template <uint32_t DIM>
KILN_INLINE void add_results(tile_state<DIM> *t, uint32_t r, uint32_t first, uint32_t count, float keep) {
    KILN_UNROLL
    for (uint32_t i = first; i < first + count; i++) {
        float *result = &t->rows.result[i / 4][i / 2 % 2][2 * r + i % 2];
        *result = KILN_FMA(*result, keep, t->values[i / 2][2 * r + i % 2]);
    }
}
template <uint32_t DIM> KILN_INLINE void add_sums(tile_state<DIM> *t, const float *keep) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++)
        t->rows.rounded[r] = KILN_FMA(t->rows.rounded[r], keep[r], t->values[DIM / 8][2 * r]);
}
template <uint32_t DIM> KILN_INLINE void add_values(tile_state<DIM> *t) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++)
        add_results(t, r, 0, DIM / 4, t->keep[r]);
    add_sums(t, t->keep);
}

/* The origins of the rows with a tile whose greatest products, times their keys' scales, are max of this lane's keys;
 * and what is added to scores that become weights. */
template <uint32_t DIM> KILN_INLINE void find_origins(tile_state<DIM> *t, float *max, float *added) {
    rows_of_warp<DIM> *rows = &t->rows;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        max[r] = fmaxf(max[r], kiln_shuffle_xor(max[r], 1));
        max[r] = fmaxf(max[r], kiln_shuffle_xor(max[r], 2));
        float origin = fmaxf(rows->origin[r], ceilf(max[r] * rows->factor[r]));
        float base = origin == -KILN_INFINITY ? 0.0f : origin;
        t->keep[r] = kiln_fast_exp2(rows->origin[r] - base);
        added[r] = WEIGHT_LOG2 - base;
        rows->origin[r] = origin;
    }
}

/* Products become weights. `scales`: of the tile's keys, the first of which is `key`; windows: of the rows. */
template <bool MASKED, uint32_t DIM>
KILN_INLINE void weigh(tile_state<DIM> *t, const float *scales, uint32_t key, const kiln_window *windows) {
    rows_of_warp<DIM> *rows = &t->rows;
    const uint32_t own = kiln_thread() % 4 * 2;
    float scores[TILE_KEYS / 8][4], max[2], added[2];
    KILN_UNROLL
    for (uint32_t n = 0; n < TILE_KEYS / 8; n++) {
        float2 scale = *(const float2 *)(scales + 8 * n + own);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            kiln_window window = windows[i / 2];
            scores[n][i] = (float)t->products[n][i] * (i % 2 ? scale.y : scale.x);
            if (MASKED && key + 8 * n + own + i % 2 - window.begin >= window.end - window.begin)
                scores[n][i] = -KILN_INFINITY;
        }
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        max[r] = scores[0][2 * r];
        KILN_UNROLL
        for (uint32_t n = 0; n < TILE_KEYS / 8; n++)
            max[r] = fmaxf(max[r], fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    find_origins(t, max, added);
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++)
        rows->sum[r] *= t->keep[r];
    KILN_UNROLL
    for (uint32_t i = 0; i < TILE_KEYS / 8; i++) { /* two eights of keys and one of the rows */
        uint32_t r = i % 2;
        float four[4];
        KILN_UNROLL
        for (uint32_t e = 0; e < 4; e++) {
            four[e] = kiln_fast_exp2(KILN_FMA(scores[i / 2 * 2 + e / 2][2 * r + e % 2], rows->factor[r], added[r]));
            rows->sum[r] += four[e];
        }
        t->weights[i / 4][i % 4] = kiln_sm89_cvt_e4m3x4_f32(four);
    }
}

/* `value`, which the compiler knows only where it knows `other`: zero is 0. */
KILN_INLINE uint32_t behind(uint32_t value, uint32_t other, uint32_t zero) {
    return value | (other & zero);
}
KILN_INLINE float behind(float value, uint32_t other, uint32_t zero) {
    return __uint_as_float(behind(__float_as_uint(value), other, zero));
}

/* A number that is read from shared memory here, and not before. */
KILN_INLINE float read_here(const float *from) {
    float number;
    asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(number) : "r"(kiln_sm90a_shared(from)) : "memory");
    return number;
}

/* The greatest of a row's products with this lane's keys from one half of the tile. */
KILN_INLINE unit::sums greatest(const unit::sums (*products)[4], uint32_t r) {
    unit::sums max = products[0][2 * r];
    KILN_UNROLL
    for (uint32_t n = 0; n < SHARED_SCALE_KEYS / 8; n++)
        max = unit::greater(max, unit::greater(products[n][2 * r], products[n][2 * r + 1]));
    return max;
}

/* The same, of a tile all of whose keys are seen, those of each half with one scale for a lane: with products with the
 * values of the tile before taken over, and the turn given meanwhile, but without the sums of weights before they are
 * rounded. */
template <uint32_t DIM> KILN_INLINE void weigh_shared(tile_state<DIM> *t, const float *scales, uint32_t group) {
    const rows_of_warp<DIM> &rows = t->rows;
    const float keep[2] = {t->keep[0], t->keep[1]};
    float scores[TILE_KEYS / 8][4], max[2], factor[2][2], added[2];
    scales += kiln_thread() % 4 * 2;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        max[r] = fmaxf((float)greatest(t->products, r) * scales[0],
                       (float)greatest(t->products + SHARED_SCALE_KEYS / 8, r) * scales[SHARED_SCALE_KEYS]);
        factor[r][0] = rows.factor[r] * scales[0];
        factor[r][1] = rows.factor[r] * scales[SHARED_SCALE_KEYS];
    }
    find_origins(t, max, added);
    KILN_UNROLL
    for (uint32_t i = 0; i < TILE_KEYS / 2; i++)
        scores[i / 4][i % 4] = (float)t->products[i / 4][i % 4];
    KILN_UNROLL
    for (uint32_t i = 0; i < TILE_KEYS / 8; i++) { /* two eights of keys and one of the rows */
        uint32_t r = i % 2, made = i < IN_FLIGHT ? 0 : t->weights[(i - IN_FLIGHT) / 4][(i - IN_FLIGHT) % 4];
        if (i == BEFORE_TURN) {
            pass_turn(behind(group, __float_as_uint(added[0]), t->zero));
            const float scale[2] = {read_here(scales), read_here(scales + SHARED_SCALE_KEYS)};
            KILN_UNROLL
            for (uint32_t e = 0; e < 4; e++)
                factor[e / 2][e % 2] = rows.factor[e / 2] * scale[e % 2];
        }
        float four[4], more = behind(added[r], made, t->zero);
        KILN_UNROLL
        for (uint32_t e = 0; e < 4; e++)
            four[e] = kiln_fast_exp2(KILN_FMA(scores[i / 2 * 2 + e / 2][2 * r + e % 2], factor[r][i / 8], more));
        t->weights[i / 4][i % 4] = kiln_sm89_cvt_e4m3x4_f32(four);
        add_results(t, r, i / 2 * (DIM / 32), DIM / 32, behind(keep[r], made, t->zero));
    }
    add_sums(t, keep);
}

#endif
