/* Attention for sm_90a (attention_sm90a.h): a consumer's products, and how scores become weights.
 *
 * Weights are exponents of 2 by one multiplication and addition for each score, exact enough up to 2048; beyond that
 * the maximum is taken off first. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_WEIGHTS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_WEIGHTS_H

#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/attention/attention_sm90a_tiles.h"

/* ---- A consumer ---- */

template <uint32_t DIM, uint32_t KEYS> struct tile_state {
    rows_of_warp<DIM> rows;
    float scores[KEYS / 8][4];
    uint32_t weights[KEYS / 16][4];
    float keep[2]; /* what results of the keys before are worth, where a maximum rose */
    bool far;      /* of zero: some maximum */
};

/* sums[64 x N] of a warpgroup: a product of 16 elements, added or not. */
template <uint32_t N, int MN_MAJOR, typename A> KILN_INLINE void multiply(float (*sums)[4], A a, uint64_t b, bool add) {
#ifdef KILN_PART_bf16
#define KILN_SM90A_PRODUCT(n) kiln_sm90a_wgmma_bf16_n##n<MN_MAJOR>(sums[0], a, b, add)
#else
#define KILN_SM90A_PRODUCT(n) kiln_sm90a_wgmma_f16_n##n<MN_MAJOR>(sums[0], a, b, add)
#endif
    if (N == 64) KILN_SM90A_PRODUCT(64);
    if (N == 96) KILN_SM90A_PRODUCT(96);
    if (N == 128) KILN_SM90A_PRODUCT(128);
    if (N == 256) KILN_SM90A_PRODUCT(256);
#undef KILN_SM90A_PRODUCT
}

/* Begins scores = queries keys^T. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void begin_scores(float (*scores)[4], uint32_t queries, uint32_t keys) {
    uint64_t a = kiln_sm90a_swizzled_128(queries, 16, ATOM), b = kiln_sm90a_swizzled_128(keys, 16, ATOM);
    KILN_UNROLL
    for (uint32_t step = 0; step < DIM / 16; step++) {
        uint32_t span = step / 4, within = step % 4 * 32;
        multiply<KEYS, 0>(scores, a + (span * GROUP_ROWS * SPAN + within) / 16, b + (span * KEYS * SPAN + within) / 16,
                          step > 0);
    }
    kiln_sm90a_wgmma_commit();
}

/* Begins results += weights values. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void begin_results(float (*results)[4], const uint32_t (*weights)[4], uint32_t values) {
    uint64_t b = kiln_sm90a_swizzled_128(values, KEYS * SPAN, ATOM);
    KILN_UNROLL
    for (uint32_t step = 0; step < KEYS / 16; step++)
        multiply<DIM, 1>(results, weights[step], b + step * 2 * ATOM / 16, true);
    kiln_sm90a_wgmma_commit();
}

/* What a consumer needs rarely of its tile of rows is read again from shared memory: the loop has no registers to keep
 * it in. */
template <bool CODES> KILN_INLINE score_scale scale_of_tile(const kiln_attention_args &args, const row_tile *tile) {
    return score_scale_of<CODES>(args, CODES && args.k_scale ? tile->work.kv_head : 0);
}

/* The first row of a warp, and of a lane's rows, in its sequence. */
KILN_INLINE uint32_t warp_row_of(const row_tile *tile) {
    uint32_t thread = kiln_sm90a_anew(kiln_thread());
    return tile->work.row + (thread / WARPGROUP - 1) * GROUP_ROWS + thread % WARPGROUP / LANES * WARP_ROWS;
}
KILN_INLINE uint32_t lane_row_of(const row_tile *tile) {
    return warp_row_of(tile) + kiln_thread() % LANES / 4;
}

/* Four lanes have a word of each of four vectors; afterwards each has a vector's, or the other way round. */
KILN_INLINE void exchange_quad(uint32_t *words) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < 4; mask *= 2) {
        bool upper = kiln_thread() & mask;
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            if (i & mask) continue;
            uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? words[i] : words[i | mask], (int)mask);
            words[i] = upper ? got : words[i];
            words[i | mask] = upper ? words[i | mask] : got;
        }
    }
}

