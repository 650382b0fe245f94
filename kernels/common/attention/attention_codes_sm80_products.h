/* Attention on codes of 8 bits, sm_80 and sm_86: products of the numbers of E4M3 codes, which are of 16 bits. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM80_PRODUCTS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_SM80_PRODUCTS_H

#include "kernels/common/attention/attention_codes_products.h"
#include "kernels/common/attention/attention_sm80_codes.h"

KILN_INLINE void multiply_numbers(float *sums, const uint32_t *a, const uint32_t *b) {
#ifdef KILN_PART_bf16
    kiln_sm80_mma_bf16(sums, a, b);
#else
    kiln_sm80_mma_f16(sums, a, b);
#endif
}

/* unit of E4M3: 32 codes take two products. Of each 16 the numbers of even codes come first. */
struct products_of_numbers {
    typedef float sums;
    enum : uint32_t { FRAGMENTS = 2 };
    KILN_INLINE void queries_of(uint32_t (*fragments)[4], const uint32_t *codes) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t pairs[2];
            pairs_of_codes(pairs, codes[i]);
            fragments[i / 2][i % 2] = pairs[0];
            fragments[i / 2][i % 2 + 2] = pairs[1];
        }
    }
    KILN_INLINE void keys_of(uint32_t (*fragments)[4], const uint32_t *codes) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            pairs_of_codes(fragments[i % 2] + i / 2 * 2, codes[i]);
    }
    KILN_INLINE void mma(sums *of, const uint32_t *a, const uint32_t *b) { multiply_numbers(of, a, b); }
};

#endif
