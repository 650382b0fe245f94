/* More raw instructions of sm_86 and later: magnitudes. */
#ifndef KILN_KERNELS_ARCH_SM86_GREATER_H
#define KILN_KERNELS_ARCH_SM86_GREATER_H

/* The greater magnitude, with some sign; the other operand's if one is NaN. */
static __device__ __forceinline__ float kiln_sm86_greater_f32(float a, float b) {
    float greater;
    asm("max.xorsign.abs.f32 %0, %1, %2;" : "=f"(greater) : "f"(a), "f"(b));
    return greater;
}

#endif
