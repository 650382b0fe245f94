/* Raw instructions of sm_90a: barriers in shared memory that count bytes, copies by tensor maps, registers handed from
 * one warpgroup to another, clusters; sm90a_wgmma.h has its matrix products. Shared memory is addressed by 32 bits
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
KILN_SM90A void kiln_sm90a_copy_3d(uint32_t shared, const void *map, uint32_t barrier, int32_t x, int32_t y,
                                   int32_t z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
        "[%2];" ::"r"(shared),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
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

/* kiln_sm90a_copy_3d of what is read once: L2 evicts it first. */
KILN_SM90A void kiln_sm90a_copy_3d_once(uint32_t shared, const void *map, uint32_t barrier, int32_t x, int32_t y,
                                        int32_t z) {
    asm volatile(
        "{.reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0; "
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
        "{%3, %4, %5}], [%2], policy;}" ::"r"(shared),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

/* Copies adjacent bytes (PTX ISA, "cp.async.bulk") from global memory and counts the bytes at the barrier; addresses
 * and `bytes` are multiples of 16. */
KILN_SM90A void kiln_sm90a_copy_bytes(uint32_t shared, const void *from, uint32_t bytes, uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
        "l"(from), "r"(bytes), "r"(barrier)
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

/* Waits for the preceding kernel on the stream and its writes. */
KILN_SM90A void kiln_sm90a_depend(void) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* The same number, which the compiler does not know to be the same: what depends on it is computed again, and not kept
 * in registers across a loop that has none to spare. */
KILN_SM90A uint32_t kiln_sm90a_anew(uint32_t number) {
    asm volatile("" : "+r"(number));
    return number;
}

/* The greatest number of a warp, all of whose threads take part. */
KILN_SM90A uint32_t kiln_sm90a_warp_greatest(uint32_t value) {
    uint32_t greatest;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(greatest) : "r"(value));
    return greatest;
}

/* Adds the amount to the word at the address, if the value is `least` or greater. */
KILN_SM90A void kiln_sm90a_tally(uint32_t shared, uint32_t amount, float value, float least) {
    asm volatile("{.reg .pred enough; setp.ge.f32 enough, %2, %3; @enough red.shared.add.u32 [%0], %1;}" ::"r"(shared),
                 "r"(amount), "f"(value), "f"(least)
                 : "memory");
}

/* Stores four matrices of 8 x 8 elements of 16 bits, of which a lane holds pair lane % 4 of row lane / 4; lane i gives
 * the address of row i % 8 of matrix i / 8. */
KILN_SM90A void kiln_sm90a_stmatrix_x4(uint32_t shared, const uint32_t *words) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(words[0]),
                 "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

/* ---- Clusters ---- */

KILN_SM90A uint32_t kiln_sm90a_cluster_rank(void) {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

KILN_SM90A void kiln_sm90a_cluster_sync(void) {
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The cluster's barrier in two steps: no thread leaves the second before all have come to the first. It orders no
 * memory, and so does not wait for what was written before; but barriers in shared memory may be used after it that
 * were initialised before kiln_sm90a_fence_mbarrier_init. */
KILN_SM90A void kiln_sm90a_cluster_arrive(void) {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
KILN_SM90A void kiln_sm90a_cluster_wait(void) {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The address, in the block of that rank of the cluster, of what is at the address of this block's shared memory. */
KILN_SM90A uint32_t kiln_sm90a_remote(uint32_t shared, uint32_t rank) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared), "r"(rank));
    return remote;
}

/* Where the block of that rank of the cluster has what this block has at the pointer, which is to shared memory. */
template <class type> KILN_SM90A type *kiln_sm90a_shared_of(type *pointer, uint32_t rank) {
    uint64_t mapped;
    asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(pointer), "r"(rank));
    return (type *)mapped;
}

/* Stores four numbers, or one, at an address that kiln_sm90a_remote gave, for four a multiple of 16. */
KILN_SM90A void kiln_sm90a_store_remote_v4(uint32_t remote, const float *values) {
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(remote), "f"(values[0]), "f"(values[1]),
                 "f"(values[2]), "f"(values[3])
                 : "memory");
}
KILN_SM90A void kiln_sm90a_store_remote(uint32_t remote, float value) {
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");
}

/* What the block of that rank in the cluster has at this address. */
KILN_SM90A float2 kiln_sm90a_remote_v2(uint32_t shared, uint32_t rank) {
    float2 values;
    asm volatile("{.reg .b32 remote; mapa.shared::cluster.u32 remote, %2, %3; "
                 "ld.shared::cluster.v2.f32 {%0, %1}, [remote];}"
                 : "=f"(values.x), "=f"(values.y)
                 : "r"(shared), "r"(rank)
                 : "memory");
    return values;
}
KILN_SM90A float4 kiln_sm90a_remote_v4(uint32_t shared, uint32_t rank) {
    float4 values;
    asm volatile("{.reg .b32 remote; mapa.shared::cluster.u32 remote, %4, %5; "
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];}"
                 : "=f"(values.x), "=f"(values.y), "=f"(values.z), "=f"(values.w)
                 : "r"(shared), "r"(rank)
                 : "memory");
    return values;
}

/* Stores to addresses that kiln_sm90a_remote gave, which a barrier of that block counts (PTX ISA, "st.async"), so that
 * no fence is needed. */
KILN_SM90A void kiln_sm90a_send_64(uint32_t remote, uint32_t barrier, uint64_t value) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(remote),
                 "l"(value), "r"(barrier)
                 : "memory");
}
KILN_SM90A void kiln_sm90a_send_v4(uint32_t remote, uint32_t barrier, uint4 value) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
                 "[%5];" ::"r"(remote),
                 "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(barrier)
                 : "memory");
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

/* Arrives at a barrier whose address is one that kiln_sm90a_remote gave, if this thread is `present`. */
KILN_SM90A void kiln_sm90a_mbarrier_arrive_at(uint32_t remote, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %1, 0; "
                 "@present mbarrier.arrive.shared::cluster.b64 _, [%0];}" ::"r"(remote),
                 "r"((uint32_t)present)
                 : "memory");
}

/* ---- Counters in global memory ---- */

/* By these the blocks of a grid tell each other what is done (PTX ISA, "Memory Consistency Model"). What all threads of
 * a block did before a barrier comes before a count that one of them makes after it, and that before what the threads
 * of another block do after a barrier that follows their own count, or their wait. */

/* Counts one more. Returns the count before. */
KILN_SM90A uint32_t kiln_sm90a_count(uint32_t *counter) {
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
}

/* Waits until the count is at least that. Only for what blocks of lower numbers count: these have begun. */
KILN_SM90A void kiln_sm90a_wait_count(const uint32_t *counter, uint32_t count) {
    uint32_t counted;
    for (;;) {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(counted) : "l"(counter) : "memory");
        if (counted >= count) return;
        __nanosleep(64);
    }
}

#endif
