/* Raw instructions of sm_80 and later: maxima of two 16-bit numbers at a time, of which NaN is none. */
#ifndef KILN_KERNELS_ARCH_SM80_GREATEST_H
#define KILN_KERNELS_ARCH_SM80_GREATEST_H

#include <stdint.h>

static __device__ __forceinline__ uint32_t kiln_sm80_max_f16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.f16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}

static __device__ __forceinline__ uint32_t kiln_sm80_max_bf16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}

#endif
