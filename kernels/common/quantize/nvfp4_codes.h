/* The scale and the codes of a block of NVFP4 on devices, by the target's own conversions where it has them: to E4M3
 * from sm_89 on, to and from E2M1 in the families of sm_100f and sm_120f. The results are those of nvfp4_scale.h and
 * float4.h, bit by bit. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_CODES_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_CODES_H

#include "kernels/common/device.h"
#include "kernels/common/formats/encode_gpu.h"

#if KILN_E4M3_INSTRUCTION
#include "kernels/arch/sm89.h"
#endif

#if defined(__CUDACC__) && defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000
#include "kernels/arch/sm100f.h"
#define KILN_E2M1_INSTRUCTION 1
#else
#define KILN_E2M1_INSTRUCTION 0
#endif

/* kiln_nvfp4_scale of a greatest magnitude. */
KILN_INLINE uint32_t kiln_nvfp4_block_scale(float greatest, float encode) {
#if KILN_E4M3_INSTRUCTION
    const float sixth = 1.0f / KILN_E2M1_GREATEST, near = greatest * sixth;
    const float quotient = KILN_FMA(KILN_FMA(-KILN_E2M1_GREATEST, near, greatest), sixth, near);
    return kiln_sm89_cvt_e4m3_f32((greatest < KILN_INFINITY ? quotient : greatest) * encode);
#else
    return kiln_nvfp4_scale_of(greatest, encode);
#endif
}

/* The E2M1 codes of eight products, the first in the lowest bits. */
#if KILN_E2M1_INSTRUCTION
KILN_INLINE uint32_t kiln_nvfp4_codes_of(const float *values) {
    return kiln_sm100f_cvt_e2m1x8_f32(values);
}
#elif defined(__CUDACC__)
/* As kiln_e2m1_steps has it: the sums are positive, whereby the least number has the least bits. */
KILN_INLINE uint32_t kiln_nvfp4_codes_of(const float *values) { /* a product that is NaN has no sign */
    const float one = 0x1.8p23f;
    float sums[8];
    KILN_UNROLL
    for (int i = 0; i < 8; i++) {
        const float magnitude = kiln_fast_min(__builtin_fabsf(values[i]), KILN_E2M1_GREATEST);
        const float halves = KILN_FMA(magnitude, 2.0f, one), ones = magnitude + (one + 2.0f);
        const float twos = KILN_FMA(magnitude, 0.5f, one + 4.0f);
        sums[i] = kiln_fast_min(kiln_fast_min(ones, twos), halves);
    }
    return kiln_float_bytes(sums, 2, 0) | kiln_float_bytes(sums + 1, 2, 0) << 4 |
           (kiln_float_bytes(values, 2, 3) >> 4 & 0x08080808u) | (kiln_float_bytes(values + 1, 2, 3) & 0x80808080u);
}
#else
KILN_INLINE uint32_t kiln_nvfp4_codes_of(const float *values) {
    return kiln_e2m1_eight(values);
}
#endif

#endif
