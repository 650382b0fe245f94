/* Raw instructions of sm_89 and later: conversions of E4M3, and matrix products of it by warps. The latter came with
 * PTX 8.4, which the assemblers of loader/targets.def for sm_89 and sm_90 do not accept: a source that uses them has
 *
 * KILN_TUNED_ASSEMBLER(12.4.131)   the oldest ptxas that takes it
 *
 * on a line of its own, which scripts/targets.sh reads. */
#ifndef KILN_KERNELS_ARCH_SM89_H
#define KILN_KERNELS_ARCH_SM89_H

#include <stdint.h>

#define KILN_TUNED_ASSEMBLER(version)

/* The numbers of 4 codes. */
static __device__ __forceinline__ void kiln_sm89_cvt_f32_e4m3x4(float *values, uint32_t codes) {
    asm("{.reg .b16 low, high, a, b, c, d; .reg .b32 lows, highs; mov.b32 {low, high}, %4; "
        "cvt.rn.f16x2.e4m3x2 lows, low; cvt.rn.f16x2.e4m3x2 highs, high; mov.b32 {a, b}, lows; mov.b32 {c, d}, highs; "
        "cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; cvt.f32.f16 %2, c; cvt.f32.f16 %3, d;}"
        : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
        : "r"(codes));
}

/* The numbers of 4 codes, exactly: pairs[0] of the first two, pairs[1] of the others. */
static __device__ __forceinline__ void kiln_sm89_cvt_f16x2_e4m3x4(uint32_t *pairs, uint32_t codes) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.rn.f16x2.e4m3x2 %0, low; cvt.rn.f16x2.e4m3x2 %1, high;}"
        : "=r"(pairs[0]), "=r"(pairs[1])
        : "r"(codes));
}

/* The codes of 4 numbers; magnitudes above 448 become 448. */
static __device__ __forceinline__ uint32_t kiln_sm89_cvt_e4m3x4_f32(const float *values) {
    uint32_t codes;
    asm("{.reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; "
        "mov.b32 %0, {low, high};}"
        : "=r"(codes)
        : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]));
    return codes;
}

/* The code of a number; a magnitude above 448 becomes 448. */
static __device__ __forceinline__ uint32_t kiln_sm89_cvt_e4m3_f32(float value) {
    uint32_t code;
    asm("{.reg .b16 pair; cvt.rn.satfinite.e4m3x2.f32 pair, 0f00000000, %1; cvt.u32.u16 %0, pair;}"
        : "=r"(code)
        : "f"(value));
    return code;
}

/* sums[16 x 8] += a[16 x 32] b[32 x 8]. */
static __device__ __forceinline__ void kiln_sm89_mma_e4m3(float *sums, const uint32_t *a, const uint32_t *b) {
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, "
        "%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
