/* Adds the four products of int8 in two words to a sum, by one instruction where the target has it. */
#ifndef KILN_KERNELS_COMMON_MATH_DOT_H
#define KILN_KERNELS_COMMON_MATH_DOT_H

#include "kernels/common/device.h"

KILN_INLINE int32_t kiln_dot4(uint32_t a, uint32_t b, int32_t sum) {
#if defined(__CUDACC__)
    return __dp4a((int32_t)a, (int32_t)b, sum);
#elif defined(__GFX11__) || defined(__GFX12__)
    return __builtin_amdgcn_sudot4(true, (int32_t)a, true, (int32_t)b, sum, false);
#elif defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx1030__) || defined(__gfx10_3_generic__)
    return __builtin_amdgcn_sdot4((int32_t)a, (int32_t)b, sum, false);
#else
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        sum += (int32_t)(int8_t)(a >> 8 * i) * (int32_t)(int8_t)(b >> 8 * i);
    return sum;
#endif
}

#endif
