/* More raw instructions of sm_90a: matrix products by warpgroups of E4M3, int8 and TF32, whose factors lie K-major in
 * shared memory, those of a product 32 bytes of each row. */
#ifndef KILN_KERNELS_ARCH_SM90A_PRODUCTS_H
#define KILN_KERNELS_ARCH_SM90A_PRODUCTS_H

#include "kernels/arch/sm90a.h"

/* The same as the other kiln_sm90a_wgmma_hold, for integers. */
template <int COUNT> KILN_SM90A void kiln_sm90a_wgmma_hold(int32_t *sums) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+r"(sums[i])::"memory");
}

/* The operands of a product, eight at a time; c is their constraint. */
#define KILN__D8(c, d, i)                                                                                            \
    c((d)[i]), c((d)[(i) + 1]), c((d)[(i) + 2]), c((d)[(i) + 3]), c((d)[(i) + 4]), c((d)[(i) + 5]), c((d)[(i) + 6]), \
        c((d)[(i) + 7])
#define KILN__D32(c, d, i) \
    KILN__D8(c, d, i), KILN__D8(c, d, (i) + 8), KILN__D8(c, d, (i) + 16), KILN__D8(c, d, (i) + 24)
#define KILN__D64(c, d, i)  KILN__D32(c, d, i), KILN__D32(c, d, (i) + 32)
#define KILN__D128(c, d, i) KILN__D64(c, d, i), KILN__D64(c, d, (i) + 64)
#define KILN__T32                                                                                                    \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define KILN__T64                                                                                                      \
    KILN__T32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
              "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KILN__T128                                                                                                     \
    KILN__T64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, " \
              "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, "     \
              "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, " \
              "%120, %121, %122, %123, %124, %125, %126, %127"

/* d[64 x n] = a[64 x depth] b[n x depth]^T, + d where `add`: the elements of d are where those of
 * kiln_sm90a_wgmma_f16_n* are, a and b are descriptors. o0 to o2 are the numbers of the operands after d. */
#define KILN__WGMMA(type, n, count, depth, result, sum, c, signs, o0, o1, o2)                                       \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(sum *d, uint64_t a, uint64_t b, bool add) {                      \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k" #depth \
                     "." #result "." #type "." #type " {" KILN__T##count "}, " o0 ", " o1 ", add" signs ";}"        \
                     : KILN__D##count(c, d, 0)                                                                      \
                     : "l"(a), "l"(b), "r"((uint32_t)add));                                                         \
    }
#define KILN__WGMMA_WIDTHS(type, depth, result, sum, c, signs)                    \
    KILN__WGMMA(type, 64, 32, depth, result, sum, c, signs, "%32", "%33", "%34")  \
    KILN__WGMMA(type, 128, 64, depth, result, sum, c, signs, "%64", "%65", "%66") \
    KILN__WGMMA(type, 256, 128, depth, result, sum, c, signs, "%128", "%129", "%130")
KILN__WGMMA_WIDTHS(e4m3, 32, f32, float, "+f", ", 1, 1")
KILN__WGMMA_WIDTHS(tf32, 8, f32, float, "+f", ", 1, 1")
KILN__WGMMA_WIDTHS(s8, 32, s32, int32_t, "+r", "")

#undef KILN__WGMMA_WIDTHS
#undef KILN__WGMMA
#undef KILN__T128
#undef KILN__T64
#undef KILN__T32
#undef KILN__D128
#undef KILN__D64
#undef KILN__D32
#undef KILN__D8

#endif
