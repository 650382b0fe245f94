/* More raw instructions of sm_90a: the shared memory of other blocks of a cluster, by pointers. */
#ifndef KILN_KERNELS_ARCH_SM90A_SHARED_H
#define KILN_KERNELS_ARCH_SM90A_SHARED_H

#include "kernels/arch/sm90a.h"

/* Where the block of that rank of the cluster has what this block has at the pointer, which is to shared memory. */
template <class type> KILN_SM90A type *kiln_sm90a_shared_of(type *pointer, uint32_t rank) {
    uint64_t mapped;
    asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(pointer), "r"(rank));
    return (type *)mapped;
}

#endif
