/* Raw instructions of sm_100 and later: arithmetic on two f32 in a register of 64 bits, each rounded as one alone. */
#ifndef KILN_KERNELS_ARCH_SM100_PACKED_H
#define KILN_KERNELS_ARCH_SM100_PACKED_H

#include <stdint.h>

static __device__ __forceinline__ uint64_t kiln_sm100_pack(float low, float high) {
    uint64_t two;
    asm("mov.b64 %0, {%1, %2};" : "=l"(two) : "f"(low), "f"(high));
    return two;
}

static __device__ __forceinline__ void kiln_sm100_unpack(float *values, uint64_t two) {
    asm("mov.b64 {%0, %1}, %2;" : "=f"(values[0]), "=f"(values[1]) : "l"(two));
}

static __device__ __forceinline__ uint64_t kiln_sm100_add_f32x2(uint64_t a, uint64_t b) {
    uint64_t sum;
    asm("add.rn.f32x2 %0, %1, %2;" : "=l"(sum) : "l"(a), "l"(b));
    return sum;
}

static __device__ __forceinline__ uint64_t kiln_sm100_mul_f32x2(uint64_t a, uint64_t b) {
    uint64_t product;
    asm("mul.rn.f32x2 %0, %1, %2;" : "=l"(product) : "l"(a), "l"(b));
    return product;
}

static __device__ __forceinline__ uint64_t kiln_sm100_fma_f32x2(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t sum;
    asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(sum) : "l"(a), "l"(b), "l"(c));
    return sum;
}

#endif
