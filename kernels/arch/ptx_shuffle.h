/* Numbers of other threads of a warp, without moves between registers for numbers and for integers. */
#ifndef KILN_KERNELS_ARCH_PTX_SHUFFLE_H
#define KILN_KERNELS_ARCH_PTX_SHUFFLE_H

/* The value of thread ^ MASK; all threads of the warp take part. */
template <int MASK> static __device__ __forceinline__ float kiln_ptx_shfl_bfly(float value) {
    float other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(other) : "f"(value), "n"(MASK));
    return other;
}

#endif
