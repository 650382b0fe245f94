/* More raw instructions of sm_90a: stores into the shared memory of other blocks of a cluster, and its barrier in two
 * steps. */
#ifndef KILN_KERNELS_ARCH_SM90A_CLUSTER_H
#define KILN_KERNELS_ARCH_SM90A_CLUSTER_H

#include "kernels/arch/sm90a.h"

/* The address, in the block of that rank of the cluster, of what is at the address of this block's shared memory. */
KILN_SM90A uint32_t kiln_sm90a_remote(uint32_t shared, uint32_t rank) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared), "r"(rank));
    return remote;
}

/* Stores four numbers at such an address, a multiple of 16. */
KILN_SM90A void kiln_sm90a_store_remote_v4(uint32_t remote, const float *values) {
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(remote), "f"(values[0]), "f"(values[1]),
                 "f"(values[2]), "f"(values[3])
                 : "memory");
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

#endif
