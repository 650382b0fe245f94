/* A block of 16 values of a thread as NVFP4: their greatest magnitude and their codes. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_BLOCK_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_BLOCK_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/formats/e2m1_bounded.h"
#include "kernels/common/formats/e2m1_eight.h"

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 860
#include "kernels/arch/sm86.h"
#endif

/* The greatest magnitude. NaN is not greater. */
KILN_INLINE float kiln_nvfp4_block_greatest(const float *values) {
    float greatest = 0.0f;
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i += 2) {
#if defined(__HIP__)
        greatest =
            __builtin_fmaxf(__builtin_fmaxf(greatest, __builtin_fabsf(values[i])), __builtin_fabsf(values[i + 1]));
#elif KILN_E2M1_INSTRUCTION
        greatest = kiln_sm100f_greatest_f32(greatest, values[i], values[i + 1]);
#elif __CUDA_ARCH__ >= 860
        greatest = kiln_sm86_greater_f32(kiln_sm86_greater_f32(greatest, values[i]), values[i + 1]);
#else
        greatest = kiln_fast_max(__builtin_fabsf(values[i]), greatest);
        greatest = kiln_fast_max(__builtin_fabsf(values[i + 1]), greatest);
#endif
    }
    return KILN_E2M1_INSTRUCTION ? greatest : __builtin_fabsf(greatest);
}

/* The codes of the products with a factor; the values are lost. greatest: the greatest magnitude. */
KILN_INLINE kiln_eight_bytes kiln_nvfp4_block_codes(float *values, float greatest, float factor) {
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i += 2) {
        const kiln_two products = kiln_two_mul(kiln_two_of(values[i], values[i + 1]), kiln_two_of(factor, factor));
        values[i] = products.x;
        values[i + 1] = products.y;
    }
#if defined(__CUDACC__) && !KILN_E2M1_INSTRUCTION
    if (!(greatest * factor < 7.0f)) { /* the scale is a subnormal number, or the greatest, or there is infinity */
        KILN_UNROLL
        for (int i = 0; i < KILN_NVFP4_BLOCK; i++)
            values[i] = kiln_fast_max(kiln_fast_min(values[i], KILN_E2M1_GREATEST), -KILN_E2M1_GREATEST);
    }
    return {{kiln_e2m1_eight_bounded(values), kiln_e2m1_eight_bounded(values + 8)}};
#else
    return {{kiln_e2m1_eight_of(values), kiln_e2m1_eight_of(values + 8)}};
#endif
}

#endif
