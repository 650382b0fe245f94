/* An operation of PTX on the bits of a number that stays in a register for f32 (ptx_bits.h). */
#ifndef KILN_KERNELS_ARCH_PTX_FLIP_H
#define KILN_KERNELS_ARCH_PTX_FLIP_H

#include <stdint.h>

/* value, of the other sign where the highest of the bits is set. */
static __device__ __forceinline__ float kiln_ptx_flipped(float value, uint32_t bits) {
    float flipped;
    asm("lop3.b32 %0, %1, %2, 0x80000000, 0x78;" : "=f"(flipped) : "f"(value), "r"(bits)); /* a ^ (b & c) */
    return flipped;
}

#endif
