/* More raw instructions of sm_90a: stores into the shared memory of blocks of a cluster, which a barrier of that block
 * counts (PTX ISA, "st.async"), so that no fence is needed. Addresses are such as kiln_sm90a_remote gave. */
#ifndef KILN_KERNELS_ARCH_SM90A_SEND_H
#define KILN_KERNELS_ARCH_SM90A_SEND_H

#include "kernels/arch/sm90a_cluster.h"

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

#endif
