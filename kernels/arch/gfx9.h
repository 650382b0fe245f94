/* A raw instruction of AMD's gfx9 ("AMD Instinct MI300 Instruction Set Architecture", VOP3: V_MAX3_F32): its compiler
 * would quieten each number first, with an instruction. */
#ifndef KILN_KERNELS_ARCH_GFX9_H
#define KILN_KERNELS_ARCH_GFX9_H

/* The greatest of three; of numbers and NaN one of them. */
static __attribute__((device, always_inline)) inline float kiln_gfx9_greatest(float a, float b, float c) {
    float greatest;
    __asm__("v_max3_f32 %0, %1, %2, %3" : "=v"(greatest) : "v"(a), "v"(b), "v"(c));
    return greatest;
}

#endif
