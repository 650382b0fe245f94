/* Raw instructions of sm_86 and later that compare numbers, and their magnitudes. */
#ifndef KILN_KERNELS_ARCH_SM86_H
#define KILN_KERNELS_ARCH_SM86_H

#include <stdint.h>

/* The greater magnitude, with some sign; the other operand's if one is NaN. */
static __device__ __forceinline__ float kiln_sm86_greater_f32(float a, float b) {
    float greater;
    asm("max.xorsign.abs.f32 %0, %1, %2;" : "=f"(greater) : "f"(a), "f"(b));
    return greater;
}

/* The greater magnitude, with some sign; NaN if one is. */
static __device__ __forceinline__ float kiln_sm86_greater_or_nan_f32(float a, float b) {
    float greater;
    asm("max.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(greater) : "f"(a), "f"(b));
    return greater;
}

/* ---- Two numbers of 16 bits in a word ---- */

/* In each half the greater number; the other operand's if one is NaN. */
static __device__ __forceinline__ uint32_t kiln_sm86_max_f16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.f16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}
static __device__ __forceinline__ uint32_t kiln_sm86_max_bf16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}

/* The lesser number likewise. */
static __device__ __forceinline__ uint32_t kiln_sm86_min_f16x2(uint32_t a, uint32_t b) {
    uint32_t lesser;
    asm("min.f16x2 %0, %1, %2;" : "=r"(lesser) : "r"(a), "r"(b));
    return lesser;
}
static __device__ __forceinline__ uint32_t kiln_sm86_min_bf16x2(uint32_t a, uint32_t b) {
    uint32_t lesser;
    asm("min.bf16x2 %0, %1, %2;" : "=r"(lesser) : "r"(a), "r"(b));
    return lesser;
}

/* In each half the greater magnitude, with some sign, likewise. */
static __device__ __forceinline__ uint32_t kiln_sm86_greater_f16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}
static __device__ __forceinline__ uint32_t kiln_sm86_greater_bf16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}

/* The same, and NaN if an operand is. */
static __device__ __forceinline__ uint32_t kiln_sm86_greater_or_nan_f16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}
static __device__ __forceinline__ uint32_t kiln_sm86_greater_or_nan_bf16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}

#endif
