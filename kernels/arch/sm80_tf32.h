/* More raw instructions of sm_80 and later: f32 as TF32, and products of it by warps. */
#ifndef KILN_KERNELS_ARCH_SM80_TF32_H
#define KILN_KERNELS_ARCH_SM80_TF32_H

#include "kernels/arch/sm80.h"

/* An f32 with 10 bits of fraction: the nearest, half away from zero; all as their bits. */
static __device__ __forceinline__ uint32_t kiln_sm80_cvt_rna_tf32(uint32_t value) {
    uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(value)));
    return rounded;
}

/* sums[16 x 8] += a[16 x 8] b[8 x 8]. */
static __device__ __forceinline__ void kiln_sm80_mma_tf32(float *sums, const uint32_t *a, const uint32_t *b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
