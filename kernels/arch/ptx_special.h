/* PTX's special functions and its conversions of pairs. Where only sm_80 and later have an instruction for a pair,
 * texts for earlier targets convert one number after the other. */
#ifndef KILN_KERNELS_ARCH_PTX_SPECIAL_H
#define KILN_KERNELS_ARCH_PTX_SPECIAL_H

#include <stdint.h>

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

#endif
