/* gemm_fp8's kernels for any chip and any alignment: gemm_fp8_gpu.c describes them. */
#ifndef KILN_KERNELS_GEMM_FP8_PORTABLE_H
#define KILN_KERNELS_GEMM_FP8_PORTABLE_H

#include "kernels/common/device.h"
#include "kernels/common/formats/float8.h"
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 890
#include "kernels/arch/sm89.h"
#endif

#define CODE_WORD 1
typedef float code_sum;
typedef float code_word;

KILN_INLINE void codes_take(code_word *words, uint32_t codes) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 890
    kiln_sm89_cvt_f32_e4m3x4(words, codes);
#else
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        words[i] = kiln_e4m3_value((uint8_t)(codes >> 8 * i));
#endif
}
KILN_INLINE code_sum codes_multiply(code_word a, code_word b, code_sum sum) {
    return KILN_FMA(a, b, sum);
}
KILN_INLINE uint32_t codes_bits(code_sum sum) {
    return kiln_bits(sum);
}
KILN_INLINE float codes_value(uint32_t bits) {
    return kiln_float(bits);
}

#include "kernels/common/matmul/w8a8_gpu.h"

KILN_ENTRY(gemm_fp8_tiles, kiln_w8a8_args) {
    KILN_SHARED code_word a_tile[W8A8_PIECES * W8A8_WORDS][W8A8_TILE];
    KILN_SHARED code_word b_tile[W8A8_PIECES * W8A8_WORDS][W8A8_TILE];
    w8a8_tiles(&args, a_tile, b_tile);
}

KILN_ENTRY(gemm_fp8_rows, kiln_w8a8_args) {
    w8a8_rows(&args);
}

KILN_ENTRY(gemm_fp8_join, kiln_w8a8_args) {
    w8a8_join(&args);
}

#endif
