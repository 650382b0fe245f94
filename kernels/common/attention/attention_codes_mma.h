/* Attention on codes of 8 bits by mma.sync, sm_80 and later: tiles of keys and values in shared memory, and what a warp
 * does with one.
 *
 * q k^T is products of 32 codes, or of their numbers in two halves (unit::FRAGMENTS). Of the scores each lane has of a
 * row two neighbouring keys of every eight, which are the first factor of the second product as soon as they are
 * weights: a tile has load_keys, 16 keys as the second factor of the first product, and add_values, the second product.
 * attention_codes_sm89_tile.h and attention_codes_sm80_tile.h have them.
 *
 * Rows of shared memory are 16 bytes longer than a head, whereby neither copies nor ldmatrix meet a bank twice. Heads
 * are filled up to 64, 128 or 256 elements with zeros that are not read from memory; of more than 128 those that a call
 * has not are left out of the products. Includers define unit: products of q and k. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_MMA_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_MMA_H

#include "kernels/arch/sm80.h"
#include "kernels/common/attention/attention_codes_rows.h"

/* Queries of longer heads are read from shared memory for each tile, for want of registers to keep them in. */
enum : uint32_t { HELD_DIM = 128 };

/* Heads of SIZE codes, PITCH bytes from one to the next, and COUNT keys of a tile, in shared memory: k, then v, then
 * the scales of k. */
template <uint32_t SIZE, uint32_t COUNT, uint32_t ROW = SIZE + CODES> struct code_tile {
    enum : uint32_t {
        DIM = SIZE,
        KEYS = COUNT,
        PITCH = ROW,
        VECTORS = DIM / CODES,
        V = KEYS * PITCH,
        SCALES = 2 * V,
        BYTES = SCALES + KEYS * (uint32_t)sizeof(float)
    };

    /* 16 keys from 16 n on, 32 codes of each, as the second factor of products: two words for each eight keys. */
    KILN_INLINE void load_keys(uint32_t (*b)[4], uint32_t shared, uint32_t n, uint32_t step) {
        const uint32_t lane = kiln_thread() % LANES, row = 16 * n + lane % 8 + lane / 16 * 8;
        uint32_t words[4];
        kiln_sm80_ldmatrix_x4(words, shared + row * PITCH + (2 * step + lane / 8 % 2) * CODES);
        unit::keys_of(b, words);
    }
};

/* Copies the tile of keys from `key` on, before end, by so many threads; zeros behind the last key and behind a head's
 * last code. */
template <class TILE, uint32_t THREADS>
KILN_INLINE void copy_keys(const kiln_attention_codes_args &args, const kiln_sequence &s, uint32_t kv_head,
                           uint32_t key, uint32_t end, uint32_t shared) {
    const uint32_t thread = kiln_thread() % THREADS;
    const kiln_attention_args &plain = args.plain;
    KILN_LOOP
    for (uint32_t i = 0; i < TILE::KEYS * TILE::VECTORS / THREADS; i++) {
        uint32_t place = i * THREADS + thread, row = place / TILE::VECTORS;
        uint32_t d = place % TILE::VECTORS * CODES, to = shared + row * TILE::PITCH + d;
        bool present = key + row < end && d < plain.head_dim;
        uint64_t number = s.kv_first + key + row, offset = kv_head * plain.head_dim + d;
        const uint8_t *k = (const uint8_t *)plain.k + number * (uint64_t)plain.k_stride + offset;
        const uint8_t *v = (const uint8_t *)plain.v + number * (uint64_t)plain.v_stride + offset;
        kiln_sm80_cp_async(to, present ? k : plain.k, present ? CODES : 0);
        kiln_sm80_cp_async(to + TILE::V, present ? v : plain.v, present ? CODES : 0);
    }
    if (thread < TILE::KEYS) {
        bool present = key + thread < end;
        const float *scales = args.k_scales + kv_head * (uint64_t)args.k_scale_rows;
        uint64_t place = kiln_scale_at(args.k_index, s.kv_first + (uint64_t)key + thread);
        kiln_sm80_cp_async_4(shared + TILE::SCALES + thread * 4, present ? scales + place : scales, present ? 4 : 0);
    }
    kiln_sm80_cp_async_commit();
}

