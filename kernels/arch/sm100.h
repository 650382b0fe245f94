/* Raw instructions of sm_100 and later: arithmetic on two f32 in a register of 64 bits, each rounded as one alone, and
 * of f32 with 16-bit numbers, which they take as they are. A word has two of these, the first in its low half. */
#ifndef KILN_KERNELS_ARCH_SM100_H
#define KILN_KERNELS_ARCH_SM100_H

#include <stdint.h>

/* ---- Two f32 ---- */

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

/* ---- f32 with numbers of 16 bits ---- */

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

/* Adds the numbers of a word to two sums. */
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

/* Both numbers of a word times b plus c. */
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
