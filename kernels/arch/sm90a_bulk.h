/* One more raw instruction of sm_90a: a copy of adjacent bytes into shared memory (PTX ISA, "cp.async.bulk"). */
#ifndef KILN_KERNELS_ARCH_SM90A_BULK_H
#define KILN_KERNELS_ARCH_SM90A_BULK_H

#include "kernels/arch/sm90a.h"

/* Copies from global memory and counts the bytes at the barrier; addresses and `bytes` are multiples of 16. */
KILN_SM90A void kiln_sm90a_copy_bytes(uint32_t shared, const void *from, uint32_t bytes, uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

#endif
