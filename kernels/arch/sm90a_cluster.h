/* More raw instructions of sm_90a: stores into the shared memory of other blocks of a cluster. */
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

#endif
