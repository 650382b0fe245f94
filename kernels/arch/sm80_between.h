/* More raw instructions of sm_80 and later: the greater and the lesser number; NaN if one is. */
#ifndef KILN_KERNELS_ARCH_SM80_BETWEEN_H
#define KILN_KERNELS_ARCH_SM80_BETWEEN_H

static __device__ __forceinline__ float kiln_sm80_greater_or_nan_f32(float a, float b) {
    float greater;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(greater) : "f"(a), "f"(b));
    return greater;
}

static __device__ __forceinline__ float kiln_sm80_lesser_or_nan_f32(float a, float b) {
    float lesser;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(lesser) : "f"(a), "f"(b));
    return lesser;
}

#endif
