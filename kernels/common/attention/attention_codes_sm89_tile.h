/* Attention on codes of 8 bits, sm_89 and later: weights times values as products of E4M3.
 *
 * Weights packed to codes, those of two times eight keys, are word for word a fragment of m16n8k32, if its 32 keys are
 * counted in the order in which the lanes have them. v is read in the same order: ldmatrix transposes pairs of its
 * bytes, which are of two channels, and a permutation of bytes parts the channels, so that v needs no transposition in
 * memory. Products of a tile begin with zeros and are taken over by f32 additions: sums of these instructions keep 13
 * bits below the greatest of what they add. The sum of the codes is a product with ones beside them, which loses the
 * same. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM89_TILE_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM89_TILE_H

#include "kernels/arch/sm89.h"
#include "kernels/common/attention/attention_codes_mma.h"

enum : uint32_t { ONES = 0x38383838 /* E4M3 */ };

/* Two words for each eight keys: of the warp's first eight rows and of the others. */
template <uint32_t KEYS> KILN_INLINE void pack_weights(uint32_t (*packed)[4], const float (*weights)[4]) {
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 8; i++) { /* two eights of keys and one of the rows */
        uint32_t r = i % 2, n = i / 2 * 2;
        const float four[4] = {weights[n][2 * r], weights[n][2 * r + 1], weights[n + 1][2 * r],
                               weights[n + 1][2 * r + 1]};
        packed[i / 4][i % 4] = kiln_sm89_cvt_e4m3x4_f32(four);
    }
}

template <uint32_t SIZE, uint32_t COUNT> struct tile : code_tile<SIZE, COUNT> {
    typedef code_tile<SIZE, COUNT> codes;

    KILN_INLINE void add_values(rows_of_warp<SIZE> *rows, const float (*weights)[4], uint32_t shared,
                                uint32_t head_dim) {
        const uint32_t lane = kiln_thread() % LANES, ones[2] = {ONES, ONES};
        uint32_t packed[COUNT / 32][4];
        float of_ones[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        pack_weights<COUNT>(packed, weights);
        KILN_UNROLL
        for (uint32_t step = 0; step < COUNT / 32; step++)
            kiln_sm89_mma_e4m3(of_ones, packed[step], ones);
        rows->rounded[0] += of_ones[0];
        rows->rounded[1] += of_ones[2];
        KILN_UNROLL
        for (uint32_t d = 0; d < SIZE / 16; d++) {
            if (SIZE > HELD_DIM && 16 * d >= head_dim) break;
            float sums[2][4] = {};
            KILN_UNROLL
            for (uint32_t step = 0; step < COUNT / 32; step++) {
                uint32_t pairs[4];
                kiln_sm80_ldmatrix_x4_trans(pairs, shared + codes::V + (32 * step + lane) * codes::PITCH + d * CODES);
                KILN_UNROLL
                for (uint32_t odd = 0; odd < 2; odd++) {
                    const uint32_t select = odd ? 0x7531 : 0x6420;
                    const uint32_t b[2] = {__byte_perm(pairs[0], pairs[1], select),
                                           __byte_perm(pairs[2], pairs[3], select)};
                    kiln_sm89_mma_e4m3(sums[odd], packed[step], b);
                }
            }
            KILN_UNROLL
            for (uint32_t i = 0; i < 8; i++)
                rows->result[d][i / 4][i % 4] += sums[i / 4][i % 4];
        }
    }
};

#endif
