/* A raw PTX instruction that brings a line into L2. */
#ifndef KILN_KERNELS_ARCH_PTX_PREFETCH_H
#define KILN_KERNELS_ARCH_PTX_PREFETCH_H

static __device__ __forceinline__ void kiln_ptx_prefetch_l2(const void *global) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

#endif
