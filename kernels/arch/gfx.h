/* Raw instructions of AMD's targets ("AMD Instinct MI300 Instruction Set Architecture"). */
#ifndef KILN_KERNELS_ARCH_GFX_H
#define KILN_KERNELS_ARCH_GFX_H

#include <stdbool.h>
#include <stdint.h>

/* ---- The lanes of a wave ---- */

/* A bit for each thread that takes part and for which it holds: a comparison writes it to scalar registers. */
static __attribute__((device, always_inline)) inline uint64_t kiln_gfx_ballot(bool holds) {
#if defined(__GFX9__)
    return __builtin_amdgcn_ballot_w64(holds);
#else
    return __builtin_amdgcn_ballot_w32(holds);
#endif
}

/* What the first of the lanes that take part has. */
static inline __attribute__((device, always_inline)) uint64_t kiln_gfx_first_lane(uint64_t value) {
    const uint32_t low = (uint32_t)__builtin_amdgcn_readfirstlane((int)(uint32_t)value);
    const uint32_t high = (uint32_t)__builtin_amdgcn_readfirstlane((int)(uint32_t)(value >> 32));
    return (uint64_t)high << 32 | low;
}

/* The number as it is, in scalar registers: what it is computed from is not joined with the same of single lanes. */
static inline __attribute__((device, always_inline)) uint64_t kiln_gfx_scalar(uint64_t value) {
    __asm__("" : "+s"(value));
    return value;
}

/* What a thread has whose number differs in one bit, without addresses: by data-parallel primitives (6.1.6), which an
 * addition takes as part of the instruction, and by swizzles. mask is a constant power of two, at most 16. */
static __attribute__((device, always_inline)) inline uint32_t kiln_gfx_xor(uint32_t value, uint32_t mask) {
    enum { ALL = 0xf, QUAD_1032 = 0xb1, QUAD_2301 = 0x4e, ROTATE_8 = 0x128, XOR_4 = 0x101f, XOR_16 = 0x401f };
    int bits = (int)value;
    if (mask == 1) bits = __builtin_amdgcn_mov_dpp(bits, QUAD_1032, ALL, ALL, true);
    if (mask == 2) bits = __builtin_amdgcn_mov_dpp(bits, QUAD_2301, ALL, ALL, true);
    if (mask == 4) bits = __builtin_amdgcn_ds_swizzle(bits, XOR_4);
    if (mask == 8) bits = __builtin_amdgcn_mov_dpp(bits, ROTATE_8, ALL, ALL, true);
    if (mask == 16) bits = __builtin_amdgcn_ds_swizzle(bits, XOR_16);
    return (uint32_t)bits;
}

/* What a thread in the other half of each 2 << step threads of 32 has, where all threads of a half have the same:
 * quad_perm within four, then a mirror image of eight and of sixteen, which an addition or a maximum takes as part of
 * the instruction, and a swizzle. step is a constant. */
static __attribute__((device, always_inline)) inline float kiln_gfx_of_other_half(float value, uint32_t step) {
    enum { ALL = 0xf, QUAD_1032 = 0xb1, QUAD_2301 = 0x4e, HALF_MIRROR = 0x141, MIRROR = 0x140, XOR_16 = 0x401f };
    int bits = __builtin_bit_cast(int, value);
    if (step == 0) bits = __builtin_amdgcn_mov_dpp(bits, QUAD_1032, ALL, ALL, true);
    if (step == 1) bits = __builtin_amdgcn_mov_dpp(bits, QUAD_2301, ALL, ALL, true);
    if (step == 2) bits = __builtin_amdgcn_mov_dpp(bits, HALF_MIRROR, ALL, ALL, true);
    if (step == 3) bits = __builtin_amdgcn_mov_dpp(bits, MIRROR, ALL, ALL, true);
    if (step == 4) bits = __builtin_amdgcn_ds_swizzle(bits, XOR_16);
    return __builtin_bit_cast(float, bits);
}

/* ---- A barrier ---- */

/* The barrier of the block with its shared memory alone, beside which loads from global memory stay on their way. From
 * gfx10 on a block's waves may be on two units that have caches of their own, and clang 19 does not know that a barrier
 * can wait while an exception is handled: its own barriers wait for loads as well. */
static __attribute__((device, always_inline)) inline void kiln_gfx_shared_barrier(void) {
#if defined(__GFX9__)
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#elif defined(__GFX12__)
    __asm__ volatile("s_wait_dscnt 0x0\n\ts_barrier_signal -1\n\ts_barrier_wait -1" ::: "memory");
#else
    __asm__ volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory");
#endif
}

/* ---- Sums of a product in f32 that take a half of a register as f16, or round to f16 (6.7): v_fma_mix, which gfx900
 * lacks ---- */

/* The low half of a register, or the high one, times factor, plus addend. */
static __attribute__((device, always_inline)) inline float kiln_gfx_mix_low(uint32_t halves, float factor,
                                                                            float addend) {
    float sum;
    __asm__("v_fma_mix_f32 %0, %1, %2, %3 op_sel_hi:[1,0,0]" : "=v"(sum) : "v"(halves), "v"(factor), "v"(addend));
    return sum;
}
static __attribute__((device, always_inline)) inline float kiln_gfx_mix_high(uint32_t halves, float factor,
                                                                             float addend) {
    float sum;
    __asm__("v_fma_mix_f32 %0, %1, %2, %3 op_sel:[1,0,0] op_sel_hi:[1,0,0]"
            : "=v"(sum)
            : "v"(halves), "v"(factor), "v"(addend));
    return sum;
}

/* The same of the low halves of two registers, or of their high halves, each rounded to a half of the result. */
static __attribute__((device, always_inline)) inline uint32_t kiln_gfx_mix_lows(uint32_t first, uint32_t second,
                                                                                float factor, float addend) {
    uint32_t sums;
    __asm__("v_fma_mixlo_f16 %0, %1, %2, %3 op_sel_hi:[1,0,0]" : "=v"(sums) : "v"(first), "v"(factor), "v"(addend));
    __asm__("v_fma_mixhi_f16 %0, %1, %2, %3 op_sel_hi:[1,0,0]" : "+v"(sums) : "v"(second), "v"(factor), "v"(addend));
    return sums;
}
static __attribute__((device, always_inline)) inline uint32_t kiln_gfx_mix_highs(uint32_t first, uint32_t second,
                                                                                 float factor, float addend) {
    uint32_t sums;
    __asm__("v_fma_mixlo_f16 %0, %1, %2, %3 op_sel:[1,0,0] op_sel_hi:[1,0,0]"
            : "=v"(sums)
            : "v"(first), "v"(factor), "v"(addend));
    __asm__("v_fma_mixhi_f16 %0, %1, %2, %3 op_sel:[1,0,0] op_sel_hi:[1,0,0]"
            : "+v"(sums)
            : "v"(second), "v"(factor), "v"(addend));
    return sums;
}

/* ---- Two integers of 16 bits at once, by an instruction that the compiler does not choose ---- */

/* In each half of a word twice the number and an addend, which is the same for both, without what is beyond 16 bits. */
static __attribute__((device, always_inline)) inline uint32_t kiln_gfx_twice_plus(uint32_t pair, uint32_t addend) {
    uint32_t sum;
    __asm__("v_pk_mad_u16 %0, %1, 2, %2 op_sel_hi:[1,0,0]" : "=v"(sum) : "v"(pair), "s"(addend));
    return sum;
}

#endif
