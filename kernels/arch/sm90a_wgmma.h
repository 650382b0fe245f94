/* Raw instructions of sm_90a: matrix products by warpgroups (PTX ISA, "wgmma"). */
#ifndef KILN_KERNELS_ARCH_SM90A_WGMMA_H
#define KILN_KERNELS_ARCH_SM90A_WGMMA_H

#include "kernels/arch/sm90a.h"

/* Needed before the first product, and after registers that products read were written. */
KILN_SM90A void kiln_sm90a_wgmma_fence(void) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

KILN_SM90A void kiln_sm90a_wgmma_commit(void) {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most PENDING committed sets of products (PTX: wgmma-groups) are pending. */
template <int PENDING> KILN_SM90A void kiln_sm90a_wgmma_wait(void) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the compiler from moving operations on these sums across this point, since pending products read and write them
 * without its knowledge: to be used before wgmma_fence and after wgmma_wait. */
template <int COUNT> KILN_SM90A void kiln_sm90a_wgmma_hold(float *sums) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+f"(sums[i])::"memory");
}
template <int COUNT> KILN_SM90A void kiln_sm90a_wgmma_hold(int32_t *sums) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+r"(sums[i])::"memory");
}

/* The descriptor of a factor in shared memory whose rows are swizzled over 128 bytes and which begins at a multiple of
 * 1024 bytes, or some whole steps of k after one. K-major: `stride` is the bytes from 8 rows to the next 8 (1024 if
 * they are contiguous), and `leading` is ignored. MN-major, with 64 columns in a row: `stride` is from 8 rows of k to
 * the next 8, `leading` from 64 columns to the next 64. */
KILN_SM90A uint64_t kiln_sm90a_swizzled_128(uint32_t shared, uint32_t leading, uint32_t stride) {
    return (uint64_t)1 << 62 | (uint64_t)(stride >> 4) << 32 | (uint64_t)(leading >> 4) << 16 | (shared & 0x3ffff) >> 4;
}

/* The operands of a product; c is their constraint. */
#define KILN__D4(c, d, i)   c((d)[i]), c((d)[(i) + 1]), c((d)[(i) + 2]), c((d)[(i) + 3])
#define KILN__D8(c, d, i)   KILN__D4(c, d, i), KILN__D4(c, d, (i) + 4)
#define KILN__D16(c, d, i)  KILN__D8(c, d, i), KILN__D8(c, d, (i) + 8)
#define KILN__D32(c, d, i)  KILN__D16(c, d, i), KILN__D16(c, d, (i) + 16)
#define KILN__D36(c, d, i)  KILN__D32(c, d, i), KILN__D4(c, d, (i) + 32)
#define KILN__D40(c, d, i)  KILN__D32(c, d, i), KILN__D8(c, d, (i) + 32)
#define KILN__D48(c, d, i)  KILN__D32(c, d, i), KILN__D16(c, d, (i) + 32)
#define KILN__D52(c, d, i)  KILN__D36(c, d, i), KILN__D16(c, d, (i) + 36)
#define KILN__D64(c, d, i)  KILN__D32(c, d, i), KILN__D32(c, d, (i) + 32)
#define KILN__D68(c, d, i)  KILN__D52(c, d, i), KILN__D16(c, d, (i) + 52)
#define KILN__D96(c, d, i)  KILN__D64(c, d, i), KILN__D32(c, d, (i) + 64)
#define KILN__D112(c, d, i) KILN__D96(c, d, i), KILN__D16(c, d, (i) + 96)
#define KILN__D128(c, d, i) KILN__D64(c, d, i), KILN__D64(c, d, (i) + 64)
#define KILN__T16           "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define KILN__T32  \
    KILN__T16 ", " \
              "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KILN__T36  \
    KILN__T32 ", " \
              "%32, %33, %34, %35"
#define KILN__T40  \
    KILN__T32 ", " \
              "%32, %33, %34, %35, %36, %37, %38, %39"
#define KILN__T48  \
    KILN__T32 ", " \
              "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define KILN__T52  \
    KILN__T36 ", " \
              "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51"
#define KILN__T64                                                                                               \
    KILN__T32 ", "                                                                                              \
              "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
              "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KILN__T68  \
    KILN__T52 ", " \
              "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67"