/* Adds the mask to the scores of a consumer's warp with the keys from `key` on; those behind a row's window are left as
 * they are. Four lanes read 32 keys of a row by vectors and exchange them, where the mask's rows are on 16 bytes, and
 * else by elements. */
template <uint32_t KEYS>
KILN_INLINE void add_mask_of_tile(const kiln_attention_args &args, const row_tile *tile, const kiln_window *windows,
                                  float (*scores)[4], uint32_t key) {
    const kiln_attention_work work = tile->work;
    const uint32_t end_row = tile->end;
    float factor = args.softcap == 0.0f ? kiln_reciprocal(args.scale) : KILN_LOG2_E;
    uint32_t first = lane_row_of(tile), lane = kiln_sm90a_anew(kiln_thread() % 4);
    bool wide = ((uint32_t)(uintptr_t)args.mask | args.mask_cols * sizeof(kiln_element)) % KILN_VECTOR_BYTES == 0;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t number = min(first + 8 * r, end_row - 1), end = windows[r].end;
        uint32_t head = work.kv_head * args.group + number % args.group;
        const kiln_element *row = (const kiln_element *)args.mask;
        row += kiln_mask_row(&args, work.batch, head, number / args.group) + key;
        KILN_UNROLL
        for (uint32_t part = 0; part < KEYS; part += 32) {
            uint32_t words[4] = {};
            if (wide) {
                uint32_t at = part + lane * KILN_VECTOR;
                if (key + at < end) {
                    kiln_vector vector = kiln_vector_load(row + at);
                    KILN_UNROLL
                    for (uint32_t i = 0; i < 4; i++)
                        words[i] = vector.words[i];
                }
                exchange_quad(words);
            } else {
                KILN_UNROLL
                for (uint32_t i = 0; i < 8; i++) {
                    uint32_t at = part + i / 2 * 8 + lane * 2 + i % 2;
                    if (key + at < end) words[i / 2] |= (uint32_t)row[at] << i % 2 * 16;
                }
            }
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                float values[2];
                kiln_pair_values(values, words[i]);
                KILN_UNROLL
                for (uint32_t j = 0; j < 2; j++) {
                    float *score = &scores[part / 8 + i][2 * r + j];
                    *score = values[j] == -KILN_INFINITY ? -KILN_INFINITY : KILN_FMA(values[j], factor, *score);
                }
            }
        }
    }
}

/* mask_tree of a consumer's warp. */
template <uint32_t KEYS>
KILN_INLINE void mask_tree_of_tile(const kiln_attention_args &args, const row_tile *tile, float (*scores)[4],
                                   uint32_t key) {
    int32_t tree = kiln_tree_begin(&args, &tile->s);
    if ((int32_t)(key + KEYS) <= tree) return;
    uint32_t row = lane_row_of(tile), tokens[2];
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++)
        tokens[r] = tile->s.q_first + min(row + 8 * r, tile->end - 1) / args.group;
    mask_tree<KEYS>(args, tree, scores, tokens, key);
}

/* Caps and masks scores where some row does not see all keys. */
template <uint32_t DIM, uint32_t KEYS, bool MASKED>
KILN_INLINE void cut_scores(const kiln_attention_args &args, const row_tile *tile, tile_state<DIM, KEYS> *t,
                            uint32_t key) {
    float(*scores)[4] = t->scores;
    if (args.softcap != 0.0f) {
        float twice = scale_of_tile<layout<DIM, KEYS>::EXTENDED>(args, tile).twice;
        KILN_UNROLL
        for (uint32_t i = 0; i < KEYS / 2; i++)
            scores[i / 4][i % 4] = capped(scores[i / 4][i % 4], twice, args.softcap * KILN_LOG2_E);
    }
    if (MASKED) add_mask_of_tile<KEYS>(args, tile, t->rows.window, scores, key);
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 2; i++) {
        kiln_window window = t->rows.window[i / 2 % 2];
        uint32_t at = key + i / 4 * 8 + kiln_thread() % 4 * 2 + i % 2;
        if (at - window.begin >= window.end - window.begin) scores[i / 4][i % 4] = -KILN_INFINITY;
    }
    if (layout<DIM, KEYS>::EXTENDED && args.tree_mask) mask_tree_of_tile<KEYS>(args, tile, scores, key);
}

