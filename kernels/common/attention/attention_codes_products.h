/* Attention on codes of 8 bits by mma.sync, sm_80 and later: the products of q and k that its kernels call `unit`.
 *
 * sums             what a product adds to
 * FRAGMENTS        products that 32 codes of a head take
 * queries_of       their first factors, of words as ldmatrix has them of 16 queries
 * keys_of          their second factors, of words as ldmatrix has them of 16 keys: two words for each eight
 * mma(sums, a, b)  a product */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_PRODUCTS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_PRODUCTS_H

#include "kernels/arch/sm80.h"
#include "kernels/common/device.h"

/* Where products take codes as they are. */
template <class SUMS> struct products_of_codes {
    typedef SUMS sums;
    enum : uint32_t { FRAGMENTS = 1 };
    KILN_INLINE void keys_of(uint32_t (*fragments)[4], const uint32_t *codes) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            fragments[0][i] = codes[i];
    }
    KILN_INLINE void queries_of(uint32_t (*fragments)[4], const uint32_t *codes) { keys_of(fragments, codes); }
};

/* Of int8: their sums are exact. */
struct products_of_int8 : products_of_codes<int32_t> {
    KILN_INLINE void mma(sums *of, const uint32_t *a, const uint32_t *b) { kiln_sm80_mma_s8(of, a, b); }
};

#endif
