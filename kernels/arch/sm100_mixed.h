/* Raw instructions of sm_100 and later: arithmetic of f32 with 16-bit numbers, which they take as they are. A word has
 * two numbers, the first in its low half. */
#ifndef KILN_KERNELS_ARCH_SM100_MIXED_H
#define KILN_KERNELS_ARCH_SM100_MIXED_H

#include <stdint.h>

/* Both numbers of a word less c. */
static __device__ __forceinline__ void kiln_sm100_sub_f16x2(float *values, uint32_t word, float c) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; sub.rn.f32.f16 %0, low, %3; sub.rn.f32.f16 %1, high, %3;}"
        : "=f"(values[0]), "=f"(values[1])
        : "r"(word), "f"(c));
}
static __device__ __forceinline__ void kiln_sm100_sub_bf16x2(float *values, uint32_t word, float c) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; sub.rn.f32.bf16 %0, low, %3; sub.rn.f32.bf16 %1, high, %3;}"
        : "=f"(values[0]), "=f"(values[1])
        : "r"(word), "f"(c));
}

/* Adds the products of the numbers of two words to two sums. */
static __device__ __forceinline__ void kiln_sm100_fma_f16x2(float *sums, uint32_t a, uint32_t b) {
    asm("{.reg .b16 a0, a1, b0, b1; mov.b32 {a0, a1}, %2; mov.b32 {b0, b1}, %3; fma.rn.f32.f16 %0, a0, b0, %0; "
        "fma.rn.f32.f16 %1, a1, b1, %1;}"
        : "+f"(sums[0]), "+f"(sums[1])
        : "r"(a), "r"(b));
}
static __device__ __forceinline__ void kiln_sm100_fma_bf16x2(float *sums, uint32_t a, uint32_t b) {
    asm("{.reg .b16 a0, a1, b0, b1; mov.b32 {a0, a1}, %2; mov.b32 {b0, b1}, %3; fma.rn.f32.bf16 %0, a0, b0, %0; "
        "fma.rn.f32.bf16 %1, a1, b1, %1;}"
        : "+f"(sums[0]), "+f"(sums[1])
        : "r"(a), "r"(b));
}

#endif
