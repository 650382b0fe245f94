/* More raw instructions of gfx942: E4M3 FNUZ (kernels/common/formats/float8.h) from f32. */
#ifndef KILN_KERNELS_ARCH_GFX942_CODES_H
#define KILN_KERNELS_ARCH_GFX942_CODES_H

#include <stdint.h>

/* The codes of 4 numbers of magnitudes of at most 240. */
static __attribute__((device, always_inline)) inline uint32_t kiln_gfx942_cvt_fnuz_x4(const float *values) {
    const int32_t low = __builtin_amdgcn_cvt_pk_fp8_f32(values[0], values[1], 0, false);
    return (uint32_t)__builtin_amdgcn_cvt_pk_fp8_f32(values[2], values[3], low, true);
}

#endif
