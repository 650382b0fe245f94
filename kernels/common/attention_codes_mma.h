/* Attention on codes of 8 bits by mma.sync, sm_89 and later: a tile of keys and values in shared memory, and what a
 * warp does with it.
 *
 * q k^T is products of m16n8k32 (of int8 with sums in int32, exact; or of E4M3). Of the scores each lane has of a row
 * two neighbouring keys of every eight: packed to codes, those of two times eight keys are, word for word, a fragment
 * of the second product, if its 32 keys are counted in the order in which the lanes have them. v is read in the same
 * order: ldmatrix transposes pairs of its bytes, which are of two channels, and a permutation of bytes parts the
 * channels, so that v needs no transposition in memory. Products of a tile begin with zeros and are taken over by f32
 * additions: sums of these instructions keep 13 bits below the greatest of what they add. The sum of the codes is a
 * product with ones beside them, which loses the same.
 *
 * Rows of shared memory are 16 bytes longer than a head, whereby neither copies nor ldmatrix meet a bank twice. Heads
 * are filled up to 64 or 128 elements with zeros that are not read from memory. Includers define unit: a product of q
 * and k. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_CODES_MMA_H
#define KILN_KERNELS_COMMON_ATTENTION_CODES_MMA_H

#include "kernels/arch/sm80_bytes.h"
#include "kernels/arch/sm89.h"
#include "kernels/common/attention_codes_rows.h"

/* Heads of DIM codes and KEYS keys of a tile, in shared memory: k, then v, then the scales of k. */
template <uint32_t DIM, uint32_t KEYS> struct tile {
    enum : uint32_t {
        PITCH = DIM + CODES,
        VECTORS = DIM / CODES,
        V = KEYS * PITCH,
        SCALES = 2 * KEYS * PITCH,
        BYTES = SCALES + KEYS * (uint32_t)sizeof(float)
    };
};

template <uint32_t DIM> KILN_INLINE uint32_t vector_at(uint32_t shared, uint32_t row, uint32_t vector) {
    return shared + row * (DIM + CODES) + vector * CODES;
}

/* Copies the tile of keys from `key` on, before end, by so many threads; zeros behind the last key and behind a head's
 * last code. */
template <uint32_t DIM, uint32_t KEYS, uint32_t THREADS>
KILN_INLINE void copy_keys(const kiln_attention_codes_args &args, const kiln_sequence &s, uint32_t kv_head,
                           uint32_t key, uint32_t end, uint32_t shared) {
    typedef tile<DIM, KEYS> at;
    const uint32_t thread = kiln_thread() % THREADS;
    const kiln_attention_args &plain = args.plain;
    KILN_LOOP
    for (uint32_t i = 0; i < KEYS * at::VECTORS / THREADS; i++) {
        uint32_t place = i * THREADS + thread, row = place / at::VECTORS;
        uint32_t d = place % at::VECTORS * CODES, to = vector_at<DIM>(shared, row, d / CODES);
        bool present = key + row < end && d < plain.head_dim;
        uint64_t number = s.kv_first + key + row, offset = kv_head * plain.head_dim + d;
        const uint8_t *k = (const uint8_t *)plain.k + number * (uint64_t)plain.k_stride + offset;
        const uint8_t *v = (const uint8_t *)plain.v + number * (uint64_t)plain.v_stride + offset;
        kiln_sm80_cp_async(to, present ? k : plain.k, present ? CODES : 0);
        kiln_sm80_cp_async(to + at::V, present ? v : plain.v, present ? CODES : 0);
    }
    if (thread < KEYS) {
        bool present = key + thread < end;
        const float *scales = args.k_scales + kv_head * (uint64_t)args.k_scale_rows;
        uint64_t place = kiln_scale_at(args.k_index, s.kv_first + (uint64_t)key + thread);
        kiln_sm80_cp_async_4(shared + at::SCALES + thread * 4, present ? scales + place : scales, present ? 4 : 0);
    }
    kiln_sm80_cp_async_commit();
}

