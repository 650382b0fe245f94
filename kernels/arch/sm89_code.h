/* More raw instructions of sm_89 and later: E4M3 from f32, one number. */
#ifndef KILN_KERNELS_ARCH_SM89_CODE_H
#define KILN_KERNELS_ARCH_SM89_CODE_H

#include <stdint.h>

/* The code of a number; a magnitude above 448 becomes 448. */
static __device__ __forceinline__ uint32_t kiln_sm89_cvt_e4m3_f32(float value) {
    uint32_t code;
    asm("{.reg .b16 pair; cvt.rn.satfinite.e4m3x2.f32 pair, 0f00000000, %1; cvt.u32.u16 %0, pair;}"
        : "=r"(code)
        : "f"(value));
    return code;
}

#endif