/* ---- Queries ---- */

/* A row's query. */
KILN_INLINE const uint8_t *query_of(const kiln_attention_args &args, const row_place &at) {
    return (const uint8_t *)args.q + at.token * (uint64_t)args.q_stride + at.head * args.head_dim;
}

/* What a warp has of its 16 queries: the first factors of all products, or where they are as codes in shared memory. */
template <uint32_t DIM> struct queries_of_warp {
    uint32_t held[DIM > HELD_DIM ? 1 : DIM / 32][unit::FRAGMENTS][4];
    uint32_t shared;
    uint32_t head_dim;
};

/* Copies the queries of ROWS rows as codes, zeros behind a head's last; those beyond `end` are the last one's. */
template <uint32_t DIM, uint32_t ROWS>
KILN_INLINE void copy_queries(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head, uint32_t row,
                              uint32_t end, uint32_t shared) {
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < ROWS * (DIM / CODES); i += KILN_BLOCK) {
        uint32_t place = i / (DIM / CODES), d = i % (DIM / CODES) * CODES, number = row + place;
        const uint8_t *q = query_of(args, row_place_of(args, s, kv_head, number < end ? number : end - 1)) + d;
        bool present = d < args.head_dim;
        kiln_sm80_cp_async(shared + place * (DIM + CODES) + d, present ? q : args.q, present ? CODES : 0);
    }
    kiln_sm80_cp_async_commit();
}

/* 16 queries, 32 codes of each, as the first factor of products. */
template <uint32_t DIM> KILN_INLINE void load_queries(uint32_t (*fragments)[4], uint32_t shared, uint32_t step) {
    const uint32_t lane = kiln_thread() % LANES;
    uint32_t words[4];
    kiln_sm80_ldmatrix_x4(words, shared + lane % 16 * (DIM + CODES) + (2 * step + lane / 16) * CODES);
    unit::queries_of(fragments, words);
}

/* A warp's queries, which are in shared memory. */
template <uint32_t DIM>
KILN_INLINE void start_queries(queries_of_warp<DIM> *queries, uint32_t shared, uint32_t head_dim) {
    queries->shared = shared;
    queries->head_dim = head_dim;
    KILN_UNROLL
    for (uint32_t step = 0; DIM <= HELD_DIM && step < DIM / 32; step++)
        load_queries<DIM>(queries->held[step], shared, step);
}

/* By how much a row's scores are greater than those of keys less their mean; the four lanes of a row add it up. */
KILN_INLINE float score_of_means(const kiln_attention_codes_args &args, uint64_t channels, const uint8_t *query,
                                 float factor) {
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t d = kiln_thread() % 4; d < args.plain.head_dim; d += 4)
        sum = KILN_FMA(code_number(query[d]), args.k_means[channels + d], sum);
    return quad_sum(sum) * factor * KILN_WEIGHT_LN_2;
}

/* Writes a warp's rows. */
template <uint32_t DIM>
KILN_INLINE void write_rows(const kiln_attention_codes_args &args, const kiln_sequence &s,
                            const kiln_attention_work &work, const rows_of_warp<DIM> &rows, uint32_t row,
                            uint32_t end) {
    const kiln_attention_args &plain = args.plain;
    const uint64_t channels = ((uint64_t)work.batch * plain.kv_heads + work.kv_head) * plain.head_dim;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const uint32_t number = row + kiln_thread() % LANES / 4 + 8 * r;
        const row_place at = row_place_of(plain, s, work.kv_head, number < end ? number : end - 1);
        float sum = quad_sum(rows.sum[r]) * 0x1p-8f, of_means = 0.0f;
        if (args.k_means && plain.lse) of_means = score_of_means(args, channels, query_of(plain, at), rows.factor[r]);
        if (number < end) write_row(args, work, rows, r, at, sum, of_means, channels);
    }
}

/* ---- A tile ---- */

