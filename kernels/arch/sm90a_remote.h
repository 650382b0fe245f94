/* More raw instructions of sm_90a: reads of the shared memory of other blocks of a cluster. */
#ifndef KILN_KERNELS_ARCH_SM90A_REMOTE_H
#define KILN_KERNELS_ARCH_SM90A_REMOTE_H

#include "kernels/arch/sm90a.h"

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

#endif
