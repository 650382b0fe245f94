/* rmsnorm_nvfp4_held and silu_mul_nvfp4_held: how a block of them divides its row, for the host sides as well. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_HELD_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_HELD_H

#define KILN_CODES_HELD_SCALE 0x1p116f /* of a static scale, at most: 1 over it over E4M3 is a normal number */

enum {
    KILN_RMSNORM_HELD = 8,  /* eights of a thread, which stay in registers until their codes are made */
    KILN_RMSNORM_MOST = 128 /* threads of a block, which has a row; half as many for half as many columns */
};

enum {
    KILN_SILU_MUL_HELD = 4,
    KILN_SILU_MUL_LEAST = 128, /* threads of a block; whole warps more for longer rows */
    KILN_SILU_MUL_MOST = 512
};

#endif
