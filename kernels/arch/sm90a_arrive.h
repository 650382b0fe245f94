/* One more raw instruction of sm_90a: arrivals at barriers of other blocks of a cluster. */
#ifndef KILN_KERNELS_ARCH_SM90A_ARRIVE_H
#define KILN_KERNELS_ARCH_SM90A_ARRIVE_H

#include "kernels/arch/sm90a.h"

/* Arrives at a barrier whose address is one that kiln_sm90a_remote gave, if this thread is `present`. */
KILN_SM90A void kiln_sm90a_mbarrier_arrive_at(uint32_t remote, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %1, 0; "
                 "@present mbarrier.arrive.shared::cluster.b64 _, [%0];}" ::"r"(remote),
                 "r"((uint32_t)present)
                 : "memory");
}

#endif
