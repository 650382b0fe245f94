/* What a thread has whose number differs in one bit, on AMD without addresses: by data-parallel primitives ("AMD
 * Instinct MI300 Instruction Set Architecture", 6.1.6), which an addition takes as part of the instruction, and by
 * swizzles. */
#ifndef KILN_KERNELS_ARCH_GFX_XOR_H
#define KILN_KERNELS_ARCH_GFX_XOR_H

#include <stdint.h>

/* mask is a constant power of two, at most 16. */
static __attribute__((device, always_inline)) inline uint32_t kiln_gfx_xor(uint32_t value, uint32_t mask) {
    enum { ALL = 0xf, QUAD_1032 = 0xb1, QUAD_2301 = 0x4e, ROTATE_8 = 0x128, XOR_4 = 0x101f, XOR_16 = 0x401f };
    int bits = (int)value;
    if (mask == 1) bits = __builtin_amdgcn_mov_dpp(bits, QUAD_1032, ALL, ALL, true);
    if (mask == 2) bits = __builtin_amdgcn_mov_dpp(bits, QUAD_2301, ALL, ALL, true);
    if (mask == 4) bits = __builtin_amdgcn_ds_swizzle(bits, XOR_4);
    if (mask == 8) bits = __builtin_amdgcn_mov_dpp(bits, ROTATE_8, ALL, ALL, true);
    if (mask == 16) bits = __builtin_amdgcn_ds_swizzle(bits, XOR_16);
    return (uint32_t)bits;
}

#endif
