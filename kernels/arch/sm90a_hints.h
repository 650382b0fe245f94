/* More raw instructions of sm_90a: copies by tensor maps that say how L2 is to keep what they read. */
#ifndef KILN_KERNELS_ARCH_SM90A_HINTS_H
#define KILN_KERNELS_ARCH_SM90A_HINTS_H

#include "kernels/arch/sm90a.h"

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

#endif
