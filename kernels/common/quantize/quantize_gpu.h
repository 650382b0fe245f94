/* The kernel of quantize_fp8 and quantize_int8 on devices. The includer defines KILN_QUANTIZE_EIGHT(values, bound), the
 * bytes of eight numbers, and its entry point over kiln_quantize. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/math/minimum.h"
#include "kernels/common/math/reciprocal_step.h"
#include "kernels/common/quantize/quantize_scale.h"
#include "kernels/common/reduce/greatest_magnitude.h"
#include "kernels/common/reduce/reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"

/* The codes of a vector of elements. */
typedef struct kiln_quantize_codes {
    uint32_t words[KILN_QUADS];
} __attribute__((aligned(KILN_VECTOR))) kiln_quantize_codes;

/* The codes of a vector's values, which become their products with the factor. */
KILN_INLINE void kiln_quantize_put(uint8_t *codes, const float *values, float factor, float smax) {
    kiln_quantize_codes vector;
    float products[8] = {0.0f};
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        products[i] = values[i] * factor;
    kiln_eight_bytes bytes = KILN_QUANTIZE_EIGHT(products, smax);
    KILN_UNROLL
    for (int word = 0; word < KILN_QUADS; word++)
        vector.words[word] = bytes.words[word];
    *(kiln_quantize_codes *)codes = vector;
}

/* kiln_quantize_scale, and 1 over it, without divisions where they have the same results: kiln_scale_quickly
 * (codes_sm90a.h) says why. */
KILN_INLINE float kiln_quantize_scale_of(const kiln_quantize_args *args, float value, float *factor) {
    const float start = kiln_fast_reciprocal(args->smax), near = value * start;
    const float scale = KILN_FMA(KILN_FMA(-args->smax, near, value), start, near);
    if (args->source <= KILN_QUANTIZE_COMPUTED && value >= 0x1p-64f && value <= 0x1p64f &&
        !(kiln_bits(args->smax) << 20) && ~kiln_bits(scale) << 9) {
        *factor = kiln_reciprocal_step(scale, kiln_fast_reciprocal(scale));
        return scale;
    }
    const float divided = kiln_quantize_scale(args, value);
    *factor = 1.0f / divided;
    return divided;
}

/* Rows from `begin` up to `end` of a tile, which have one scale, or one for each of at most one row of a thread, or
 * scales that are known beforehand. The first vector of a thread stays in registers between the two passes; the others
 * come from a cache. */
KILN_INLINE void kiln_quantize_rows(const kiln_quantize_args *args, kiln_span s, uint64_t begin, uint64_t end,
                                    float *exchange) {
    uint32_t lanes_log2 = args->shape.lanes_log2, step = KILN_BLOCK >> lanes_log2;
    uint64_t first = begin + (kiln_thread() >> lanes_log2);
    s.row = first;
    const kiln_element *x = kiln_span_of_input(s, args->x, args->x_stride);
    kiln_vector kept = {{0}};
    if (first < end && s.first < s.whole) kept = kiln_vector_load(x + s.first * KILN_VECTOR);

    float value = 0.0f, values[KILN_VECTOR];
    if (args->source <= KILN_QUANTIZE_COMPUTED) { /* by all threads, including those without a row */
        kiln_greatest_magnitude greatest = kiln_greatest_magnitude_none();
        KILN_LOOP
        for (; s.row < end; s.row += step) {
            x = kiln_span_of_input(s, args->x, args->x_stride);
            KILN_LOOP
            for (uint32_t vector = s.first; vector < s.whole; vector += s.lanes) {
                kiln_vector held = kept;
                if (s.row != first || vector != s.first) held = kiln_vector_load(x + vector * KILN_VECTOR);
                kiln_greatest_magnitude_take(&greatest, held);
            }
            KILN_LOOP
            KILN_FOR_REST(s, i)
            kiln_greatest_magnitude_take_one(&greatest, x[i]);
        }
        value = kiln_reduce(kiln_greatest_magnitude_value(greatest), args->scale_lanes_log2, exchange, KILN_REDUCE_MAX);
    }
    KILN_LOOP
    for (s.row = first; s.row < end; s.row += step) {
        uint64_t at = kiln_quantize_scale_at(args, s.row, kiln_tile());
        if (args->source > KILN_QUANTIZE_COMPUTED) value = args->values[at];
        float factor;
        const float scale = kiln_quantize_scale_of(args, value, &factor);
        x = kiln_span_of_input(s, args->x, args->x_stride);
        uint8_t *codes = (uint8_t *)args->codes + s.row * (uint64_t)args->codes_stride + s.start;
        KILN_LOOP
        for (uint32_t vector = s.first; vector < s.whole; vector += s.lanes) {
            kiln_vector held = kept;
            if (s.row != first || vector != s.first) held = kiln_vector_load(x + vector * KILN_VECTOR);
            kiln_vector_values(values, held);
            kiln_quantize_put(codes + vector * KILN_VECTOR, values, factor, args->smax);
        }
        KILN_LOOP
        KILN_FOR_REST(s, i) {
            float one[8] = {kiln_element_to_f32(x[i]) * factor};
            codes[i] = (uint8_t)KILN_QUANTIZE_EIGHT(one, args->smax).words[0];
        }
        if (args->scales && s.first == 0 && kiln_quantize_is_first(args, s.row, kiln_tile())) args->scales[at] = scale;
    }
}

/* A block's tile of its rows. */
KILN_INLINE void kiln_quantize(const kiln_quantize_args *args, float *exchange) {
    kiln_span s = kiln_span_of(&args->shape);
    uint64_t rows = (uint64_t)args->shape.rows, first = kiln_block() * args->block_rows;
    if (first >= rows) return; /* the whole block */
    uint64_t end = first + args->block_rows < rows ? first + args->block_rows : rows;
    uint64_t left = (uint64_t)args->shape.cols - s.start;
    s.count = left < args->shape.tile ? (uint32_t)left : args->shape.tile;
    s.whole = args->shape.wide ? s.count / KILN_VECTOR : 0;
    const bool shared = args->scale_lanes_log2 > args->shape.lanes_log2; /* by all rows of the block */
    const uint32_t step = shared ? args->block_rows : KILN_BLOCK >> args->shape.lanes_log2;
    KILN_LOOP
    for (; first < end; first += step)
        kiln_quantize_rows(args, s, first, first + step < end ? first + step : end, exchange);
}

#endif