#define KILN__T96                                                                                               \
    KILN__T64 ", "                                                                                              \
              "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
              "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define KILN__T112 \
    KILN__T96 ", " \
              "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define KILN__T128                                                                                               \
    KILN__T64 ", "                                                                                               \
              "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, "  \
              "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, "      \
              "%101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, " \
              "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

/* d[64 x n] = a[64 x 16] b[n x 16]^T, + d where `add`. Thread t of the warpgroup has in d[4 j + 2 h + i] the element of
 * row t / 32 * 16 + t % 32 / 4 + 8 h and column 8 j + t % 4 * 2 + i. a and b are descriptors, or a is the thread's four
 * words of a fragment of mma.sync's m16n8k16 (16 rows for each warp). MN_MAJOR: b is [16 x n], by its rows. o0 to o6
 * are the numbers of the operands after d. */
#define KILN__WGMMA(type, n, count, o0, o1, o2, o3, o4, o5, o6)                                                 \
    template <int MN_MAJOR>                                                                                     \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(float *d, uint64_t a, uint64_t b, bool add) {                \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n        \
                     "k16.f32." #type "." #type " {" KILN__T##count "}, " o0 ", " o1 ", add, 1, 1, 0, " o3 ";}" \
                     : KILN__D##count("+f", d, 0)                                                               \
                     : "l"(a), "l"(b), "r"((uint32_t)add), "n"(MN_MAJOR));                                      \
    }                                                                                                           \
    template <int MN_MAJOR>                                                                                     \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(float *d, const uint32_t *a, uint64_t b, bool add) {         \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o5 ", 0; wgmma.mma_async.sync.aligned.m64n" #n        \
                     "k16.f32." #type "." #type " {" KILN__T##count "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4  \
                                                                    ", add, 1, 1, " o6 ";}"                     \
                     : KILN__D##count("+f", d, 0)                                                               \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((uint32_t)add), "n"(MN_MAJOR));  \
    }
