/* Raw instructions of sm_80 and later on two numbers of 16 bits in a word. */
#ifndef KILN_KERNELS_ARCH_SM80_PAIRS_H
#define KILN_KERNELS_ARCH_SM80_PAIRS_H

#include <stdint.h>

/* a * b + c with one rounding. */
static __device__ __forceinline__ uint32_t kiln_sm80_fma_f16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

static __device__ __forceinline__ uint32_t kiln_sm80_fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* Loads 2 bytes where `present`, zeros elsewhere. Volatile, so that the load stays before the writes that follow it. */
static __device__ __forceinline__ uint32_t kiln_sm80_load_u16(const void *global, bool present) {
    uint16_t half;
    asm volatile("{.reg .pred present; setp.ne.u32 present, %2, 0; mov.b16 %0, 0; @present ld.global.u16 %0, [%1];}"
                 : "=&h"(half)
                 : "l"(global), "r"((uint32_t)present));
    return half;
}

#endif
