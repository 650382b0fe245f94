/* More raw instructions of sm_86 and later: magnitudes, among which NaN is the greatest. */
#ifndef KILN_KERNELS_ARCH_SM86_GREATER_OR_NAN_H
#define KILN_KERNELS_ARCH_SM86_GREATER_OR_NAN_H

/* The greater magnitude, with some sign; NaN if one is. */
static __device__ __forceinline__ float kiln_sm86_greater_or_nan_f32(float a, float b) {
    float greater;
    asm("max.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(greater) : "f"(a), "f"(b));
    return greater;
}

#endif
