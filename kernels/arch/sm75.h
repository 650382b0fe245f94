/* Raw instructions of sm_75 in place of those that only sm_80 and later have (sm80.h): products of half the depth or
 * less, and loads and stores where there are no asynchronous copies. What sm80.h has of ldmatrix and of shared memory,
 * sm_75 knows as well. */
#ifndef KILN_KERNELS_ARCH_SM75_H
#define KILN_KERNELS_ARCH_SM75_H

#include "kernels/arch/sm80.h"

/* Stores a number to shared memory. */
static __device__ __forceinline__ void kiln_sm75_store_f32(uint32_t shared, float value) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(shared), "f"(value) : "memory");
}

/* Loads a byte, or two. Volatile: the load stays before later writes. */
static __device__ __forceinline__ uint32_t kiln_sm75_load_u8(const void *global) {
    uint32_t byte;
    asm volatile("ld.global.u8 %0, [%1];" : "=r"(byte) : "l"(global));
    return byte;
}

static __device__ __forceinline__ uint32_t kiln_sm75_load_u16(const void *global) {
    uint16_t half;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(half) : "l"(global));
    return half;
}

/* sums[16 x 8] += a[16 x 16] b[16 x 8], as kiln_sm80_mma_f16 has them, by two products of half that depth. */
static __device__ __forceinline__ void kiln_sm75_mma_f16(float *sums, const uint32_t *a, const uint32_t *b) {
#pragma unroll
    for (int half = 0; half < 2; half++)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
}

/* sums[16 x 8] += a[16 x 32] b[32 x 8] of int8, as kiln_sm80_mma_s8 has them, by four products of half the rows and
 * half the depth. */
static __device__ __forceinline__ void kiln_sm75_mma_s8(int32_t *sums, const uint32_t *a, const uint32_t *b) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(sums[i % 2 * 2]), "+r"(sums[i % 2 * 2 + 1])
            : "r"(a[i]), "r"(b[i / 2]));
}

#endif
