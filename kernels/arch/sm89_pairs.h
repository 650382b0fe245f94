/* More raw instructions of sm_89 and later: codes of E4M3 as pairs of f16. */
#ifndef KILN_KERNELS_ARCH_SM89_PAIRS_H
#define KILN_KERNELS_ARCH_SM89_PAIRS_H

#include <stdint.h>

/* The numbers of 4 codes, exactly: pairs[0] of the first two, pairs[1] of the others. */
static __device__ __forceinline__ void kiln_sm89_cvt_f16x2_e4m3x4(uint32_t *pairs, uint32_t codes) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.rn.f16x2.e4m3x2 %0, low; cvt.rn.f16x2.e4m3x2 %1, high;}"
        : "=r"(pairs[0]), "=r"(pairs[1])
        : "r"(codes));
}

#endif
