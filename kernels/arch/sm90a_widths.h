/* More raw instructions of sm_90a: matrix products by warpgroups of f16 and bf16 with 80, 192 and 224 columns,
 * whose factors lie K-major in shared memory. */
#ifndef KILN_KERNELS_ARCH_SM90A_WIDTHS_H
#define KILN_KERNELS_ARCH_SM90A_WIDTHS_H

#include "kernels/arch/sm90a.h"

/* The operands of a product, eight at a time. */
#define KILN__D8(d, i)                                                                                                \
    "+f"((d)[i]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3]), "+f"((d)[(i) + 4]), "+f"((d)[(i) + 5]), \
        "+f"((d)[(i) + 6]), "+f"((d)[(i) + 7])
#define KILN__D32(d, i)  KILN__D8(d, i), KILN__D8(d, (i) + 8), KILN__D8(d, (i) + 16), KILN__D8(d, (i) + 24)
#define KILN__D40(d, i)  KILN__D32(d, i), KILN__D8(d, (i) + 32)
#define KILN__D96(d, i)  KILN__D32(d, i), KILN__D32(d, (i) + 32), KILN__D32(d, (i) + 64)
#define KILN__D112(d, i) KILN__D96(d, i), KILN__D8(d, (i) + 96), KILN__D8(d, (i) + 104)
#define KILN__T40                                                                                                    \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39"
#define KILN__T96                                                                                               \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, " \
    "%23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, " \
    "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, " \
    "%65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, " \
    "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define KILN__T112 \
    KILN__T96 ", " \
              "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"

/* d[64 x n] = a[64 x 16] b[n x 16]^T, + d where `add`: the elements of d are where those of kiln_sm90a_wgmma_f16_n256
 * are, a and b are descriptors. o0 to o2 are the numbers of the operands after d. */
#define KILN__WGMMA(type, n, count, o0, o1, o2)                                                            \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(float *d, uint64_t a, uint64_t b, bool add) {           \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n   \
                     "k16.f32." #type "." #type " {" KILN__T##count "}, " o0 ", " o1 ", add, 1, 1, 0, 0;}" \
                     : KILN__D##count(d, 0)                                                                \
                     : "l"(a), "l"(b), "r"((uint32_t)add));                                                \
    }
KILN__WGMMA(f16, 80, 40, "%40", "%41", "%42")
KILN__WGMMA(f16, 192, 96, "%96", "%97", "%98")
KILN__WGMMA(f16, 224, 112, "%112", "%113", "%114")
KILN__WGMMA(bf16, 80, 40, "%40", "%41", "%42")
KILN__WGMMA(bf16, 192, 96, "%96", "%97", "%98")
KILN__WGMMA(bf16, 224, 112, "%112", "%113", "%114")

#undef KILN__WGMMA
#undef KILN__T112
#undef KILN__T96
#undef KILN__T40
#undef KILN__D112
#undef KILN__D96
#undef KILN__D40
#undef KILN__D32
#undef KILN__D8

#endif
