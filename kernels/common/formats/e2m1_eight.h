/* E2M1 codes of any numbers on AMD's devices, in fewer instructions than float4.h takes, and on NVIDIA's that have one
 * for them; e2m1_bounded.h is for the others. The codes are the same.
 *
 * On AMD's, codes count by halves up to 2, by ones up to 4 and by twos above, which is the least of three lines; each
 * sum rounds one of them to an integer, in its low bits, and the least sum is that of the least line: there is an
 * instruction for the least of three numbers. */
#ifndef KILN_KERNELS_COMMON_FORMATS_E2M1_EIGHT_H
#define KILN_KERNELS_COMMON_FORMATS_E2M1_EIGHT_H

#include "kernels/common/device.h"
#include "kernels/common/math/two.h"
#include "kernels/common/quantize/nvfp4_codes.h"

#if defined(__HIP__)

#if defined(__gfx90a__) || defined(__gfx942__)

/* The E2M1 codes of eight products, the first in the lowest bits. */
KILN_INLINE uint32_t kiln_e2m1_eight_of(const float *values) {
    const float one = 0x1.8p23f;
    float numbers[8], sums[8];
    KILN_UNROLL
    for (int i = 0; i < 8; i += 2) {
        kiln_two magnitudes;
        KILN_UNROLL
        for (int j = 0; j < 2; j++) {
            numbers[i + j] = __builtin_fminf(values[i + j], KILN_E2M1_GREATEST); /* NaN too */
            magnitudes[j] = __builtin_fminf(__builtin_fabsf(numbers[i + j]), KILN_E2M1_GREATEST);
        }
        const kiln_two halves = __builtin_elementwise_fma(magnitudes, (kiln_two)2.0f, (kiln_two)one);
        const kiln_two ones = __builtin_elementwise_fma(magnitudes, (kiln_two)1.0f, (kiln_two)(one + 2.0f));
        const kiln_two twos = __builtin_elementwise_fma(magnitudes, (kiln_two)0.5f, (kiln_two)(one + 4.0f));
        KILN_UNROLL
        for (int j = 0; j < 2; j++)
            sums[i + j] = __builtin_fminf(__builtin_fminf(halves[j], ones[j]), twos[j]);
    }
    return kiln_float_bytes(sums, 2, 0) | kiln_float_bytes(sums + 1, 2, 0) << 4 |
           (kiln_float_bytes(numbers, 2, 3) >> 4 & 0x08080808u) | (kiln_float_bytes(numbers + 1, 2, 3) & 0x80808080u);
}

#else

/* The same where instructions for two numbers at once are missing, but take the magnitude of one: the number limited is
 * the negative one, so that NaN, of which the median is the lesser bound, has the sign of 6. */
KILN_INLINE uint32_t kiln_e2m1_eight_of(const float *values) {
    const float one = 0x1.8p23f;
    float numbers[8], sums[8];
    KILN_UNROLL
    for (int i = 0; i < 8; i++) {
        numbers[i] = kiln_fast_clamp(-values[i], KILN_E2M1_GREATEST);
        const float magnitude = __builtin_fabsf(numbers[i]);
        const float halves = KILN_FMA(magnitude, 2.0f, one), ones = magnitude + (one + 2.0f);
        sums[i] = __builtin_fminf(__builtin_fminf(halves, ones), KILN_FMA(magnitude, 0.5f, one + 4.0f));
    }
    const uint32_t codes = kiln_float_bytes(sums, 2, 0) | kiln_float_bytes(sums + 1, 2, 0) << 4;
    const uint32_t even = kiln_float_bytes(numbers, 2, 3) >> 4 & 0x08080808u;
    return (codes | even | (kiln_float_bytes(numbers + 1, 2, 3) & 0x80808080u)) ^ 0x88888888u;
}

#endif

#elif KILN_E2M1_INSTRUCTION

KILN_INLINE uint32_t kiln_e2m1_eight_of(const float *values) {
    return kiln_sm100f_cvt_e2m1x8_f32(values);
}

#endif

#endif
