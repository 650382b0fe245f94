/* Raw instructions of sm_120a and its family (sm_120f): matrix products of E2M1 with block scales, by warps. */
#ifndef KILN_KERNELS_ARCH_SM120F_H
#define KILN_KERNELS_ARCH_SM120F_H

#include <stdint.h>

/* sums[16 x 8] += (a_scales a)[16 x 64] (b_scales b)[64 x 8], with a scale in E4M3 for each 16 of k: four bytes for a
 * row. Lanes hold a's scales of two products: of each four the lower two (A_PAIR 0) or the upper two (1) have those of
 * row lane / 4, then of row + 8. They hold b's scales of four: lane B_LANE of each four has those of column lane / 4.
 */
template <int A_PAIR, int B_LANE>
static __device__ __forceinline__ void kiln_sm120f_mma_nvfp4(float *sums, const uint32_t *a, const uint32_t *b,
                                                             uint32_t a_scales, uint32_t b_scales) {
    asm("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, %10, {0, %12}, %11, {0, %13};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a_scales), "r"(b_scales), "n"(A_PAIR),
          "n"(B_LANE));
}

#endif
