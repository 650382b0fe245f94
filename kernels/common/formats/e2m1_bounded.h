/* E2M1 codes on NVIDIA's devices of numbers that are known to be less than 7 in magnitude, or NaN: in six instructions
 * each from sm_86 on, and seven before. The codes are float4.h's; every such number was tried.
 *
 * A number's power of two, at least 1, has its sign. 2^22 + 1 times it rounds the number to half the power, and the
 * sum's low bits count these steps, and two further ones; each further exponent has two steps more. The product with a
 * constant adds all this in the topmost four bits, the sign, the exponent's low bits and the steps, and its other bits
 * do not carry into them. Of 0x7fffffff, which is the sum of NaN, they become 7. */
#ifndef KILN_KERNELS_COMMON_FORMATS_E2M1_BOUNDED_H
#define KILN_KERNELS_COMMON_FORMATS_E2M1_BOUNDED_H

#include "kernels/common/quantize/nvfp4_codes.h"

#if defined(__CUDACC__) && !KILN_E2M1_INSTRUCTION

#include "kernels/arch/ptx.h"
#if __CUDA_ARCH__ >= 860
#include "kernels/arch/sm86.h"
#endif

/* The power of two of a magnitude, at least 1, with the number's sign. */
KILN_INLINE float kiln_e2m1_power(float value) {
#if __CUDA_ARCH__ >= 860
    return kiln_float_and(kiln_sm86_greater_f32(value, 1.0f), 0xff800000u);
#else
    const uint32_t power = kiln_ptx_and_bits(value, 0x7f800000u), one = 0x3f800000u;
    return kiln_ptx_and_or(value, 0x80000000u, power > one ? power : one);
#endif
}

/* The codes of eight numbers, the first in the lowest bits. */
KILN_INLINE uint32_t kiln_e2m1_eight_bounded(const float *values) {
    const uint32_t topmost = (1u << 28) - (1u << 20) + (1u << 6) + 1u;
    uint32_t word = 0;
    KILN_UNROLL
    for (int i = 7; i >= 0; i--)
        word = __funnelshift_l(kiln_ptx_fma_bits(kiln_e2m1_power(values[i]), 0x1.000004p22f, values[i]) * topmost, word,
                               4);
    return word;
}

#endif

#endif
