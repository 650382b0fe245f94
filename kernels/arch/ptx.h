/* Raw PTX instructions for which CUDA C++ has no built-in name, for every NVIDIA target. */
#ifndef KILN_KERNELS_ARCH_PTX_H
#define KILN_KERNELS_ARCH_PTX_H

#include <stdint.h>

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

#endif
