/* More raw instructions of every target: integers of 4 bits as pairs of f16. */
#ifndef KILN_KERNELS_ARCH_PTX_HALVES_H
#define KILN_KERNELS_ARCH_PTX_HALVES_H

#include <stdint.h>

/* The numbers less 8 in the lowest four bits of each half of a word. 1024 has the ulp of an integer. */
static __device__ __forceinline__ uint32_t kiln_ptx_int4_lows(uint32_t word) {
    uint32_t pair;
    asm("{.reg .b32 biased; lop3.b32 biased, %1, 0x000f000f, 0x64006400, 0xea; fma.rn.f16x2 %0, biased, %2, %3;}"
        : "=r"(pair)
        : "r"(word), "r"(0x3c003c00u), "r"(0xe408e408u)); /* times 1, less 1032 */
    return pair;
}

/* The same of the next four bits, which are sixteenfold beside 1024. */
static __device__ __forceinline__ uint32_t kiln_ptx_int4_highs(uint32_t word) {
    uint32_t pair;
    asm("{.reg .b32 biased; lop3.b32 biased, %1, 0x00f000f0, 0x64006400, 0xea; fma.rn.f16x2 %0, biased, %2, %3;}"
        : "=r"(pair)
        : "r"(word), "r"(0x2c002c00u), "r"(0xd480d480u)); /* times 1/16, less 72 */
    return pair;
}

#endif