KILN__WGMMA(f16, 64, 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
KILN__WGMMA(f16, 96, 48, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
KILN__WGMMA(f16, 128, 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
KILN__WGMMA(f16, 256, 128, "%128", "%129", "%130", "%131", "%132", "%133", "%134")
KILN__WGMMA(bf16, 64, 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
KILN__WGMMA(bf16, 96, 48, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
KILN__WGMMA(bf16, 128, 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
KILN__WGMMA(bf16, 256, 128, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

/* The same with other widths, b K-major: d[64 x n] = a[64 x 16] b[n x 16]^T, + d where `add`: the elements of d are
 * where those of kiln_sm90a_wgmma_f16_n256 are, a and b are descriptors. o0 to o2 are the numbers of the operands after
 * d. */
#define KILN__WGMMA_K_MAJOR(type, n, count, o0, o1, o2)                                                    \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(float *d, uint64_t a, uint64_t b, bool add) {           \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n   \
                     "k16.f32." #type "." #type " {" KILN__T##count "}, " o0 ", " o1 ", add, 1, 1, 0, 0;}" \
                     : KILN__D##count("+f", d, 0)                                                          \
                     : "l"(a), "l"(b), "r"((uint32_t)add));                                                \
    }
KILN__WGMMA_K_MAJOR(f16, 80, 40, "%40", "%41", "%42")
KILN__WGMMA_K_MAJOR(f16, 192, 96, "%96", "%97", "%98")
KILN__WGMMA_K_MAJOR(f16, 224, 112, "%112", "%113", "%114")
KILN__WGMMA_K_MAJOR(bf16, 80, 40, "%40", "%41", "%42")
KILN__WGMMA_K_MAJOR(bf16, 192, 96, "%96", "%97", "%98")
KILN__WGMMA_K_MAJOR(bf16, 224, 112, "%112", "%113", "%114")

/* d[64 x n] += a[64 x 16] b[n x 16]^T: the elements of d are where those of kiln_sm90a_wgmma_f16_n64 are, a is the
 * thread's four words of a fragment, b a descriptor. o0 to o4 are the numbers of the operands after d. */
#define KILN__WGMMA_MORE(type, n, count, o0, o1, o2, o3, o4)                                               \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(float *d, const uint32_t *a, uint64_t b) {              \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type " {" KILN__T##count \
                     "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4 ", 1, 1, 1, 0;"                            \
                     : KILN__D##count("+f", d, 0)                                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                \
    }
KILN__WGMMA_MORE(f16, 32, 16, "%16", "%17", "%18", "%19", "%20")
KILN__WGMMA_MORE(bf16, 32, 16, "%16", "%17", "%18", "%19", "%20")

/* Products of E4M3, int8 and TF32, whose factors lie K-major in shared memory, those of a product 32 bytes of each row:
 * d[64 x n] = a[64 x depth] b[n x depth]^T, + d where `add`: the elements of d are where those of
 * kiln_sm90a_wgmma_f16_n* are, a and b are descriptors. o0 to o2 are the numbers of the operands after d. */
#define KILN__WGMMA_OF(type, n, count, depth, result, sum, c, signs, o0, o1, o2)                                    \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(sum *d, uint64_t a, uint64_t b, bool add) {                      \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k" #depth \
                     "." #result "." #type "." #type " {" KILN__T##count "}, " o0 ", " o1 ", add" signs ";}"        \
                     : KILN__D##count(c, d, 0)                                                                      \
                     : "l"(a), "l"(b), "r"((uint32_t)add));                                                         \
    }
#define KILN__WGMMA_WIDTHS(type, depth, result, sum, c, signs)                       \
    KILN__WGMMA_OF(type, 64, 32, depth, result, sum, c, signs, "%32", "%33", "%34")  \
    KILN__WGMMA_OF(type, 128, 64, depth, result, sum, c, signs, "%64", "%65", "%66") \
    KILN__WGMMA_OF(type, 256, 128, depth, result, sum, c, signs, "%128", "%129", "%130")
KILN__WGMMA_WIDTHS(e4m3, 32, f32, float, "+f", ", 1, 1")
KILN__WGMMA_WIDTHS(tf32, 8, f32, float, "+f", ", 1, 1")
KILN__WGMMA_WIDTHS(s8, 32, s32, int32_t, "+r", "")

/* d[64 x n] = a[64 x 32] b[n x 32]^T, + d where `add`: the elements of d are where those of kiln_sm90a_wgmma_f16_n*
 * are, a is the thread's four words of a fragment of mma.sync's m16n8k32 (16 rows for each warp), b a descriptor of a
 * factor that is K-major. o0 to o5 are the numbers of the operands after d. */
#define KILN__WGMMA_E4M3(n, count, o0, o1, o2, o3, o4, o5)                                                           \
    KILN_SM90A void kiln_sm90a_wgmma_e4m3_n##n(float *d, const uint32_t *a, uint64_t b, bool add) {                  \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o5 ", 0; wgmma.mma_async.sync.aligned.m64n" #n             \
                     "k32.f32.e4m3.e4m3 {" KILN__T##count "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4 ", add, 1, 1;}" \
                     : KILN__D##count("+f", d, 0)                                                                    \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((uint32_t)add));                      \
    }
KILN__WGMMA_E4M3(64, 32, "%32", "%33", "%34", "%35", "%36", "%37")
KILN__WGMMA_E4M3(72, 36, "%36", "%37", "%38", "%39", "%40", "%41")
KILN__WGMMA_E4M3(104, 52, "%52", "%53", "%54", "%55", "%56", "%57")
KILN__WGMMA_E4M3(136, 68, "%68", "%69", "%70", "%71", "%72", "%73")

#undef KILN__WGMMA_E4M3
#undef KILN__WGMMA_WIDTHS
#undef KILN__WGMMA_OF
#undef KILN__WGMMA_MORE
#undef KILN__WGMMA_K_MAJOR
#undef KILN__WGMMA
#undef KILN__T128
#undef KILN__T112
#undef KILN__T96
#undef KILN__T68
#undef KILN__T64
#undef KILN__T52
#undef KILN__T48
#undef KILN__T40
#undef KILN__T36
#undef KILN__T32
#undef KILN__T16
#undef KILN__D128
#undef KILN__D112
#undef KILN__D96
#undef KILN__D68
#undef KILN__D64
#undef KILN__D52
#undef KILN__D48
#undef KILN__D40
#undef KILN__D36
#undef KILN__D32
#undef KILN__D16
#undef KILN__D8
#undef KILN__D4

#endif
