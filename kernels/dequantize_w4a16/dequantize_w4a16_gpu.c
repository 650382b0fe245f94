/* dequantize_w4a16: y = q * scale + zero, with 4-bit integers q and the scale and zero of their group of k.
 *
 * Each thread converts a vector of y from its integers at a time, so that neighbouring threads store neighbouring
 * vectors; each vector reads its scale. An integer becomes f32 as the low bits of 2^23 + q + 8.
 *
 * Floor: one read of half a byte for each element, and one write of an element of y at memory bandwidth, 4.5 bytes an
 * element of f32, 2.5 of 16 bits; docs/kernel-report.md has the instruction counts and the time that they take. Not
 * measured. Test: build/tests/ops/dequantize_w4a16_test. Bench: build/kiln bench dequantize_w4a16 */
#include "kernels/common/device.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/dequantize_w4a16/dequantize_w4a16_args.h"

#if defined(__HIP__)
#include "kernels/common/code_halves.h"
#endif

#if defined(KILN_PART_f32)
typedef uint16_t codes_of_vector;
#else
typedef uint32_t codes_of_vector;
#endif

enum { AHEAD = 2 }; /* vectors whose integers and scales a thread has in flight */

typedef struct group {
    float scale, zero;
} group;

KILN_INLINE group group_of(const kiln_dequantize_w4a16_args *args, uint64_t row, uint32_t col) {
    uint64_t at = row * (uint64_t)args->scale_row_step + (col >> args->group_log2) * (uint64_t)args->scale_group_step;
    group g = {kiln_element_to_f32(((const kiln_element *)args->scales)[at]), 0.0f};
    if (args->zeros) g.zero = kiln_element_to_f32(((const kiln_element *)args->zeros)[at]);
    return g;
}

/* The weight of the integer in the low bits of a word. */
KILN_INLINE float weight_of(uint32_t word, group g) {
    return KILN_FMA(kiln_float(0x4b000000u | ((word & 15u) ^ 8u)) - 8388616.0f, g.scale, g.zero);
}

/* Those of a vector's integers. */
KILN_INLINE kiln_vector weights_of(codes_of_vector codes, group g) {
#if defined(__HIP__)
    kiln_halves pairs[KILN_VECTOR / 2];
    kiln_int4_halves(pairs, codes, KILN_VECTOR);
    return kiln_halves_products(pairs, KILN_VECTOR, g.scale, g.zero);
#else
    float values[KILN_VECTOR];
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] = weight_of((uint32_t)codes >> 4 * i, g);
    return kiln_vector_of(values);
#endif
}

KILN_ENTRY(dequantize_w4a16, kiln_dequantize_w4a16_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const uint8_t *codes = args.weights + s.row * ((uint64_t)args.shape.cols / 2) + s.start / 2;
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);
    KILN_LOOP
    for (uint32_t begin = s.first; begin < s.whole; begin += AHEAD * s.lanes) {
        codes_of_vector held[AHEAD];
        group groups[AHEAD];
        KILN_UNROLL
        for (uint32_t k = 0, vector = begin; k < AHEAD; k++, vector += s.lanes)
            if (vector < s.whole) {
                held[k] = *(const codes_of_vector *)(codes + vector * KILN_VECTOR / 2);
                groups[k] = group_of(&args, s.row, (uint32_t)s.start + vector * KILN_VECTOR);
            }
        KILN_UNROLL
        for (uint32_t k = 0, vector = begin; k < AHEAD; k++, vector += s.lanes) {
            if (vector >= s.whole) break;
            kiln_vector_store(y + vector * KILN_VECTOR, weights_of(held[k], groups[k]));
        }
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    y[i] = kiln_element_from_f32(
        weight_of((uint32_t)codes[i / 2] >> i % 2 * 4, group_of(&args, s.row, (uint32_t)s.start + i)));
}
