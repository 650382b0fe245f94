/* Attention on codes of 8 bits for sm_90a: what a consumer has of a tile, its products, and how they become weights.
 * attention_codes_sm90a.h tells the whole, and what its includers define. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM90A_WEIGHTS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM90A_WEIGHTS_H

#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/attention/attention_codes_sm90a_tiles.h"

template <uint32_t DIM> struct tile_state {
    rows_of_warp<DIM> rows;
    uint32_t weights[TILE_KEYS / 32][4];
    own_numbers *own;
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

/* Waits for this consumer's turn to begin products, and gives it to the next. */
KILN_INLINE uint32_t own_group(void) {
    return kiln_sm90a_anew(kiln_thread()) / WARPGROUP - 1;
}
KILN_INLINE void take_turn(void) {
    kiln_sm90a_barrier_sync(OF_TURN + own_group(), 2 * WARPGROUP);
}
KILN_INLINE void pass_turn(void) {
    const uint32_t group = own_group();
    kiln_sm90a_barrier_arrive(OF_TURN + (group == CONSUMERS - 1 ? 0 : group + 1), 2 * WARPGROUP);
}

/* How many channels the products of weights and values have in one part. */
template <uint32_t DIM> struct part {
    enum : uint32_t { CHANNELS = DIM == 96 ? 96 : 64, COUNT = DIM / CHANNELS };
};

/* Begins the products of weights with a part of the values, of the last part with GREATEST, too. */
template <uint32_t DIM>
KILN_INLINE void begin_part(float (*products)[4], const uint32_t (*weights)[4], uint32_t values, uint32_t number) {
    uint64_t b = kiln_sm90a_swizzled_128(values + number * part<DIM>::CHANNELS * SPAN, 16, ATOM);
    KILN_UNROLL
    for (uint32_t step = 0; step < TILE_KEYS / 32; step++) {
        if (number + 1 < part<DIM>::COUNT)
            kiln_sm90a_wgmma_e4m3_n64(products[0], weights[step], b + 2 * step, step > 0);
        else if (DIM == 96)
            kiln_sm90a_wgmma_e4m3_n104(products[0], weights[step], b + 2 * step, step > 0);
        else
            kiln_sm90a_wgmma_e4m3_n72(products[0], weights[step], b + 2 * step, step > 0);
    }
    kiln_sm90a_wgmma_commit();
}

/* Takes over a part that is made. */
template <uint32_t DIM> KILN_INLINE void add_part(tile_state<DIM> *t, float (*products)[4], uint32_t number) {
    enum : uint32_t { CHANNELS = part<DIM>::CHANNELS };
    const bool last = number + 1 == part<DIM>::COUNT;
    kiln_sm90a_wgmma_hold<CHANNELS / 2>(products[0]);
    if (last) kiln_sm90a_wgmma_hold<4>(products[CHANNELS / 8]);
    const float keep[2] = {t->own->keep[0], t->own->keep[1]};
    KILN_UNROLL
    for (uint32_t i = 0; i < CHANNELS / 2; i++) {
        uint32_t n = i / 4 + number * (CHANNELS / 8);
        float *result = &t->rows.result[n / 2][n % 2][i % 4];
        *result = KILN_FMA(*result, keep[i / 2 % 2], products[i / 4][i % 4]);
    }
    KILN_UNROLL
    for (uint32_t r = 0; last && r < 2; r++)
        t->own->rounded[r] = KILN_FMA(t->own->rounded[r], keep[r], products[CHANNELS / 8][2 * r]);
}

/* The rows take what the weights' tile of values gives them. Two parts are in flight at a time. */
template <uint32_t DIM> KILN_INLINE void add_values(tile_state<DIM> *t, uint32_t values) {
    KILN_UNROLL
    for (uint32_t number = 0; number < part<DIM>::COUNT; number += 2) {
        float products[2][part<DIM>::CHANNELS / 8 + 1][4];
        const bool two = number + 1 < part<DIM>::COUNT;
        kiln_sm90a_wgmma_fence();
        begin_part<DIM>(products[0], t->weights, values, number);
        if (two) {
            begin_part<DIM>(products[1], t->weights, values, number + 1);
            kiln_sm90a_wgmma_wait<1>();
            add_part(t, products[0], number);
        }
        kiln_sm90a_wgmma_wait<0>();
        add_part(t, products[two], number + two);
    }
}

/* The origins of the rows with a tile whose greatest products, times their keys' scales, are max of this lane's keys;
 * and what is added to scores that become weights. SEEN: the rows see all keys of the tile. */
