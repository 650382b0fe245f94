/* PTX's operations on bits, of numbers that stay in registers for f32: CUDA C++ would move them to others and back. */
#ifndef KILN_KERNELS_ARCH_PTX_BITS_H
#define KILN_KERNELS_ARCH_PTX_BITS_H

#include <stdint.h>

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

#endif