/* q k^T of a tile. */
template <class TILE>
KILN_INLINE void multiply_keys(unit::sums (*products)[4], const queries_of_warp<TILE::DIM> &queries, uint32_t shared) {
    KILN_UNROLL
    for (uint32_t step = 0; step < TILE::DIM / 32; step++) {
        uint32_t again[unit::FRAGMENTS][4];
        const uint32_t(*a)[4] = again;
        if (TILE::DIM <= HELD_DIM) {
            a = queries.held[TILE::DIM > HELD_DIM ? 0 : step];
        } else {
            if (32 * step >= queries.head_dim) break;
            load_queries<TILE::DIM>(again, queries.shared, step);
        }
        KILN_UNROLL
        for (uint32_t n = 0; n < TILE::KEYS / 16; n++) {
            uint32_t b[unit::FRAGMENTS][4];
            TILE::load_keys(b, shared, n, step);
            KILN_UNROLL
            for (uint32_t i = 0; i < unit::FRAGMENTS; i++) {
                unit::mma(products[2 * n], a[i], b[i]);
                unit::mma(products[2 * n + 1], a[i], b[i] + 2);
            }
        }
    }
}

/* Adds a tile of keys, the first of which is `key`, to a warp's rows. All lanes come here. */
template <class TILE>
KILN_INLINE void add_keys(rows_of_warp<TILE::DIM> *rows, const queries_of_warp<TILE::DIM> &queries, uint32_t shared,
                          const float *scales, uint32_t key) {
    const uint32_t lane = kiln_thread() % LANES;
    bool sees = false, whole = true;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        kiln_window window = rows->window[r];
        sees |= key < window.end && key + TILE::KEYS > window.begin;
        whole &= key >= window.begin && key + TILE::KEYS <= window.end;
    }
    if (!__any_sync(0xffffffffu, sees)) return;
    whole = __all_sync(0xffffffffu, whole);

    unit::sums products[TILE::KEYS / 8][4] = {};
    multiply_keys<TILE>(products, queries, shared);
    float scores[TILE::KEYS / 8][4];
    KILN_UNROLL
    for (uint32_t n = 0; n < TILE::KEYS / 8; n++) {
        float2 scale = *(const float2 *)(scales + 8 * n + lane % 4 * 2);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            scores[n][i] = (float)products[n][i] * (i % 2 ? scale.y : scale.x);
    }
    if (!whole) {
        KILN_UNROLL
        for (uint32_t i = 0; i < TILE::KEYS / 2; i++) {
            kiln_window window = rows->window[i / 2 % 2];
            uint32_t at = key + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (at - window.begin >= window.end - window.begin) scores[i / 4][i % 4] = -KILN_INFINITY;
        }
    }

    float less[2], keep[2];
    bool rose = false;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float max = -KILN_INFINITY;
        KILN_UNROLL
        for (uint32_t n = 0; n < TILE::KEYS / 8; n++)
            max = fmaxf(max, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
        max = fmaxf(max, kiln_shuffle_xor(max, 1));
        max = fmaxf(max, kiln_shuffle_xor(max, 2));
        float origin = fmaxf(rows->origin[r], ceilf(max * rows->factor[r]));
        float base = origin == -KILN_INFINITY ? 0.0f : origin;
        keep[r] = kiln_fast_exp2(rows->origin[r] - base);
        less[r] = WEIGHT_LOG2 - base;
        rose |= origin > rows->origin[r];
        rows->origin[r] = origin;
    }
    if (__any_sync(0xffffffffu, rose)) {
        KILN_UNROLL
        for (uint32_t i = 0; i < TILE::DIM / 2; i++)
            rows->result[i / 8][i / 4 % 2][i % 4] *= keep[i / 2 % 2];
        KILN_UNROLL
        for (uint32_t r = 0; r < 2; r++) {
            rows->sum[r] *= keep[r];
            rows->rounded[r] *= keep[r];
        }
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILE::KEYS / 2; i++) {
        float weight = kiln_fast_exp2(KILN_FMA(scores[i / 4][i % 4], rows->factor[i / 2 % 2], less[i / 2 % 2]));
        rows->sum[i / 2 % 2] += weight;
        scores[i / 4][i % 4] = weight;
    }
    TILE::add_values(rows, scores, shared, queries.head_dim);
}

#endif
