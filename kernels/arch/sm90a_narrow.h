/* More raw instructions of sm_90a: matrix products by warpgroups of f16 and bf16 with 32 columns, the first
 * factor from registers, the second K-major in shared memory. */
#ifndef KILN_KERNELS_ARCH_SM90A_NARROW_H
#define KILN_KERNELS_ARCH_SM90A_NARROW_H

#include "kernels/arch/sm90a.h"

/* The operands of a product, eight at a time. */
#define KILN__D8(d, i)                                                                                                \
    "+f"((d)[i]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3]), "+f"((d)[(i) + 4]), "+f"((d)[(i) + 5]), \
        "+f"((d)[(i) + 6]), "+f"((d)[(i) + 7])
#define KILN__D16(d, i) KILN__D8(d, i), KILN__D8(d, (i) + 8)
#define KILN__T16       "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"

/* d[64 x n] += a[64 x 16] b[n x 16]^T: the elements of d are where those of kiln_sm90a_wgmma_f16_n64 are, a is the
 * thread's four words of a fragment, b a descriptor. o0 to o4 are the numbers of the operands after d. */
#define KILN__WGMMA(type, n, count, o0, o1, o2, o3, o4)                                                    \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(float *d, const uint32_t *a, uint64_t b) {              \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type " {" KILN__T##count \
                     "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4 ", 1, 1, 1, 0;"                            \
                     : KILN__D##count(d, 0)                                                                \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                \
    }
KILN__WGMMA(f16, 32, 16, "%16", "%17", "%18", "%19", "%20")
KILN__WGMMA(bf16, 32, 16, "%16", "%17", "%18", "%19", "%20")

#undef KILN__WGMMA
#undef KILN__T16
#undef KILN__D16
#undef KILN__D8

#endif
