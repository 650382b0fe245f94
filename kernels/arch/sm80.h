/* Raw instructions of sm_80 and later: asynchronous copies into shared memory, loads, matrix products by warps, and
 * arithmetic on pairs of 16-bit numbers. */
#ifndef KILN_KERNELS_ARCH_SM80_H
#define KILN_KERNELS_ARCH_SM80_H

#include <stdint.h>

/* The address of something in shared memory, as the instructions here take it. */
static __device__ __forceinline__ uint32_t kiln_sm80_shared(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* ---- Asynchronous copies into shared memory: cp.async ---- */

/* Copies the first `bytes` bytes of 16 and clears the rest. Both addresses are 16-byte aligned. */
static __device__ __forceinline__ void kiln_sm80_cp_async(uint32_t shared, const void *global, uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}

/* kiln_sm80_cp_async, with a whole line of 128 bytes for L2. PTX 7.4. */
static __device__ __forceinline__ void kiln_sm80_cp_async_128(uint32_t shared, const void *global, uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes)
                 : "memory");
}

/* Copies 4 bytes, or clears them where `bytes` is 0. Both addresses are 4-byte aligned. */
static __device__ __forceinline__ void kiln_sm80_cp_async_4(uint32_t shared, const void *global, uint32_t bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void kiln_sm80_cp_async_commit(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most PENDING of this thread's committed sets of copies (PTX: cp.async groups) are pending. */
template <int PENDING> static __device__ __forceinline__ void kiln_sm80_cp_async_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* ---- Loads and stores. Volatile: loads stay before later writes. ---- */

/* Loads 16 bytes where `present`, zeros elsewhere. */
static __device__ __forceinline__ void kiln_sm80_load_v4(uint32_t *words, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; "
                 "mov.b32 %3, 0; @present ld.global.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "=&r"(words[0]), "=&r"(words[1]), "=&r"(words[2]), "=&r"(words[3])
                 : "l"(global), "r"((uint32_t)present));
}

/* kiln_sm80_load_v4 of what is read once: the first-level cache keeps none of it, and L2 fetches 256 bytes. PTX 7.4. */
static __device__ __forceinline__ void kiln_sm80_load_v4_once(uint32_t *words, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; "
                 "mov.b32 %3, 0; @present ld.global.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "=&r"(words[0]), "=&r"(words[1]), "=&r"(words[2]), "=&r"(words[3])
                 : "l"(global), "r"((uint32_t)present));
}

/* Loads an f32 where `present`, 0 elsewhere. */
static __device__ __forceinline__ void kiln_sm80_load_f32(float *value, const float *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %2, 0; mov.b32 %0, 0; @present ld.global.f32 %0, [%1];}"
                 : "=&f"(*value)
                 : "l"(global), "r"((uint32_t)present));
}

/* Loads 2 bytes where `present`, zeros elsewhere. */
static __device__ __forceinline__ uint32_t kiln_sm80_load_u16(const void *global, bool present) {
    uint16_t half;
    asm volatile("{.reg .pred present; setp.ne.u32 present, %2, 0; mov.b16 %0, 0; @present ld.global.u16 %0, [%1];}"
                 : "=&h"(half)
                 : "l"(global), "r"((uint32_t)present));
    return half;
}

/* Loads into registers that keep what they hold where there is nothing to load. */
static __device__ __forceinline__ void kiln_sm80_refill_v4(uint32_t *words, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %5, 0; @present ld.global.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3])
                 : "l"(global), "r"((uint32_t)present));
}

/* The same of what is read once: the first-level cache keeps none of it, and L2 fetches 256 bytes. PTX 7.4. */
static __device__ __forceinline__ void kiln_sm80_refill_v4_once(uint32_t *words, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %5, 0; "
                 "@present ld.global.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3])
                 : "l"(global), "r"((uint32_t)present));
}

static __device__ __forceinline__ void kiln_sm80_refill_u16(uint16_t *half, const void *global, bool present) {
    asm volatile("{.reg .pred present; setp.ne.u32 present, %2, 0; @present ld.global.u16 %0, [%1];}"
                 : "+h"(*half)
                 : "l"(global), "r"((uint32_t)present));
}

/* Asks L2, which is coherent, for a line of 128 bytes. */
static __device__ __forceinline__ void kiln_sm80_prefetch(const void *global) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global) : "memory");
}

/* Loads 16 bytes of shared memory, or 8, so aligned. */
static __device__ __forceinline__ void kiln_sm80_shared_load_v4(uint32_t *words, uint32_t shared) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
}
static __device__ __forceinline__ void kiln_sm80_shared_load_v2(uint32_t *words, uint32_t shared) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(shared) : "memory");
}

/* Stores 16 bytes to shared memory, 16-byte aligned. */
static __device__ __forceinline__ void kiln_sm80_shared_store_v4(uint32_t shared, const uint32_t *words) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
}

/* ---- Matrix products by warps: ldmatrix, mma ---- */

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

/* A matrix of 8 x 8 elements of 16 bits, of which each lane has two neighbours of a row, transposed. */
static __device__ __forceinline__ uint32_t kiln_sm80_movmatrix_trans(uint32_t word) {
    uint32_t result;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
    return result;
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

/* sums[16 x 8] += a[16 x 32] b[32 x 8], of int8. */
static __device__ __forceinline__ void kiln_sm80_mma_s8(int32_t *sums, const uint32_t *a, const uint32_t *b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* An f32 with 10 bits of fraction: the nearest, half away from zero; all as their bits. */
static __device__ __forceinline__ uint32_t kiln_sm80_cvt_rna_tf32(uint32_t value) {
    uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(value)));
    return rounded;
}

/* sums[16 x 8] += a[16 x 8] b[8 x 8], of TF32. */
static __device__ __forceinline__ void kiln_sm80_mma_tf32(float *sums, const uint32_t *a, const uint32_t *b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* ---- Two numbers of 16 bits in a word ---- */

/* a * b + c with one rounding. */
static __device__ __forceinline__ uint32_t kiln_sm80_fma_f16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
static __device__ __forceinline__ uint32_t kiln_sm80_fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* a * b. */
static __device__ __forceinline__ uint32_t kiln_sm80_mul_f16x2(uint32_t a, uint32_t b) {
    uint32_t product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

/* In each half the greater number; the other operand's if one is NaN. */
static __device__ __forceinline__ uint32_t kiln_sm80_max_f16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.f16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}
static __device__ __forceinline__ uint32_t kiln_sm80_max_bf16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}

/* In each half the greater number; NaN if one is. */
static __device__ __forceinline__ uint32_t kiln_sm80_greater_or_nan_f16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}
static __device__ __forceinline__ uint32_t kiln_sm80_greater_or_nan_bf16x2(uint32_t a, uint32_t b) {
    uint32_t greater;
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
    return greater;
}

/* ---- Numbers of which NaN is the greatest and the least ---- */

/* The greater and the lesser number; NaN if one is. */
static __device__ __forceinline__ float kiln_sm80_greater_or_nan_f32(float a, float b) {
    float greater;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(greater) : "f"(a), "f"(b));
    return greater;
}
static __device__ __forceinline__ float kiln_sm80_lesser_or_nan_f32(float a, float b) {
    float lesser;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(lesser) : "f"(a), "f"(b));
    return lesser;
}

#endif
