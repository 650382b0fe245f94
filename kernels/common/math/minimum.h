/* kiln_fast_min(a, b): the lesser number, the other argument if one is NaN; what kiln_fast_max (special.h) is for the
 * greater. */
#ifndef KILN_KERNELS_COMMON_MATH_MINIMUM_H
#define KILN_KERNELS_COMMON_MATH_MINIMUM_H

#include "kernels/common/math/special.h"

KILN_INLINE float kiln_fast_min(float a, float b) {
#if defined(__CUDACC__)
    return fminf(a, b);
#else
    return __builtin_amdgcn_fmed3f(a, b, -KILN_INFINITY);
#endif
}

#endif
