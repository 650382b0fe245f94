/* Raw instructions of sm_80 and later: asynchronous copies into shared memory, and matrix products by warps. */
#ifndef KILN_KERNELS_ARCH_SM80_H
#define KILN_KERNELS_ARCH_SM80_H

#include <stdint.h>

/* The address of something in shared memory, as the instructions here take it. */
static __device__ __forceinline__ uint32_t kiln_sm80_shared(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* Copies the first `bytes` bytes of 16 and clears the rest. Both addresses are 16-byte aligned. */
static __device__ __forceinline__ void kiln_sm80_cp_async(uint32_t shared, const void *global, uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}

/* Loads 16 bytes where `present`, zeros elsewhere. Volatile: the load stays before later writes. */
static __device__ __forceinline__ void kiln_sm80_load_v4(uint32_t *words, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; "
                 "mov.b32 %3, 0; @present ld.global.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "=&r"(words[0]), "=&r"(words[1]), "=&r"(words[2]), "=&r"(words[3])
                 : "l"(global), "r"((uint32_t)present));
}

static __device__ __forceinline__ void kiln_sm80_cp_async_commit(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most PENDING of this thread's committed sets of copies (PTX: cp.async groups) are pending. */
template <int PENDING> static __device__ __forceinline__ void kiln_sm80_cp_async_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Four matrices of 8 x 8 elements of 16 bits; lane i gives the address of row i % 8 of matrix i / 8. */
static __device__ __forceinline__ void kiln_sm80_ldmatrix_x4(uint32_t *words, uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
}

/* The same, each matrix transposed. */
static __device__ __forceinline__ void kiln_sm80_ldmatrix_x4_trans(uint32_t *words, uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
}

/* sums[16 x 8] += a[16 x 16] b[16 x 8]. */
static __device__ __forceinline__ void kiln_sm80_mma_f16(float *sums, const uint32_t *a, const uint32_t *b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ void kiln_sm80_mma_bf16(float *sums, const uint32_t *a, const uint32_t *b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
