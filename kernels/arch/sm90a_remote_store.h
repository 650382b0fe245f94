/* One more raw instruction of sm_90a: a store of one number into the shared memory of another block of a cluster. */
#ifndef KILN_KERNELS_ARCH_SM90A_REMOTE_STORE_H
#define KILN_KERNELS_ARCH_SM90A_REMOTE_STORE_H

#include "kernels/arch/sm90a_cluster.h"

/* To an address that kiln_sm90a_remote gave. */
KILN_SM90A void kiln_sm90a_store_remote(uint32_t remote, float value) {
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");
}

#endif
