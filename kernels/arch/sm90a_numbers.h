/* More raw instructions of sm_90a: arithmetic that C++ has no operator for. */
#ifndef KILN_KERNELS_ARCH_SM90A_NUMBERS_H
#define KILN_KERNELS_ARCH_SM90A_NUMBERS_H

#include "kernels/arch/sm90a.h"

/* The larger of two numbers, NaN if one is. */
KILN_SM90A float kiln_sm90a_max_nan(float a, float b) {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
}

#endif
