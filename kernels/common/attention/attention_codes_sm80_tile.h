/* Attention on codes of 8 bits, sm_80 and sm_86, which have no products of E4M3: weights times values as products of 16
 * bits, f16 or bf16 by the part, which have the numbers of all codes (attention_sm80_codes.h).
 *
 * Weights are rounded to the numbers of codes, and are then a fragment of m16n8k16 as they are. Values come in one of
 * two ways: `tile` has codes, which every warp turns into numbers as it reads them, where each warp has keys of its
 * own; `number_tile` has numbers, which the threads of a block make once for all its warps. Of 16 codes the numbers of
 * even ones and those of odd ones are second factors of two products, so that of 16 channels a lane has four
 * neighbouring ones. Sums are taken over all keys: with 16-bit factors they are in f32. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM80_TILE_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM80_TILE_H

#include "kernels/common/attention/attention_codes_mma.h"
#include "kernels/common/attention/attention_codes_sm80_products.h"

/* Values of 16 keys, 32 elements of each: four fragments. shared is as ldmatrix wants it. */
KILN_INLINE void load_value_codes(uint32_t *fragments, uint32_t shared) {
    uint32_t words[4];
    kiln_sm80_ldmatrix_x4_trans(words, shared);
    value_fragments(fragments, words);
}

#ifdef KILN_PART_bf16
enum : uint32_t { ONES = 0x3f803f80 };
#else
enum : uint32_t { ONES = 0x3c003c00 };
#endif

/* A weight times 2^8 as the number of the nearest code: of a power of two 2^20 times as great an addition leaves 4
 * bits. NaN stays. */
KILN_INLINE float weight_as_code(float weight) {
    float power = kiln_float(kiln_bits(fmaxf(weight, 0x1p-6f)) & 0x7f800000u);
    float far = KILN_FMA(power, 0x1p20f, weight);
    return KILN_FMA(power, -0x1p20f, far);
}

/* Weights as first factors, 16 keys in each, and the sums of their numbers. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void pack_weights(rows_of_warp<DIM> *rows, uint32_t (*packed)[4], const float (*weights)[4]) {
    const uint32_t ones[2] = {ONES, ONES};
    float of_ones[4] = {rows->rounded[0], rows->rounded[0], rows->rounded[1], rows->rounded[1]};
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 4; i++) { /* eight keys and one of the rows */
        const float *two = weights[i / 2] + i % 2 * 2;
        const float numbers[2] = {weight_as_code(two[0]), weight_as_code(two[1])};
        packed[i / 4][i % 4] = kiln_pair_of(numbers);
    }
    KILN_UNROLL
    for (uint32_t step = 0; step < KEYS / 16; step++)
        multiply_numbers(of_ones, packed[step], ones);
    rows->rounded[0] = of_ones[0];
    rows->rounded[1] = of_ones[2];
}

template <uint32_t SIZE, uint32_t COUNT> struct tile : code_tile<SIZE, COUNT> {
    typedef code_tile<SIZE, COUNT> codes;

    KILN_INLINE void add_values(rows_of_warp<SIZE> *rows, const float (*weights)[4], uint32_t shared,
                                uint32_t head_dim) {
        const uint32_t own = shared + codes::V + kiln_thread() % LANES * codes::PITCH;
        uint32_t packed[COUNT / 16][4];
        pack_weights<SIZE, COUNT>(rows, packed, weights);
        KILN_UNROLL
        for (uint32_t d = 0; d < SIZE / 16; d++) {
            if (SIZE > HELD_DIM && 16 * d >= head_dim) break;
            KILN_UNROLL
            for (uint32_t step = 0; step < COUNT / 32; step++) {
                uint32_t b[8]; /* of 16 keys and of 16 more: even channels, then odd ones */
                load_value_codes(b, own + 32 * step * codes::PITCH + d * CODES);
                KILN_UNROLL
                for (uint32_t i = 0; i < 4; i++)
                    multiply_numbers(rows->result[d][i % 2], packed[2 * step + i / 2], b + 2 * i);
            }
        }
    }
};

/* Rows of numbers: those of even codes, then those of odd ones. Keys whose codes products take stay codes. */
template <uint32_t SIZE, uint32_t COUNT> struct number_tile {
    enum : uint32_t {
        DIM = SIZE,
        KEYS = COUNT,
        ROW = 2 * DIM + CODES,
        KEY_ROW = unit::FRAGMENTS * DIM + CODES,
        V = KEYS * KEY_ROW,
        SCALES = V + KEYS * ROW,
        BYTES = SCALES + KEYS * (uint32_t)sizeof(float)
    };

    KILN_INLINE void load_keys(uint32_t (*b)[4], uint32_t shared, uint32_t n, uint32_t step) {
        const uint32_t lane = kiln_thread() % LANES, row = 16 * n + lane % 8 + lane / 16 * 8, second = lane / 8 % 2;
        KILN_UNROLL
        for (uint32_t i = 0; i < unit::FRAGMENTS; i++) {
            const uint32_t at =
                unit::FRAGMENTS == 1 ? (2 * step + second) * CODES : (2 * step + i) * CODES + second * DIM;
            kiln_sm80_ldmatrix_x4(b[i], shared + row * KEY_ROW + at);
        }
    }

    KILN_INLINE void add_values(rows_of_warp<DIM> *rows, const float (*weights)[4], uint32_t shared,
                                uint32_t head_dim) {
        const uint32_t lane = kiln_thread() % LANES, own = shared + V + lane % 16 * ROW + lane / 16 * DIM;
        uint32_t packed[KEYS / 16][4];
        pack_weights<DIM, KEYS>(rows, packed, weights);
        KILN_UNROLL
        for (uint32_t d = 0; d < DIM / 16; d++) {
            if (DIM > HELD_DIM && 16 * d >= head_dim) break;
            KILN_UNROLL
            for (uint32_t step = 0; step < KEYS / 16; step++) {
                uint32_t b[4];
                kiln_sm80_ldmatrix_x4_trans(b, own + 16 * step * ROW + d * CODES);
                multiply_numbers(rows->result[d][0], packed[step], b);
                multiply_numbers(rows->result[d][1], packed[step], b + 2);
            }
        }
    }
};

#endif
