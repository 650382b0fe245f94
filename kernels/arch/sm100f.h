/* Raw instructions of sm_100a, sm_120a and their families (sm_100f, sm_120f): E2M1 from f32 and as pairs of f16. */
#ifndef KILN_KERNELS_ARCH_SM100F_H
#define KILN_KERNELS_ARCH_SM100F_H

#include <stdint.h>

/* The greatest magnitude; NaN only if all are. */
static __device__ __forceinline__ float kiln_sm100f_greatest_f32(float a, float b, float c) {
    float greatest;
    asm("max.abs.f32 %0, %1, %2, %3;" : "=f"(greatest) : "f"(a), "f"(b), "f"(c));
    return greatest;
}

/* The codes of 8 numbers; magnitudes above 6 become 6. */
static __device__ __forceinline__ uint32_t kiln_sm100f_cvt_e2m1x8_f32(const float *values) {
    uint32_t codes;
    asm("{.reg .b8 pair0, pair1, pair2, pair3; cvt.rn.satfinite.e2m1x2.f32 pair0, %2, %1; cvt.rn.satfinite.e2m1x2.f32 "
        "pair1, %4, %3; cvt.rn.satfinite.e2m1x2.f32 pair2, %6, %5; cvt.rn.satfinite.e2m1x2.f32 pair3, %8, %7; mov.b32 "
        "%0, {pair0, pair1, pair2, pair3};}"
        : "=r"(codes)
        : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "f"(values[4]), "f"(values[5]),
          "f"(values[6]), "f"(values[7]));
    return codes;
}

/* The numbers of 4 and of 8 codes, the first two in pairs[0]. */
static __device__ __forceinline__ void kiln_sm100f_cvt_f16x2_e2m1x4(uint32_t *pairs, uint16_t codes) {
    asm("{.reg .b8 pair0, pair1; mov.b16 {pair0, pair1}, %2; cvt.rn.f16x2.e2m1x2 %0, pair0; cvt.rn.f16x2.e2m1x2 %1, "
        "pair1;}"
        : "=r"(pairs[0]), "=r"(pairs[1])
        : "h"(codes));
}
static __device__ __forceinline__ void kiln_sm100f_cvt_f16x2_e2m1x8(uint32_t *pairs, uint32_t codes) {
    asm("{.reg .b8 pair0, pair1, pair2, pair3; mov.b32 {pair0, pair1, pair2, pair3}, %4; cvt.rn.f16x2.e2m1x2 %0, "
        "pair0; "
        "cvt.rn.f16x2.e2m1x2 %1, pair1; cvt.rn.f16x2.e2m1x2 %2, pair2; cvt.rn.f16x2.e2m1x2 %3, pair3;}"
        : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
        : "r"(codes));
}

#endif
