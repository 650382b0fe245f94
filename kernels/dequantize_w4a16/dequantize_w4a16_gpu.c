/* dequantize_w4a16: y = q * scale + zero, with 4-bit integers q and the scale and zero of their group of k.
 *
 * Each thread converts up to four vectors of y, whose integers and scales it asks for at first; neighbouring threads
 * store neighbouring vectors. An integer becomes f16 as the low bits of 1024 + q + 8, or of 64 + q + 8 a place higher,
 * two at a time.
 *
 * Floor: one read of half a byte for each element, and one write of an element of y at memory bandwidth, 4.5 bytes an
 * element of f32, 2.5 of 16 bits; docs/kernel-report.md has the instruction counts and the time that they take. Not
 * measured. Test: build/tests/ops/dequantize_w4a16_test. Bench: build/kiln bench dequantize_w4a16 */
#include "kernels/common/device.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/dequantize_w4a16/dequantize_w4a16_args.h"

#if defined(__HIP__)
#include "kernels/common/formats/code_halves.h"
#else
#include "kernels/arch/ptx.h"
#endif

/* Whether numbers of 16 bits are multiplied as they are. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && !defined(KILN_PART_f32)
#include "kernels/arch/sm100.h"
#define MIXED 1
#else
#define MIXED 0
#endif

#if defined(KILN_PART_f32)
typedef uint16_t codes_of_vector;
#else
typedef uint32_t codes_of_vector;
#endif

typedef struct group {
    kiln_element element; /* scale, as it was read */
    float scale, zero;
} group;

KILN_INLINE group group_of(const kiln_dequantize_w4a16_args *args, uint64_t row, uint32_t col) {
    uint64_t at = row * (uint64_t)args->scale_row_step + (col >> args->group_log2) * (uint64_t)args->scale_group_step;
    const kiln_element element = ((const kiln_element *)args->scales)[at];
    group g = {element, kiln_element_to_f32(element), 0.0f};
    if (args->zeros) g.zero = kiln_element_to_f32(((const kiln_element *)args->zeros)[at]);
    return g;
}

/* The weight of the integer in the low bits of a word. */
KILN_INLINE float weight_of(uint32_t word, group g) {
    return KILN_FMA(kiln_float(0x4b000000u | ((word & 15u) ^ 8u)) - 8388616.0f, g.scale, g.zero);
}

/* Two of a word's integers, from the lowest bits of its halves on, or from the next four, times the scale plus zero. */
#if MIXED
KILN_INLINE void two_weights(float *values, uint32_t word, bool highs, group g) {
#if defined(KILN_PART_f16)
    kiln_sm100_scaled_f16x2(values, highs ? kiln_ptx_int4_highs(word) : kiln_ptx_int4_lows(word), g.element, g.zero);
#else
    kiln_sm100_scaled_bf16x2(values, kiln_sm100_int4_bf16x2(highs ? word >> 4 : word), g.element, g.zero);
#endif
}
#elif defined(__CUDACC__)
KILN_INLINE void two_weights(float *values, uint32_t word, bool highs, group g) {
    kiln_ptx_cvt_f32_f16x2(values, highs ? kiln_ptx_int4_highs(word) : kiln_ptx_int4_lows(word));
    values[0] = KILN_FMA(values[0], g.scale, g.zero);
    values[1] = KILN_FMA(values[1], g.scale, g.zero);
}
#endif

/* Those of a vector's integers. */
KILN_INLINE kiln_vector weights_of(codes_of_vector codes, group g) {
#if defined(__HIP__)
    kiln_halves pairs[KILN_VECTOR / 2];
    kiln_int4_halves(pairs, codes, KILN_VECTOR);
    return kiln_halves_products(pairs, KILN_VECTOR, g.scale, g.zero);
#else
    uint32_t biased = codes ^ (KILN_VECTOR == 4 ? 0x8888u : 0x88888888u);
    if (KILN_VECTOR == 4) biased |= biased << 8;
    float values[KILN_VECTOR];
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR / 2; i++) {
        float pair[2];
        two_weights(pair, biased >> (i & 2) * 4, i & 1, g);
        values[i] = pair[0];
        values[i + KILN_VECTOR / 2] = pair[1];
    }
    return kiln_vector_of(values);
#endif
}

KILN_ENTRY(dequantize_w4a16, kiln_dequantize_w4a16_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const uint8_t *codes = args.weights + s.row * ((uint64_t)args.shape.cols / 2) + s.start / 2;
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);
    codes_of_vector held[KILN_THREAD_VECTORS];
    group groups[KILN_THREAD_VECTORS];
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < KILN_THREAD_VECTORS; k++, vector += s.lanes)
        if (vector < s.whole) {
            held[k] = *(const codes_of_vector *)(codes + vector * KILN_VECTOR / 2);
            groups[k] = group_of(&args, s.row, (uint32_t)s.start + vector * KILN_VECTOR);
        }
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < KILN_THREAD_VECTORS; k++, vector += s.lanes) {
        if (vector >= s.whole) break;
        kiln_vector_store(y + vector * KILN_VECTOR, weights_of(held[k], groups[k]));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    y[i] = kiln_element_from_f32(
        weight_of((uint32_t)codes[i / 2] >> i % 2 * 4, group_of(&args, s.row, (uint32_t)s.start + i)));
}
