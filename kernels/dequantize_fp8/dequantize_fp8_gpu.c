/* dequantize_fp8: y = codes * scales.
 *
 * Each thread converts up to four vectors of y. A vector has one scale, since groups begin where vectors do.
 *
 * Floor: one read of a byte and one write of an element of y at memory bandwidth, 5 bytes an element of f32, 3 of 16
 * bits; docs/kernel-report.md has the instruction counts and the time that they take. Not measured.
 * Test: build/tests/ops/dequantize_test. Bench: build/kiln bench dequantize_fp8 */
#include "kernels/common/values.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#include "kernels/arch/sm89.h"
#endif

/* As kiln_e4m3_number (small_float_gpu.h): a shift that keeps the sign moves a code's other bits too. */
KILN_INLINE float number_at(uint32_t word, int place) {
    uint32_t moved = (uint32_t)((int32_t)(word << (24 - 8 * place)) >> 4) & 0x87f00000u;
    return (moved & 0x07f00000u) == 0x07f00000u ? kiln_float(0x7fc00000u) : kiln_float(moved) * 0x1p120f;
}

/* Those of a word's four codes: from sm_100 on by the conversion that sm_89 has too. */
KILN_INLINE void numbers_of(float *values, uint32_t word) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    uint32_t pairs[2];
    kiln_sm89_cvt_f16x2_e4m3x4(pairs, word);
    kiln_ptx_cvt_f32_f16x2(values, pairs[0]);
    kiln_ptx_cvt_f32_f16x2(values + 2, pairs[1]);
#else
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        values[i] = number_at(word, i);
#endif
}

#define KILN_DEQUANTIZE_VALUE(word, place)   number_at(word, place)
#define KILN_DEQUANTIZE_HALVES(pairs, word)  kiln_e4m3_halves(pairs, word)
#define KILN_DEQUANTIZE_VALUES(values, word) numbers_of(values, word)
#include "kernels/common/quantize/dequantize_gpu.h"

KILN_ENTRY(dequantize_fp8, kiln_dequantize_args) {
    kiln_dequantize(&args);
}
