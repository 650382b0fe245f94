/* An operation of PTX on the bits of a number that stays in a register for f32 (ptx_bits.h). */
#ifndef KILN_KERNELS_ARCH_PTX_AND_OR_H
#define KILN_KERNELS_ARCH_PTX_AND_OR_H

#include <stdint.h>

/* value & mask | others. */
static __device__ __forceinline__ float kiln_ptx_and_or(float value, uint32_t mask, uint32_t others) {
    float bits;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=f"(bits) : "f"(value), "r"(mask), "r"(others));
    return bits;
}

#endif
