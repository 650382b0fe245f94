/* dequantize_int8: y = codes * scales.
 *
 * Each thread converts up to four vectors of y. A vector has one scale, since groups begin where vectors do.
 *
 * Floor: one read of a byte and one write of an element of y at memory bandwidth, 5 bytes an element of f32, 3 of 16
 * bits; docs/kernel-report.md has the instruction counts and the time that they take. Not measured.
 * Test: build/tests/ops/dequantize_test. Bench: build/kiln bench dequantize_int8 */
#include "kernels/common/device.h"

KILN_INLINE void numbers_of(float *values, uint32_t word) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        values[i] = (float)(int8_t)(word >> 8 * i);
}

#define KILN_DEQUANTIZE_VALUE(word, place)   (float)(int8_t)((word) >> 8 * (place))
#define KILN_DEQUANTIZE_HALVES(pairs, word)  kiln_int8_halves(pairs, word)
#define KILN_DEQUANTIZE_VALUES(values, word) numbers_of(values, word)
#include "kernels/common/quantize/dequantize_gpu.h"

KILN_ENTRY(dequantize_int8, kiln_dequantize_args) {
    kiln_dequantize(&args);
}
