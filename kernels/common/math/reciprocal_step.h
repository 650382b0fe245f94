/* A reciprocal rounded to nearest from one that nearly is: one source for host C and both device compilers. The
 * includer (device.h, cpu.h) defines KILN_FMA. */
#ifndef KILN_KERNELS_COMMON_MATH_RECIPROCAL_STEP_H
#define KILN_KERNELS_COMMON_MATH_RECIPROCAL_STEP_H

/* 1 / x rounded to nearest, from a start of which the true value is less than an ulp away: by Markstein's theorem, one
 * step of Newton's method is enough unless the fraction of x has ones alone. */
KILN_INLINE float kiln_reciprocal_step(float x, float start) {
    return KILN_FMA(KILN_FMA(-x, start, 1.0f), start, start);
}

#endif