/* Scores become weights, exponents of 2 relative to a row's maximum. A maximum that rises by less than RISE, as an
 * exponent of 2, is left as it was: weights are up to 2^RISE then, and nothing before has to be scaled anew. Returns
 * whether some row's rose by more. */
template <uint32_t DIM, uint32_t KEYS> KILN_INLINE bool weigh(float factor, tile_state<DIM, KEYS> *t) {
    rows_of_warp<DIM> *rows = &t->rows;
    float(*scores)[4] = t->scores;
    constexpr float RISE = 8.0f;
    float max[2], origin[2], offset[2];
    bool rose = false;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float part[2] = {-KILN_INFINITY, -KILN_INFINITY};
        KILN_UNROLL
        for (uint32_t n = 0; n < KEYS / 8; n++)
            part[n % 2] = fmaxf(part[n % 2], fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
        max[r] = fmaxf(part[0], part[1]);
        rose |= (max[r] - rows->max[r]) * factor > RISE;
    }
    rose = __any_sync(0xffffffffu, rose);
    if (rose) {
        bool far = false;
        KILN_UNROLL
        for (uint32_t r = 0; r < 2; r++) {
            float before = rows->max[r];
            max[r] = fmaxf(max[r], kiln_shuffle_xor(max[r], 1));
            max[r] = fmaxf(max[r], kiln_shuffle_xor(max[r], 2));
            bool rises = (max[r] - before) * factor > RISE;
            t->keep[r] = rises ? kiln_fast_exp2((before - max[r]) * factor) : 1.0f;
            rows->max[r] = rises ? max[r] : before;
            rows->sum[r] *= t->keep[r];
            far |= fabsf(rows->max[r] * factor) >= 2048.0f && rows->max[r] != -KILN_INFINITY;
        }
        t->far = __any_sync(0xffffffffu, far);
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        origin[r] = rows->max[r] == -KILN_INFINITY ? 0.0f : rows->max[r];
        offset[r] = origin[r] * factor;
    }
    if (t->far) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KEYS / 2; i++)
            scores[i / 4][i % 4] -= origin[i / 2 % 2];
        offset[0] = offset[1] = 0.0f;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 2; i++) {
        float weight = kiln_fast_exp2(KILN_FMA(scores[i / 4][i % 4], factor, -offset[i / 2 % 2]));
        rows->sum[i / 2 % 2] += weight;
        scores[i / 4][i % 4] = weight;
    }
    return rose;
}

/* What results are worth where a maximum rose. */
template <uint32_t DIM, uint32_t KEYS> KILN_INLINE void keep_results(tile_state<DIM, KEYS> *t) {
    KILN_UNROLL
    for (uint32_t i = 0; i < DIM / 2; i++)
        t->rows.result[i / 4][i % 4] *= t->keep[i / 2 % 2];
}

template <uint32_t KEYS> KILN_INLINE void pack_weights(const float (*scores)[4], uint32_t (*weights)[4]) {
    KILN_UNROLL
    for (uint32_t n = 0; n < KEYS / 4; n++)
        weights[n / 4][n % 4] = pack(scores[n / 2][n % 2 * 2], scores[n / 2][n % 2 * 2 + 1]);
}

/* What a lane's rows see. */
KILN_INLINE void windows_of(const kiln_attention_args &args, const row_tile *tile, kiln_window *windows) {
    const kiln_sequence s = tile->s;
    const uint32_t row = lane_row_of(tile), key_end = tile->work.key_end, last = tile->end - 1;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        kiln_window window = window_of_row(args, s, min(row + 8 * r, last));
        window.end = min(window.end, max(key_end, window.begin));
        windows[r] = window;
    }
}

/* Before a tile's first key. */
template <uint32_t DIM, uint32_t KEYS> KILN_INLINE void start_rows_of_tile(tile_state<DIM, KEYS> *t) {
    t->far = false;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        t->rows.max[r] = -KILN_INFINITY;
        t->rows.sum[r] = 0.0f;
    }
}

#endif
