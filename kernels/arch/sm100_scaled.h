/* More raw instructions of sm_100 and later: 16-bit numbers times one of their kind, in f32. */
#ifndef KILN_KERNELS_ARCH_SM100_SCALED_H
#define KILN_KERNELS_ARCH_SM100_SCALED_H

#include <stdint.h>

/* Both numbers of a word, the first in its low half, times b plus c. */
static __device__ __forceinline__ void kiln_sm100_scaled_f16x2(float *values, uint32_t word, uint16_t b, float c) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; fma.rn.f32.f16 %0, low, %3, %4; fma.rn.f32.f16 %1, high, %3, "
        "%4;}"
        : "=f"(values[0]), "=f"(values[1])
        : "r"(word), "h"(b), "f"(c));
}
static __device__ __forceinline__ void kiln_sm100_scaled_bf16x2(float *values, uint32_t word, uint16_t b, float c) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; fma.rn.f32.bf16 %0, low, %3, %4; fma.rn.f32.bf16 %1, high, %3, "
        "%4;}"
        : "=f"(values[0]), "=f"(values[1])
        : "r"(word), "h"(b), "f"(c));
}

/* The numbers less 8 in the lowest four bits of each half of a word, as bf16. 128 has the ulp of an integer. */
static __device__ __forceinline__ uint32_t kiln_sm100_int4_bf16x2(uint32_t word) {
    uint32_t pair;
    asm("{.reg .b32 biased; lop3.b32 biased, %1, 0x000f000f, 0x43004300, 0xea; fma.rn.bf16x2 %0, biased, %2, %3;}"
        : "=r"(pair)
        : "r"(word), "r"(0x3f803f80u), "r"(0xc308c308u)); /* times 1, less 136 */
    return pair;
}

#endif