/* Adds the tile's values with weights, which are fragments, two words for each eight keys: of the warp's first eight
 * rows and of the others. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void add_values(rows_of_warp<DIM> *rows, const uint32_t (*weights)[4], uint32_t v_shared) {
    uint32_t lane = kiln_thread() % LANES;
    const uint32_t ones[2] = {ONES, ONES};
    float of_ones[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    KILN_UNROLL
    for (uint32_t step = 0; step < KEYS / 32; step++)
        kiln_sm89_mma_e4m3(of_ones, weights[step], ones);
    rows->rounded[0] += of_ones[0];
    rows->rounded[1] += of_ones[2];
    KILN_UNROLL
    for (uint32_t d = 0; d < DIM / 16; d++) {
        float sums[2][4] = {};
        KILN_UNROLL
        for (uint32_t step = 0; step < KEYS / 32; step++) {
            uint32_t pairs[4];
            kiln_sm80_ldmatrix_x4_trans(pairs, vector_at<DIM>(v_shared, 32 * step + lane, d));
            KILN_UNROLL
            for (uint32_t odd = 0; odd < 2; odd++) {
                const uint32_t select = odd ? 0x7531 : 0x6420;
                const uint32_t b[2] = {__byte_perm(pairs[0], pairs[1], select),
                                       __byte_perm(pairs[2], pairs[3], select)};
                kiln_sm89_mma_e4m3(sums[odd], weights[step], b);
            }
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < 8; i++)
            rows->result[d][i / 4][i % 4] += sums[i / 4][i % 4];
    }
}

/* Adds a tile of keys, the first of which is `key`, to a warp's rows. All lanes come here. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void add_keys(rows_of_warp<DIM> *rows, const uint32_t (*queries)[4], uint32_t shared, const float *scales,
                          uint32_t key) {
    uint32_t lane = kiln_thread() % LANES;
    bool sees = false, whole = true;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        kiln_window window = rows->window[r];
        sees |= key < window.end && key + KEYS > window.begin;
        whole &= key >= window.begin && key + KEYS <= window.end;
    }
    if (!__any_sync(0xffffffffu, sees)) return;
    whole = __all_sync(0xffffffffu, whole);

    typename unit::sums products[KEYS / 8][4] = {};
    KILN_UNROLL
    for (uint32_t step = 0; step < DIM / 32; step++) {
        KILN_UNROLL
        for (uint32_t n = 0; n < KEYS / 16; n++) {
            uint32_t b[4];
            kiln_sm80_ldmatrix_x4(b,
                                  vector_at<DIM>(shared, 16 * n + lane % 8 + lane / 16 * 8, 2 * step + lane / 8 % 2));
            unit::mma(products[2 * n], queries[step], b);
            unit::mma(products[2 * n + 1], queries[step], b + 2);
        }
    }

    float scores[KEYS / 8][4];
    KILN_UNROLL
    for (uint32_t n = 0; n < KEYS / 8; n++) {
        float2 scale = *(const float2 *)(scales + 8 * n + lane % 4 * 2);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            scores[n][i] = (float)products[n][i] * (i % 2 ? scale.y : scale.x);
    }
    if (!whole) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KEYS / 2; i++) {
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
        for (uint32_t n = 0; n < KEYS / 8; n++)
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
        for (uint32_t i = 0; i < DIM / 2; i++)
            rows->result[i / 8][i / 4 % 2][i % 4] *= keep[i / 2 % 2];
        KILN_UNROLL
        for (uint32_t r = 0; r < 2; r++) {
            rows->sum[r] *= keep[r];
            rows->rounded[r] *= keep[r];
        }
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 2; i++) {
        float weight = kiln_fast_exp2(KILN_FMA(scores[i / 4][i % 4], rows->factor[i / 2 % 2], less[i / 2 % 2]));
        rows->sum[i / 2 % 2] += weight;
        scores[i / 4][i % 4] = weight;
    }
    uint32_t weights[KEYS / 32][4];
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 8; i++) { /* two eights of keys and one of the rows */
        uint32_t r = i % 2, n = i / 2 * 2;
        const float four[4] = {scores[n][2 * r], scores[n][2 * r + 1], scores[n + 1][2 * r], scores[n + 1][2 * r + 1]};
        weights[i / 4][i % 4] = kiln_sm89_cvt_e4m3x4_f32(four);
    }
    add_values<DIM, KEYS>(rows, weights, shared + tile<DIM, KEYS>::V);
}

#endif
