/* Sums of a product in f32 on AMD that take a half of a register as f16, or round to f16 ("AMD Instinct MI300
 * Instruction Set Architecture", 6.7: packed math): v_fma_mix, which gfx900 lacks. */
#ifndef KILN_KERNELS_ARCH_GFX_MIX_H
#define KILN_KERNELS_ARCH_GFX_MIX_H

#include <stdint.h>

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

#endif
