/* Numbers that all lanes of a wave have, on AMD's devices. */
#ifndef KILN_KERNELS_ARCH_GFX_WAVE_H
#define KILN_KERNELS_ARCH_GFX_WAVE_H

#include <stdint.h>

static inline __attribute__((device, always_inline)) uint64_t kiln_gfx_first_lane(uint64_t value) {
    const uint32_t low = (uint32_t)__builtin_amdgcn_readfirstlane((int)(uint32_t)value);
    const uint32_t high = (uint32_t)__builtin_amdgcn_readfirstlane((int)(uint32_t)(value >> 32));
    return (uint64_t)high << 32 | low;
}

/* The number as it is, in scalar registers: what it is computed from is not joined with the same of single lanes. */
static inline __attribute__((device, always_inline)) uint64_t kiln_gfx_scalar(uint64_t value) {
    __asm__("" : "+s"(value));
    return value;
}

#endif
