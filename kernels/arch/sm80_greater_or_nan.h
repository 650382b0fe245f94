/* One more raw instruction of sm_80 and later: the greater number, of which NaN is the greatest. */
#ifndef KILN_KERNELS_ARCH_SM80_GREATER_OR_NAN_H
#define KILN_KERNELS_ARCH_SM80_GREATER_OR_NAN_H

static __device__ __forceinline__ float kiln_sm80_greater_or_nan_f32(float a, float b) {
    float greater;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(greater) : "f"(a), "f"(b));
    return greater;
}

#endif
