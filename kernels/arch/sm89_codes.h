/* More raw instructions of sm_89 and later: E4M3 from f32. */
#ifndef KILN_KERNELS_ARCH_SM89_CODES_H
#define KILN_KERNELS_ARCH_SM89_CODES_H

#include <stdint.h>

/* The codes of 4 numbers; magnitudes above 448 become 448. */
static __device__ __forceinline__ uint32_t kiln_sm89_cvt_e4m3x4_f32(const float *values) {
    uint32_t codes;
    asm("{.reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; "
        "mov.b32 %0, {low, high};}"
        : "=r"(codes)
        : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]));
    return codes;
}

#endif
