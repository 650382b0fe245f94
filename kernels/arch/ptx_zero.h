/* A zero that is made in the branch that wants it: the compiler would make it for every thread before the branch. */
#ifndef KILN_KERNELS_ARCH_PTX_ZERO_H
#define KILN_KERNELS_ARCH_PTX_ZERO_H

#include <stdint.h>

static __device__ __forceinline__ uint32_t kiln_ptx_zero(void) {
    uint32_t zero;
    asm volatile("mov.b32 %0, 0;" : "=r"(zero));
    return zero;
}

#endif
