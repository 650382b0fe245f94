/* Raw instructions of gfx10 and later: exchanges between the lanes of a wave of 32. */
#ifndef KILN_KERNELS_ARCH_GFX10_H
#define KILN_KERNELS_ARCH_GFX10_H

#include <stdint.h>

/* What lane ^ 16 has. All lanes take part. */
static __attribute__((device, always_inline)) inline uint32_t kiln_gfx10_permlanex16(uint32_t word) {
    return (uint32_t)__builtin_amdgcn_permlanex16((int)word, (int)word, 0x76543210, (int)0xfedcba98, false, false);
}

#endif
