/* The scales and the codes of NVFP4 on sm_90a, in fewer instructions than encode_gpu.h takes. The results are the same,
 * bit by bit. */
#ifndef KILN_KERNELS_COMMON_NVFP4_SM90A_H
#define KILN_KERNELS_COMMON_NVFP4_SM90A_H

#include "kernels/arch/sm89_codes.h"
#include "kernels/common/encode_gpu.h"
#include "kernels/common/gated_exactly.h"

/* kiln_nvfp4_scale_of: an instruction rounds to E4M3. */
KILN_INLINE uint32_t kiln_nvfp4_scale_rounded(float greatest, float encode) {
    const float sixth = 1.0f / KILN_E2M1_GREATEST;
    float quotient = greatest * sixth;
    quotient = KILN_FMA(KILN_FMA(-KILN_E2M1_GREATEST, quotient, greatest), sixth, quotient);
    const float numbers[4] = {(greatest < KILN_INFINITY ? quotient : greatest) * encode};
    return kiln_sm89_cvt_e4m3x4_f32(numbers) & 0xffu;
}

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

/* kiln_e2m1_eight: a byte's two codes are joined before the bytes are. */
KILN_INLINE uint32_t kiln_e2m1_eight_joined(const float *values) {
    uint32_t pairs[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
        const float even = kiln_fast_min(__builtin_fabsf(values[2 * i]), KILN_E2M1_GREATEST);
        const float odd = kiln_fast_min(__builtin_fabsf(values[2 * i + 1]), KILN_E2M1_GREATEST);
        pairs[i] = kiln_e2m1_steps(even) + (kiln_e2m1_steps(odd) << 4); /* the sums' lowest byte is the code alone */
    }
    return kiln_bytes_of(pairs, 0) | (kiln_float_bytes(values, 2, 3) >> 4 & 0x08080808u) |
           (kiln_float_bytes(values + 1, 2, 3) & 0x80808080u);
}

#endif
