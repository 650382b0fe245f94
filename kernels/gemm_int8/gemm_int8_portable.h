/* gemm_int8's kernels for any chip and any alignment: gemm_int8_gpu.c describes them. */
#ifndef KILN_KERNELS_GEMM_INT8_PORTABLE_H
#define KILN_KERNELS_GEMM_INT8_PORTABLE_H

#include "kernels/common/math/dot.h"

#define CODE_WORD 4
typedef int32_t code_sum;
typedef uint32_t code_word;

KILN_INLINE void codes_take(code_word *words, uint32_t codes) {
    words[0] = codes;
}
KILN_INLINE code_sum codes_multiply(code_word a, code_word b, code_sum sum) {
    return kiln_dot4(a, b, sum);
}
KILN_INLINE uint32_t codes_bits(code_sum sum) {
    return (uint32_t)sum;
}
KILN_INLINE float codes_value(uint32_t bits) {
    return (float)(int32_t)bits;
}

#include "kernels/common/matmul/w8a8_gpu.h"

KILN_ENTRY(gemm_int8_tiles, kiln_w8a8_args) {
    KILN_SHARED code_word a_tile[W8A8_PIECES * W8A8_WORDS][W8A8_TILE];
    KILN_SHARED code_word b_tile[W8A8_PIECES * W8A8_WORDS][W8A8_TILE];
    w8a8_tiles(&args, a_tile, b_tile);
}

KILN_ENTRY(gemm_int8_rows, kiln_w8a8_args) {
    w8a8_rows(&args);
}

KILN_ENTRY(gemm_int8_join, kiln_w8a8_args) {
    w8a8_join(&args);
}

#endif
