/* Operations of PTX on f32 of which the bits are wanted: CUDA C++ would move the numbers from their registers to those
 * for integers. */
#ifndef KILN_KERNELS_ARCH_PTX_FMA_BITS_H
#define KILN_KERNELS_ARCH_PTX_FMA_BITS_H

#include <stdint.h>

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

#endif
