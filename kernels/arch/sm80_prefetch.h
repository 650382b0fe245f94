/* More raw instructions of sm_80 and later: a copy that brings what is beside it into L2. PTX 7.4. */
#ifndef KILN_KERNELS_ARCH_SM80_PREFETCH_H
#define KILN_KERNELS_ARCH_SM80_PREFETCH_H

#include <stdint.h>

/* kiln_sm80_cp_async, with a whole line of 128 bytes for L2. */
static __device__ __forceinline__ void kiln_sm80_cp_async_128(uint32_t shared, const void *global, uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes)
                 : "memory");
}

#endif
