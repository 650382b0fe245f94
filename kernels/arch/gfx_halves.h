/* Exchanges between the halves of parts of a wave on AMD, without addresses: by data-parallel primitives within 16
 * threads ("AMD Instinct MI300 Instruction Set Architecture", 6.1.6), which an addition or a maximum takes as part of
 * the instruction, and by a swizzle between them. */
#ifndef KILN_KERNELS_ARCH_GFX_HALVES_H
#define KILN_KERNELS_ARCH_GFX_HALVES_H

#include <stdint.h>

/* What a thread in the other half of each 2 << step threads of 32 has, where all threads of a half have the same:
 * quad_perm within four, then a mirror image of eight and of sixteen. step is a constant. */
static __attribute__((device, always_inline)) inline float kiln_gfx_of_other_half(float value, uint32_t step) {
    enum { ALL = 0xf, QUAD_1032 = 0xb1, QUAD_2301 = 0x4e, HALF_MIRROR = 0x141, MIRROR = 0x140, XOR_16 = 0x401f };
    int bits = __builtin_bit_cast(int, value);
    if (step == 0) bits = __builtin_amdgcn_mov_dpp(bits, QUAD_1032, ALL, ALL, true);
    if (step == 1) bits = __builtin_amdgcn_mov_dpp(bits, QUAD_2301, ALL, ALL, true);
    if (step == 2) bits = __builtin_amdgcn_mov_dpp(bits, HALF_MIRROR, ALL, ALL, true);
    if (step == 3) bits = __builtin_amdgcn_mov_dpp(bits, MIRROR, ALL, ALL, true);
    if (step == 4) bits = __builtin_amdgcn_ds_swizzle(bits, XOR_16);
    return __builtin_bit_cast(float, bits);
}

#endif
