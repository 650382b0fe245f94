/* Functions in hardware, for kernels that would otherwise be bound by instructions instead of
 * memory. Their results differ in the last bits from target to target; math.h has those that do
 * not.
 *
 * kiln_fast_exp2(x)           2^x, 2 ulp; 0 below 2^-126 kiln_fast_log2(x)           the logarithm
 * of x >= 2^-126, 2^-21 absolute or relative, the larger of them kiln_fast_reciprocal(x)     1 / x,
 * 1 ulp; 0 below 2^-126 kiln_fast_max, _min(a, b)   the other argument if one is NaN
 * kiln_fast_clamp(x, bound)   x limited to [-bound, bound]; one of the two for NaN */
#ifndef KILN_KERNELS_COMMON_MATH_SPECIAL_H
#define KILN_KERNELS_COMMON_MATH_SPECIAL_H

#include "kernels/common/device.h"

#define KILN_LOG2_E      0x1.715476p0f
#define KILN_LOG2_E_REST 0x1.4ae0cp-26f /* log2 e - KILN_LOG2_E */

#if defined(__CUDACC__)

#include "kernels/arch/ptx.h"

KILN_INLINE float kiln_fast_exp2(float x) {
    return kiln_ptx_ex2(x);
}
KILN_INLINE float kiln_fast_log2(float x) {
    return kiln_ptx_lg2(x);
}
KILN_INLINE float kiln_fast_reciprocal(float x) {
    return kiln_ptx_rcp(x);
}
KILN_INLINE float kiln_fast_max(float a, float b) {
    return fmaxf(a, b);
}
KILN_INLINE float kiln_fast_clamp(float x, float bound) {
    return fmaxf(-bound, fminf(x, bound));
}

#elif defined(__HIP__)

KILN_INLINE float kiln_fast_exp2(float x) {
    return __builtin_amdgcn_exp2f(x);
}
KILN_INLINE float kiln_fast_log2(float x) {
    return __builtin_amdgcn_logf(x);
}
KILN_INLINE float kiln_fast_reciprocal(float x) {
    return __builtin_amdgcn_rcpf(x);
}
/* The median with infinity: for v_max_f32 the compiler would quieten both operands first, with an instruction each. */
KILN_INLINE float kiln_fast_max(float a, float b) {
    return __builtin_amdgcn_fmed3f(a, b, KILN_INFINITY);
}
KILN_INLINE float kiln_fast_clamp(float x, float bound) {
    return __builtin_amdgcn_fmed3f(x, -bound, bound);
}

#endif

KILN_INLINE void kiln_powers_of(float *powers, const float *coefficients, int count) {
    KILN_UNROLL
    for (int i = 0; i < count; i++)
        powers[i] = coefficients[i] * -KILN_LOG2_E;
}

/* kiln_gated (math.h) with the hardware's functions: t sigmoid(t P(t^2)), with an error of 3e-7 in the sigmoid besides
 * the rounding of its argument. powers are P's coefficients times -log2 e, which is multiplied before a loop over
 * elements. */
KILN_INLINE float kiln_fast_gated(float t, float bound, const float *powers, int count) {
    float c = kiln_fast_clamp(t, bound);
    float square = c * c, p = powers[count - 1];
    KILN_UNROLL
    for (int i = count - 2; i >= 0; i--)
        p = KILN_FMA(p, square, powers[i]);
    float sigmoid = kiln_fast_reciprocal(1.0f + kiln_fast_exp2(c * p));
    return t < -bound ? -0.0f : t * sigmoid;
}

#endif
