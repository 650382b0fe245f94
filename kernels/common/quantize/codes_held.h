/* rmsnorm_nvfp4_held and silu_mul_nvfp4_held: how a block of them divides its rows, for the host sides as well. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_HELD_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_HELD_H

#include "kernels/common/geometry.h"

#define KILN_CODES_HELD_SCALE 0x1p116f /* of a static scale, at most: 1 over it over E4M3 is a normal number */

enum {
    KILN_RMSNORM_HELD = 8,  /* eights of a thread, which stay in registers until their codes are made */
    KILN_RMSNORM_MOST = 128 /* threads of a block, which has a row; half as many for half as many columns */
};

enum {
    KILN_SILU_MUL_HELD = 8,          /* of f32 half as many */
    KILN_SILU_MUL_MOST = KILN_BLOCK, /* threads of a block, which has a row, or as many as there are threads for: */
    KILN_SILU_MUL_LEAST_LOG2 = 2 /* a power of two of a warp's, at least so many, whose blocks share a swizzled tile */
};

#endif
