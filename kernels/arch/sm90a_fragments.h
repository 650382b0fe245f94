/* More raw instructions of sm_90a: matrix products of E4M3 by warpgroups whose first factor is in registers, and stores
 * of matrices from fragments. */
#ifndef KILN_KERNELS_ARCH_SM90A_FRAGMENTS_H
#define KILN_KERNELS_ARCH_SM90A_FRAGMENTS_H

#include "kernels/arch/sm90a.h"

/* Stores four matrices of 8 x 8 elements of 16 bits, of which a lane holds pair lane % 4 of row lane / 4; lane i gives
 * the address of row i % 8 of matrix i / 8. */
KILN_SM90A void kiln_sm90a_stmatrix_x4(uint32_t shared, const uint32_t *words) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(words[0]),
                 "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

/* The operands of a product, four at a time. */
#define KILN__D4(d, i)  "+f"((d)[i]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3])
#define KILN__D16(d, i) KILN__D4(d, i), KILN__D4(d, (i) + 4), KILN__D4(d, (i) + 8), KILN__D4(d, (i) + 12)
#define KILN__D32(d, i) KILN__D16(d, i), KILN__D16(d, (i) + 16)
#define KILN__D36(d, i) KILN__D32(d, i), KILN__D4(d, (i) + 32)
#define KILN__D52(d, i) KILN__D36(d, i), KILN__D16(d, (i) + 36)
#define KILN__D68(d, i) KILN__D52(d, i), KILN__D16(d, (i) + 52)
#define KILN__T32                                                                                                    \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define KILN__T36 KILN__T32 ", %32, %33, %34, %35"
#define KILN__T52 KILN__T36 ", %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51"
#define KILN__T68 KILN__T52 ", %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67"

/* d[64 x n] = a[64 x 32] b[n x 32]^T, + d where `add`: the elements of d are where those of kiln_sm90a_wgmma_f16_n*
 * are, a is the thread's four words of a fragment of mma.sync's m16n8k32 (16 rows for each warp), b a descriptor of a
 * factor that is K-major. o0 to o5 are the numbers of the operands after d. */
#define KILN__WGMMA(n, count, o0, o1, o2, o3, o4, o5)                                                                \
    KILN_SM90A void kiln_sm90a_wgmma_e4m3_n##n(float *d, const uint32_t *a, uint64_t b, bool add) {                  \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o5 ", 0; wgmma.mma_async.sync.aligned.m64n" #n             \
                     "k32.f32.e4m3.e4m3 {" KILN__T##count "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4 ", add, 1, 1;}" \
                     : KILN__D##count(d, 0)                                                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((uint32_t)add));                      \
    }
KILN__WGMMA(64, 32, "%32", "%33", "%34", "%35", "%36", "%37")
KILN__WGMMA(72, 36, "%36", "%37", "%38", "%39", "%40", "%41")
KILN__WGMMA(104, 52, "%52", "%53", "%54", "%55", "%56", "%57")
KILN__WGMMA(136, 68, "%68", "%69", "%70", "%71", "%72", "%73")

#undef KILN__WGMMA
#undef KILN__T68
#undef KILN__T52
#undef KILN__T36
#undef KILN__T32
#undef KILN__D68
#undef KILN__D52
#undef KILN__D36
#undef KILN__D32
#undef KILN__D16
#undef KILN__D4

#endif
