/* More raw instructions of sm_80 and later: products of int8 by warps, and scales, which are 4 bytes. */
#ifndef KILN_KERNELS_ARCH_SM80_BYTES_H
#define KILN_KERNELS_ARCH_SM80_BYTES_H

#include "kernels/arch/sm80.h"

/* Copies 4 bytes, or clears them where `bytes` is 0. Both addresses are 4-byte aligned. */
static __device__ __forceinline__ void kiln_sm80_cp_async_4(uint32_t shared, const void *global, uint32_t bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}

/* Loads an f32 where `present`, 0 elsewhere. Volatile, so that the load stays before the writes that follow it. */
static __device__ __forceinline__ void kiln_sm80_load_f32(float *value, const float *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %2, 0; mov.b32 %0, 0; @present ld.global.f32 %0, [%1];}"
                 : "=&f"(*value)
                 : "l"(global), "r"((uint32_t)present));
}

/* sums[16 x 8] += a[16 x 32] b[32 x 8]. */
static __device__ __forceinline__ void kiln_sm80_mma_s8(int32_t *sums, const uint32_t *a, const uint32_t *b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
