/* The scales of NVFP4 on devices by the hardware's reciprocals instead of divisions: the same results, bit by bit. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_QUICKLY_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_QUICKLY_H

#include "kernels/common/device.h"
#include "kernels/common/formats/encode_gpu.h"
#include "kernels/common/math/reciprocal_step.h"

/* A power of two that takes a positive number nearer to 1, where no step of a division leaves the normal numbers, and
 * 1 over it. */
typedef struct kiln_nearer {
    float by, back;
} kiln_nearer;

KILN_INLINE kiln_nearer kiln_nearer_of(float number) {
    const bool small = number < 1.0f;
    return {small ? 0x1p64f : 0x1p-64f, small ? 0x1p-64f : 0x1p64f};
}

/* The quotient by a number of so few significant bits that it is far from where rounding changes: one step with a
 * reciprocal that is an ulp off comes closer. */
KILN_INLINE float kiln_quotient_step(float number, float divisor, float reciprocal) {
    const float near = number * reciprocal;
    return KILN_FMA(KILN_FMA(-divisor, near, number), reciprocal, near);
}

/* kiln_nvfp4_global of the greatest magnitude, as IEEE division has it. */
KILN_INLINE float kiln_nvfp4_global_quickly(float greatest) {
    const float finite = kiln_fast_min(greatest, 0x1.fffffep127f);
    const kiln_nearer nearer = kiln_nearer_of(finite);
    const float scale = kiln_quotient_step(finite * nearer.by, KILN_NVFP4_GREATEST, 1.0f / KILN_NVFP4_GREATEST);
    return greatest >= KILN_NVFP4_LEAST * KILN_NVFP4_GREATEST ? scale * nearer.back : 1.0f;
}

/* 1 over a decode scale of at most 2^117, so that it is a normal number. If the scale's fraction has ones alone, it is
 * the number after a power of two, which a step does not find. */
KILN_INLINE float kiln_nvfp4_encode_quickly(float scale) {
    const kiln_nearer nearer = kiln_nearer_of(scale);
    const float number = scale * nearer.by;
    float reciprocal = kiln_reciprocal_step(number, kiln_fast_reciprocal(number));
    if (!(~kiln_bits(number) & 0x7fffffu)) reciprocal = kiln_float(0x7e800001u - (kiln_bits(number) & 0x7f800000u));
    return reciprocal * nearer.by;
}

/* kiln_nvfp4_factor_of, for an encode of at least 2^-117, so that the factor is a normal number. */
KILN_INLINE float kiln_nvfp4_factor_quickly(uint32_t scale, float encode) {
    const kiln_nearer nearer = kiln_nearer_of(encode);
    const float decode = kiln_float(scale << 20) * 0x1p120f;
    const float factor = kiln_quotient_step(encode * nearer.by, decode, kiln_fast_reciprocal(decode)) * nearer.back;
    return scale ? factor : 0.0f;
}

/* For any numbers: kiln_nvfp4_global, 1 over a decode scale, and kiln_nvfp4_factor_of. NVIDIA's sources that ask for
 * these keep the divisions; one of AMD's takes as long as 26 instructions (amd_unit.c of the simulator). */
KILN_INLINE float kiln_nvfp4_any_global(float value, uint32_t given) {
#if defined(__HIP__)
    return given ? kiln_nvfp4_global(value, 1) : kiln_nvfp4_global_quickly(value);
#else
    return kiln_nvfp4_global(value, given);
#endif
}
KILN_INLINE float kiln_nvfp4_any_encode(float scale) {
#if defined(__HIP__)
    if (scale <= 0x1p117f) return kiln_nvfp4_encode_quickly(scale);
#endif
    return 1.0f / scale;
}
KILN_INLINE float kiln_nvfp4_any_factor(uint32_t scale, float encode) {
#if defined(__HIP__)
    if (encode >= 0x1p-117f) return kiln_nvfp4_factor_quickly(scale, encode);
#endif
    return kiln_nvfp4_factor_of(scale, encode);
}

#endif
