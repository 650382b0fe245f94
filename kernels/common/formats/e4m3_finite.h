/* The E4M3 codes of four finite numbers on devices, of which none is beyond 448 by more than rounding, where the
 * products whose codes they are have no case of NaN. The first code is the lowest byte of a word. The codes are those
 * of float8.h; every such number was tried.
 *
 * KILN_E4M3_UNIT              what products are multiplied by beforehand, a power of two that is part of their factor
 * kiln_e4m3_finite(products)  their codes */
#ifndef KILN_KERNELS_COMMON_FORMATS_E4M3_FINITE_H
#define KILN_KERNELS_COMMON_FORMATS_E4M3_FINITE_H

#include "kernels/common/device.h"
#include "kernels/common/formats/e4m3_eight.h"

#if KILN_E4M3_INSTRUCTION

#define KILN_E4M3_UNIT 1.0f

KILN_INLINE uint32_t kiln_e4m3_finite(const float *products) {
    return kiln_e4m3_word(products);
}

#elif defined(__HIP__)

#if defined(__gfx942__)
#define KILN_E4M3_UNIT 0.5f /* FNUZ codes are those of halves */
#else
#define KILN_E4M3_UNIT 1.0f
#endif

/* 480, too, whose code is NaN's. */
KILN_INLINE uint32_t kiln_e4m3_finite(const float *products) {
#if defined(__gfx942__)
    const uint32_t codes = kiln_gfx942_cvt_fnuz_x4(products); /* with signs, but for -0 */
#else
    float magnitudes[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        magnitudes[i] = __builtin_fabsf(products[i]);
    const uint32_t codes = kiln_e4m3_four_magnitudes(magnitudes);
#endif
    return codes | (kiln_float_bytes(products, 1, 3) & 0x80808080u);
}

#elif __CUDA_ARCH__ >= 800

#define KILN_E4M3_UNIT 0x1p-8f /* the codes are f16's of such products, rounded to three bits of fraction */

/* Subtracting what rounded a product, a multiple of its power of two or of the least normal number, leaves a number
 * that f16 has, but for the sign of 0. */
KILN_INLINE uint32_t kiln_e4m3_finite(const float *products) {
    uint32_t pairs[2];
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        float rounded[2];
        KILN_UNROLL
        for (int j = 0; j < 2; j++) {
            const float product = products[2 * i + j];
            const float power = kiln_fast_max(kiln_float_and(product, 0x7f800000u), 0x1p-14f);
            rounded[j] = KILN_FMA(power, -0x1.8p20f, KILN_FMA(power, 0x1.8p20f, product));
        }
        pairs[i] = kiln_ptx_cvt_rn_f16x2_f32(rounded);
    }
    return (__byte_perm(pairs[0] << 1, pairs[1] << 1, 0x7531) & 0x7f7f7f7fu) |
           (kiln_float_bytes(products, 1, 3) & 0x80808080u);
}

#else

#define KILN_E4M3_UNIT 1.0f

/* kiln_steps (encode_gpu.h) of two numbers at a time, which are added as halves of a word. */
KILN_INLINE uint32_t kiln_e4m3_finite(const float *products) {
    uint32_t steps[2];
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        float powers[2], sums[2];
        KILN_UNROLL
        for (int j = 0; j < 2; j++) {
            const float magnitude = __builtin_fabsf(products[2 * i + j]);
            powers[j] = kiln_float_and(kiln_fast_max(magnitude, 0x1p-6f), 0x7f800000u);
            sums[j] = KILN_FMA(powers[j], 0x1.00007p20f, magnitude);
        }
        steps[i] = kiln_ptx_prmt(sums[0], sums[1], 0x5410) + (kiln_ptx_prmt(powers[0], powers[1], 0x7632) >> 4);
    }
    return __byte_perm(steps[0], steps[1], 0x6420) | (kiln_float_bytes(products, 1, 3) & 0x80808080u);
}

#endif

#endif
