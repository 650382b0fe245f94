/* Raw instructions of sm_90a: barriers in shared memory that count bytes, copies by tensor maps, matrix products by
 * warpgroups, registers handed from one warpgroup to another, clusters. Shared memory is addressed by 32 bits
 * (kiln_sm90a_shared). */
#ifndef KILN_KERNELS_ARCH_SM90A_H
#define KILN_KERNELS_ARCH_SM90A_H

#include <stdint.h>

#define KILN_SM90A static __device__ __forceinline__

/* The address of something in shared memory, as the instructions here take it. */
KILN_SM90A uint32_t kiln_sm90a_shared(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* ---- Barriers in shared memory: mbarrier ---- */

/* A phase is complete when `arrivals` threads have arrived and all expected bytes have come. */
KILN_SM90A void kiln_sm90a_mbarrier_init(uint32_t barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Makes mbarrier_init visible to the cluster and to copies. */
KILN_SM90A void kiln_sm90a_fence_mbarrier_init(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

KILN_SM90A void kiln_sm90a_mbarrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives, and makes the phase expect that many bytes more. */
KILN_SM90A void kiln_sm90a_mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* Arrives, if `present`, at the barrier with this address in another block of the cluster. The condition is a
 * predicate, since a branch here cost prototypes a quarter of their speed. */
KILN_SM90A void kiln_sm90a_mbarrier_arrive_remote(uint32_t barrier, uint32_t rank, bool present) {
    asm volatile("{.reg .pred present; .reg .b32 remote; setp.ne.u32 present, %2, 0; @present mapa.shared::cluster.u32 "
                 "remote, %0, "
                 "%1; @present mbarrier.arrive.shared::cluster.b64 _, [remote];}" ::"r"(barrier),
                 "r"(rank), "r"((uint32_t)present)
                 : "memory");
}

/* Waits until the phase of that parity is complete. */
KILN_SM90A void kiln_sm90a_mbarrier_wait(uint32_t barrier, uint32_t parity) {
    uint32_t done;
    do {
        asm volatile("{.reg .pred done; mbarrier.try_wait.parity.shared.b64 done, [%1], %2; selp.u32 %0, 1, 0, done;}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

/* Makes this thread's earlier writes to shared memory visible to later copies and matrix products. */
KILN_SM90A void kiln_sm90a_fence_proxy_async(void) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- Copies of tensors: cp.async.bulk.tensor. Coordinates are elements, the innermost dimension first. ---- */

KILN_SM90A void kiln_sm90a_prefetch_tensormap(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Copies the box at the coordinates into shared memory and counts its bytes at the barrier. */
KILN_SM90A void kiln_sm90a_copy_2d(uint32_t shared, const void *map, uint32_t barrier, int32_t x, int32_t y) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
                 "[%2];" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
}

KILN_SM90A void kiln_sm90a_copy_3d(uint32_t shared, const void *map, uint32_t barrier, int32_t x, int32_t y,
                                   int32_t z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
        "[%2];" ::"r"(shared),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

KILN_SM90A void kiln_sm90a_copy_4d(uint32_t shared, const void *map, uint32_t barrier, int32_t x, int32_t y, int32_t z,
                                   int32_t w) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
                 "%6}], [%2];" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

/* The same into each block of the cluster whose bit is set, at the same address and with that block's barrier. */
KILN_SM90A void kiln_sm90a_copy_3d_multicast(uint32_t shared, const void *map, uint32_t barrier, uint16_t blocks,
                                             int32_t x, int32_t y, int32_t z) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%4, %5, %6}], [%2], %3;" ::"r"(shared),
                 "l"(map), "r"(barrier), "h"(blocks), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* ---- Warps and blocks ---- */

/* True in one lane of the warp, all of whose lanes must be here. */
KILN_SM90A bool kiln_sm90a_elect(void) {
    uint32_t elected;
    asm volatile("{.reg .pred elected; elect.sync _|elected, 0xffffffff; selp.u32 %0, 1, 0, elected;}"
                 : "=r"(elected)::"memory");
    return elected != 0;
}

/* Gives registers back to the multiprocessor, or takes them: to a multiple of 8 per thread, by whole warpgroups. */
template <int REGISTERS> KILN_SM90A void kiln_sm90a_setmaxnreg_dec(void) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> KILN_SM90A void kiln_sm90a_setmaxnreg_inc(void) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* One of the block's named barriers, 1 to 15, for a number of threads; 0 is the barrier of the whole block. */
KILN_SM90A void kiln_sm90a_barrier_sync(uint32_t barrier, uint32_t threads) {
    asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
KILN_SM90A void kiln_sm90a_barrier_arrive(uint32_t barrier, uint32_t threads) {
    asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

KILN_SM90A uint32_t kiln_sm90a_cluster_rank(void) {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

KILN_SM90A void kiln_sm90a_cluster_sync(void) {
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Waits for the preceding kernel on the stream and its writes. */
KILN_SM90A void kiln_sm90a_depend(void) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* ---- Matrix products by warpgroups: wgmma ---- */

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

/* The same number, which the compiler does not know to be the same: what depends on it is computed again, and not kept
 * in registers across a loop that has none to spare. */
KILN_SM90A uint32_t kiln_sm90a_anew(uint32_t number) {
    asm volatile("" : "+r"(number));
    return number;
}

/* The descriptor of a factor in shared memory whose rows are swizzled over 128 bytes and which begins at a multiple of
 * 1024 bytes, or some whole steps of k after one. K-major: `stride` is the bytes from 8 rows to the next 8 (1024 if
 * they are contiguous), and `leading` is ignored. MN-major, with 64 columns in a row: `stride` is from 8 rows of k to
 * the next 8, `leading` from 64 columns to the next 64. */
KILN_SM90A uint64_t kiln_sm90a_swizzled_128(uint32_t shared, uint32_t leading, uint32_t stride) {
    return (uint64_t)1 << 62 | (uint64_t)(stride >> 4) << 32 | (uint64_t)(leading >> 4) << 16 | (shared & 0x3ffff) >> 4;
}

/* The operands of a product, eight at a time. */
#define KILN__D8(d, i)                                                                                                \
    "+f"((d)[i]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3]), "+f"((d)[(i) + 4]), "+f"((d)[(i) + 5]), \
        "+f"((d)[(i) + 6]), "+f"((d)[(i) + 7])
#define KILN__D32(d, i)  KILN__D8(d, i), KILN__D8(d, (i) + 8), KILN__D8(d, (i) + 16), KILN__D8(d, (i) + 24)
#define KILN__D64(d, i)  KILN__D32(d, i), KILN__D32(d, (i) + 32)
#define KILN__D48(d, i)  KILN__D32(d, i), KILN__D8(d, (i) + 32), KILN__D8(d, (i) + 40)
#define KILN__D128(d, i) KILN__D64(d, i), KILN__D64(d, (i) + 64)
#define KILN__T32                                                                                                    \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define KILN__T48 KILN__T32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define KILN__T64                                                                                                      \
    KILN__T32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
              "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KILN__T128                                                                                                     \
    KILN__T64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, " \
              "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, "     \
              "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, " \
              "%120, %121, %122, %123, %124, %125, %126, %127"

/* d[64 x n] = a[64 x 16] b[n x 16]^T, + d where `add`. Thread t of the warpgroup has in d[4 j + 2 h + i] the element of
 * row t / 32 * 16 + t % 32 / 4 + 8 h and column 8 j + t % 4 * 2 + i. a and b are descriptors, or a is the thread's four
 * words of a fragment of mma.sync's m16n8k16 (16 rows for each warp). MN_MAJOR: b is [16 x n], by its rows. o0 to o6
 * are the numbers of the operands after d. */
#define KILN__WGMMA(type, n, count, o0, o1, o2, o3, o4, o5, o6)                                                 \
    template <int MN_MAJOR>                                                                                     \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(float *d, uint64_t a, uint64_t b, bool add) {                \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n        \
                     "k16.f32." #type "." #type " {" KILN__T##count "}, " o0 ", " o1 ", add, 1, 1, 0, " o3 ";}" \
                     : KILN__D##count(d, 0)                                                                     \
                     : "l"(a), "l"(b), "r"((uint32_t)add), "n"(MN_MAJOR));                                      \
    }                                                                                                           \
    template <int MN_MAJOR>                                                                                     \
    KILN_SM90A void kiln_sm90a_wgmma_##type##_n##n(float *d, const uint32_t *a, uint64_t b, bool add) {         \
        asm volatile("{.reg .pred add; setp.ne.u32 add, " o5 ", 0; wgmma.mma_async.sync.aligned.m64n" #n        \
                     "k16.f32." #type "." #type " {" KILN__T##count "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4  \
                                                                    ", add, 1, 1, " o6 ";}"                     \
                     : KILN__D##count(d, 0)                                                                     \
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

#undef KILN__WGMMA
#undef KILN__T128
#undef KILN__T64
#undef KILN__T48
#undef KILN__T32
#undef KILN__D128
#undef KILN__D64
#undef KILN__D48
#undef KILN__D32
#undef KILN__D8

#endif
