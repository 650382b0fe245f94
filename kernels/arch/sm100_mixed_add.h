/* A raw instruction of sm_100 and later: a sum of f32 and a 16-bit number, which it takes as it is (sm100_mixed.h). */
#ifndef KILN_KERNELS_ARCH_SM100_MIXED_ADD_H
#define KILN_KERNELS_ARCH_SM100_MIXED_ADD_H

#include <stdint.h>

/* Adds the numbers of a word, the first in its low half, to two sums. */
static __device__ __forceinline__ void kiln_sm100_add_f16x2(float *sums, uint32_t word) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; add.rn.f32.f16 %0, low, %0; add.rn.f32.f16 %1, high, %1;}"
        : "+f"(sums[0]), "+f"(sums[1])
        : "r"(word));
}
static __device__ __forceinline__ void kiln_sm100_add_bf16x2(float *sums, uint32_t word) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; add.rn.f32.bf16 %0, low, %0; add.rn.f32.bf16 %1, high, %1;}"
        : "+f"(sums[0]), "+f"(sums[1])
        : "r"(word));
}

#endif
