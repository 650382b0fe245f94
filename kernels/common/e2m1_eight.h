/* kiln_nvfp4_codes_of (nvfp4_codes.h), on AMD's devices in fewer instructions than float4.h takes: as on NVIDIA's,
 * codes are the least of three lines, with an instruction for the least of three numbers. */
#ifndef KILN_KERNELS_COMMON_E2M1_EIGHT_H
#define KILN_KERNELS_COMMON_E2M1_EIGHT_H

#include "kernels/common/nvfp4_codes.h"
#include "kernels/common/two.h"

#if defined(__HIP__)

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
        const kiln_two ones = magnitudes + (one + 2.0f);
        const kiln_two twos = __builtin_elementwise_fma(magnitudes, (kiln_two)0.5f, (kiln_two)(one + 4.0f));
        KILN_UNROLL
        for (int j = 0; j < 2; j++)
            sums[i + j] = __builtin_fminf(__builtin_fminf(halves[j], ones[j]), twos[j]);
    }
    return kiln_float_bytes(sums, 2, 0) | kiln_float_bytes(sums + 1, 2, 0) << 4 |
           (kiln_float_bytes(numbers, 2, 3) >> 4 & 0x08080808u) | (kiln_float_bytes(numbers + 1, 2, 3) & 0x80808080u);
}

#else

KILN_INLINE uint32_t kiln_e2m1_eight_of(const float *values) {
    return kiln_nvfp4_codes_of(values);
}

#endif

#endif
