/* How the tuned kernels of NVIDIA's chips read weights in the layout sm80_v1 (gemm_w4a16_layout.h): an integer q is q +
 * 8 in 4 bits, so an and and an or make 1024 + q + 8 (f16) or 128 + q + 8 (bf16) of two at once, from which 1032 or 136
 * is subtracted without an error. */
#ifndef KILN_KERNELS_GEMM_W4A16_INTEGERS_H
#define KILN_KERNELS_GEMM_W4A16_INTEGERS_H

#include "kernels/arch/ptx.h"
#include "kernels/arch/sm80.h"
#include "kernels/gemm_w4a16/gemm_w4a16_layout.h"
#include "kernels/gemm_w4a16/gemm_w4a16_portable.h"

#ifdef KILN_PART_bf16
enum : uint32_t { ANCHOR = 0x43004300u, LESS_ANCHOR = 0xc308c308u, ONES = 0x3f803f80u };
#else
enum : uint32_t { ANCHOR = 0x64006400u, LESS_ANCHOR = 0xe408e408u, ONES = 0x3c003c00u };
#endif

KILN_INLINE uint32_t fma_pair(uint32_t a, uint32_t b, uint32_t c) {
#ifdef KILN_PART_bf16
    return kiln_sm80_fma_bf16x2(a, b, c);
#else
    return kiln_sm80_fma_f16x2(a, b, c);
#endif
}

/* The lowest four bits of each half of a word, below the anchor's. */
KILN_INLINE uint32_t anchored(uint32_t word) {
    return kiln_ptx_and_or_word(word, 0x000f000fu, ANCHOR);
}

/* The integers of a word, two by two, as a fragment: of row lane / 4 of a tile the first and the third pair, of the row
 * 8 below it the others. */
KILN_INLINE void integers_of(uint32_t *fragment, uint32_t word) {
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        fragment[i] = fma_pair(anchored(word >> 4 * i), ONES, LESS_ANCHOR);
}

KILN_INLINE void multiply_pairs(kiln_vector *by, kiln_vector factors) {
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        by->words[i] = fma_pair(by->words[i], factors.words[i], 0x80008000u); /* -0: a product of 0 keeps its sign */
}

#endif