template <bool SEEN, uint32_t DIM>
KILN_INLINE void find_origins(tile_state<DIM> *t, const float *factor, float *max, float *added) {
    rows_of_warp<DIM> *rows = &t->rows;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        max[r] = fmaxf(max[r], kiln_shuffle_xor(max[r], 1));
        max[r] = fmaxf(max[r], kiln_shuffle_xor(max[r], 2));
        const float up = 12582912.0f; /* 1.5 * 2^23: sums with it are whole numbers */
        float origin = fmaxf(rows->origin[r], __fadd_ru(max[r] * factor[r], up) - up);
        float base = !SEEN && origin == -KILN_INFINITY ? 0.0f : origin;
        t->own->keep[r] = kiln_fast_exp2(rows->origin[r] - base);
        added[r] = WEIGHT_LOG2 - base;
        rows->origin[r] = origin;
    }
}

/* Products become weights. `scales`: of the tile's keys, the first of which is `key`; windows: of the rows. */
template <bool MASKED, uint32_t DIM>
KILN_INLINE void weigh(tile_state<DIM> *t, const unit::sums (*products)[4], const float *scales, uint32_t key,
                       const kiln_window *windows) {
    const uint32_t own = kiln_thread() % 4 * 2;
    const float factor[2] = {t->own->factor[0], t->own->factor[1]};
    float scores[TILE_KEYS / 8][4], max[2], added[2], sum[2] = {0.0f, 0.0f};
    KILN_UNROLL
    for (uint32_t n = 0; n < TILE_KEYS / 8; n++) {
        float2 scale = *(const float2 *)(scales + 8 * n + own);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            kiln_window window = windows[i / 2];
            scores[n][i] = (float)products[n][i] * (i % 2 ? scale.y : scale.x);
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
    find_origins<false>(t, factor, max, added);
    KILN_UNROLL
    for (uint32_t i = 0; i < TILE_KEYS / 8; i++) { /* two eights of keys and one of the rows */
        uint32_t r = i % 2;
        float four[4];
        KILN_UNROLL
        for (uint32_t e = 0; e < 4; e++) {
            four[e] = kiln_fast_exp2(KILN_FMA(scores[i / 2 * 2 + e / 2][2 * r + e % 2], factor[r], added[r]));
            sum[r] += four[e];
        }
        t->weights[i / 4][i % 4] = kiln_sm89_cvt_e4m3x4_f32(four);
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++)
        t->own->sum[r] = KILN_FMA(t->own->sum[r], t->own->keep[r], sum[r]);
}

/* The same number, which the compiler knows only where it knows `other`: zero is 0. */
KILN_INLINE float behind(float number, uint32_t other, uint32_t zero) {
    return __uint_as_float(__float_as_uint(number) | (other & zero));
}

/* The greatest of a row's products with this lane's keys from one half of the tile. */
KILN_INLINE unit::sums greatest(const unit::sums (*products)[4], uint32_t r) {
    unit::sums max = products[0][2 * r];
    KILN_UNROLL
    for (uint32_t n = 0; n < SHARED_SCALE_KEYS / 8; n++)
        max = unit::greater(max, unit::greater(products[n][2 * r], products[n][2 * r + 1]));
    return max;
}

/* The same, of a tile all of whose keys are seen, those of each half with one scale for a lane: without the sums of
 * weights before they are rounded. zero: 0, which the compiler does not know. */
template <uint32_t DIM>
KILN_INLINE void weigh_shared(tile_state<DIM> *t, const unit::sums (*products)[4], const float *scales, uint32_t zero) {
    enum : uint32_t { IN_FLIGHT = DIM == 64 ? 6 : (uint32_t)unit::IN_FLIGHT };
    const float own[2] = {t->own->factor[0], t->own->factor[1]};
    float max[2], factor[2][2], added[2];
    scales += kiln_thread() % 4 * 2;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        max[r] = fmaxf((float)greatest(products, r) * scales[0],
                       (float)greatest(products + SHARED_SCALE_KEYS / 8, r) * scales[SHARED_SCALE_KEYS]);
        factor[r][0] = own[r] * scales[0];
        factor[r][1] = own[r] * scales[SHARED_SCALE_KEYS];
    }
    find_origins<true>(t, own, max, added);
    KILN_UNROLL
    for (uint32_t i = 0; i < TILE_KEYS / 8; i++) { /* two eights of keys and one of the rows */
        const uint32_t r = i % 2, before = i - IN_FLIGHT;
        float four[4], more = added[r];
        if (i >= IN_FLIGHT) more = behind(more, t->weights[before / 4 % 4][before % 4], zero);
        KILN_UNROLL
        for (uint32_t e = 0; e < 4; e++)
            four[e] =
                kiln_fast_exp2(KILN_FMA((float)products[i / 2 * 2 + e / 2][2 * r + e % 2], factor[r][i / 8], more));
        t->weights[i / 4][i % 4] = kiln_sm89_cvt_e4m3x4_f32(four);
    }
}

#endif
