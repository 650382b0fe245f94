/* More raw instructions of sm_80 and later, for codes of E4M3 that become elements of 16 bits in pairs. */
#ifndef KILN_KERNELS_ARCH_SM80_E4M3_H
#define KILN_KERNELS_ARCH_SM80_E4M3_H

#include "kernels/arch/sm80.h"

/* Loads 4 bytes of shared memory, 4-byte aligned. */
static __device__ __forceinline__ uint32_t kiln_sm80_shared_load(uint32_t shared) {
    uint32_t word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(shared) : "memory");
    return word;
}

/* Stores 16 bytes to shared memory, 16-byte aligned. */
static __device__ __forceinline__ void kiln_sm80_shared_store_v4(uint32_t shared, const uint32_t *words) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
}

/* Two products of f16. */
static __device__ __forceinline__ uint32_t kiln_sm80_mul_f16x2(uint32_t a, uint32_t b) {
    uint32_t product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

/* Two of a * b + c of bf16. */
static __device__ __forceinline__ uint32_t kiln_sm80_fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t sum;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}

#endif
