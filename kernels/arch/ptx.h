/* Raw instructions of PTX for every NVIDIA target: those for which CUDA C++ has no name, or moves numbers between
 * registers. */
#ifndef KILN_KERNELS_ARCH_PTX_H
#define KILN_KERNELS_ARCH_PTX_H

#include <stdint.h>

/* ---- Special functions and conversions. Where only sm_80 and later have an instruction for a pair, texts for earlier
 * targets convert one number after the other. ---- */

/* 2^x, 2 ulp; subnormal results are 0. */
static __device__ __forceinline__ float kiln_ptx_ex2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ float kiln_ptx_lg2(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 1 / x, 1 ulp; subnormal results are 0. */
static __device__ __forceinline__ float kiln_ptx_rcp(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The lower half of a word comes first in values. A bf16 is the upper half of an f32. */
static __device__ __forceinline__ void kiln_ptx_f32_of_bf16x2(float *values, uint32_t word) {
    asm("shl.b32 %0, %1, 16;" : "=f"(values[0]) : "r"(word));
    asm("and.b32 %0, %1, 0xffff0000;" : "=f"(values[1]) : "r"(word));
}

static __device__ __forceinline__ void kiln_ptx_cvt_f32_f16x2(float *values, uint32_t word) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
        : "=f"(values[0]), "=f"(values[1])
        : "r"(word));
}

static __device__ __forceinline__ uint32_t kiln_ptx_cvt_rn_f16x2_f32(const float *values) {
    uint32_t word;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(word) : "f"(values[0]), "f"(values[1]));
#else
    asm("{.reg .b16 low, high; cvt.rn.f16.f32 low, %1; cvt.rn.f16.f32 high, %2; mov.b32 %0, {low, high};}"
        : "=r"(word)
        : "f"(values[0]), "f"(values[1]));
#endif
    return word;
}

#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ uint32_t kiln_ptx_cvt_rn_bf16x2_f32(const float *values) {
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(word) : "f"(values[0]), "f"(values[1]));
    return word;
}
#endif

static __device__ __forceinline__ float kiln_ptx_cvt_f32_f16(uint16_t half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

static __device__ __forceinline__ uint16_t kiln_ptx_cvt_rn_f16_f32(float value) {
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

/* ---- Bits of numbers that stay in registers for f32: CUDA C++ would move them to others and back ---- */

static __device__ __forceinline__ float kiln_ptx_and(float value, uint32_t mask) {
    float bits;
    asm("and.b32 %0, %1, %2;" : "=f"(bits) : "f"(value), "r"(mask));
    return bits;
}

static __device__ __forceinline__ float kiln_ptx_shl(float value, uint32_t count) {
    float bits;
    asm("shl.b32 %0, %1, %2;" : "=f"(bits) : "f"(value), "r"(count));
    return bits;
}

static __device__ __forceinline__ uint32_t kiln_ptx_shr(float value, uint32_t count) {
    uint32_t bits;
    asm("shr.b32 %0, %1, %2;" : "=r"(bits) : "f"(value), "r"(count));
    return bits;
}

/* Four of eight bytes, of which a is the lower half. */
static __device__ __forceinline__ uint32_t kiln_ptx_prmt(float a, float b, uint32_t selector) {
    uint32_t bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "f"(a), "f"(b), "r"(selector));
    return bytes;
}

/* value & mask | others. */
static __device__ __forceinline__ float kiln_ptx_and_or(float value, uint32_t mask, uint32_t others) {
    float bits;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=f"(bits) : "f"(value), "r"(mask), "r"(others));
    return bits;
}

/* value, of the other sign where the highest of the bits is set. */
static __device__ __forceinline__ float kiln_ptx_flipped(float value, uint32_t bits) {
    float flipped;
    asm("lop3.b32 %0, %1, %2, 0x80000000, 0x78;" : "=f"(flipped) : "f"(value), "r"(bits)); /* a ^ (b & c) */
    return flipped;
}

/* value & mask. */
static __device__ __forceinline__ uint32_t kiln_ptx_and_bits(float value, uint32_t mask) {
    uint32_t bits;
    asm("and.b32 %0, %1, %2;" : "=r"(bits) : "f"(value), "r"(mask));
    return bits;
}

/* a * b + c. */
static __device__ __forceinline__ uint32_t kiln_ptx_fma_bits(float a, float b, float c) {
    uint32_t bits;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=r"(bits) : "f"(a), "f"(b), "f"(c));
    return bits;
}

/* word & mask | others: the compiler makes two instructions of it where both are constants. */
static __device__ __forceinline__ uint32_t kiln_ptx_and_or_word(uint32_t word, uint32_t mask, uint32_t others) {
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "r"(mask), "r"(others));
    return result;
}

/* ---- Integers of 4 bits as pairs of f16 ---- */

/* The numbers less 8 in the lowest four bits of each half of a word. 1024 has the ulp of an integer. */
static __device__ __forceinline__ uint32_t kiln_ptx_int4_lows(uint32_t word) {
    uint32_t pair;
    asm("{.reg .b32 biased; lop3.b32 biased, %1, 0x000f000f, 0x64006400, 0xea; fma.rn.f16x2 %0, biased, %2, %3;}"
        : "=r"(pair)
        : "r"(word), "r"(0x3c003c00u), "r"(0xe408e408u)); /* times 1, less 1032 */
    return pair;
}

/* The same of the next four bits, which are sixteenfold beside 1024. */
static __device__ __forceinline__ uint32_t kiln_ptx_int4_highs(uint32_t word) {
    uint32_t pair;
    asm("{.reg .b32 biased; lop3.b32 biased, %1, 0x00f000f0, 0x64006400, 0xea; fma.rn.f16x2 %0, biased, %2, %3;}"
        : "=r"(pair)
        : "r"(word), "r"(0x2c002c00u), "r"(0xd480d480u)); /* times 1/16, less 72 */
    return pair;
}

/* ---- Threads and memory ---- */

/* The value of thread ^ MASK; all threads of the warp take part. */
template <int MASK> static __device__ __forceinline__ float kiln_ptx_shfl_bfly(float value) {
    float other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(other) : "f"(value), "n"(MASK));
    return other;
}

/* The thread's number, which is read each time: registers need not hold it meanwhile. */
static __device__ __forceinline__ uint32_t kiln_ptx_thread(void) {
    uint32_t thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/* Brings a line into L2. */
static __device__ __forceinline__ void kiln_ptx_prefetch_l2(const void *global) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

/* A zero that is made in the branch that wants it: the compiler would make it for every thread before the branch. */
static __device__ __forceinline__ uint32_t kiln_ptx_zero(void) {
    uint32_t zero;
    asm volatile("mov.b32 %0, 0;" : "=r"(zero));
    return zero;
}

#endif
