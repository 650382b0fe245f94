/* More raw instructions of sm_120a and its family (sm_120f): E2M1 from f32. */
#ifndef KILN_KERNELS_ARCH_SM120F_CODES_H
#define KILN_KERNELS_ARCH_SM120F_CODES_H

#include <stdint.h>

/* The codes of 8 numbers; magnitudes above 6 become 6. */
static __device__ __forceinline__ uint32_t kiln_sm120f_cvt_e2m1x8_f32(const float *values) {
    uint32_t codes;
    asm("{.reg .b8 pair0, pair1, pair2, pair3; cvt.rn.satfinite.e2m1x2.f32 pair0, %2, %1; cvt.rn.satfinite.e2m1x2.f32 "
        "pair1, %4, %3; cvt.rn.satfinite.e2m1x2.f32 pair2, %6, %5; cvt.rn.satfinite.e2m1x2.f32 pair3, %8, %7; mov.b32 "
        "%0, {pair0, pair1, pair2, pair3};}"
        : "=r"(codes)
        : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "f"(values[4]), "f"(values[5]),
          "f"(values[6]), "f"(values[7]));
    return codes;
}

#endif
