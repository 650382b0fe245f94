/* More raw instructions of sm_80 and later that compare two numbers of 16 bits at once. */
#ifndef KILN_KERNELS_ARCH_SM80_PAIRS_OR_NAN_H
#define KILN_KERNELS_ARCH_SM80_PAIRS_OR_NAN_H

#include <stdint.h>

/* In each half the greater number; NaN if one is. */
static __device__ __forceinline__ uint32_t kiln_sm80_greater_or_nan_f16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}
static __device__ __forceinline__ uint32_t kiln_sm80_greater_or_nan_bf16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}

#endif
