/* quantize_fp8 and quantize_int8 where x's columns are not adjacent, for blocks that have one whole tile, each of whose
 * lines has a computed scale: groups of 128 columns, above all. After one barrier the threads that share a line find
 * its scale by themselves, keep their vectors meanwhile, and know that no product is NaN or beyond the code's greatest
 * number, but in warps that have infinities, NaN or a magnitude that is far from 1.
 *
 * The includer defines KILN_QUANTIZE_MOST, the code's greatest number, KILN_QUANTIZE_FINITE(products), the codes of
 * four finite numbers of which none is beyond that one by more than rounding, and KILN_QUANTIZE_UNIT, what these are
 * multiplied by beforehand. Included after quantize_transposed_gpu.h. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_TILE_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_TILE_H

#include "kernels/common/device.h"
#include "kernels/common/math/float_bits.h"
#include "kernels/common/math/reciprocal_step.h"
#include "kernels/common/quantize/quantize_transposed_gpu.h"
#include "kernels/common/reduce/greatest_or_nan.h"
#include "kernels/common/reduce/subgroup_any.h"

/* kiln_of_other_half for bits. */
KILN_INLINE uint32_t kiln_bits_of_other_half(uint32_t bits, uint32_t step) {
#if defined(__CUDACC__)
    return __shfl_xor_sync(0xffffffffu, bits, 1 << step);
#else
    return kiln_bits(kiln_of_other_half(kiln_float(bits), step));
#endif
}

/* The products of a vector's elements. */
KILN_INLINE void kiln_vector_scaled(float *values, kiln_vector vector, float factor) {
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i += 2) {
        const kiln_two two = kiln_two_mul(kiln_two_of(values[i], values[i + 1]), kiln_two_of(factor, factor));
        values[i] = two.x;
        values[i + 1] = two.y;
    }
}

/* kiln_int8_word (code_words.h) with sums that stay f32, which NVIDIA's compiler would copy as integers. */
KILN_INLINE uint32_t kiln_int8_finite(const float *values) {
    float sums[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        sums[i] = values[i] + 0x1.8p23f;
    return kiln_float_bytes(sums, 1, 0);
}

/* Stores the codes of a vector of finite elements over the scale of their own. */
KILN_INLINE void kiln_quantize_put_finite(uint8_t *codes, kiln_vector vector, float factor) {
    float values[KILN_VECTOR];
    kiln_quantize_codes bytes;
    kiln_vector_scaled(values, vector, factor);
    KILN_UNROLL
    for (int word = 0; word < KILN_QUADS; word++)
        bytes.words[word] = KILN_QUANTIZE_FINITE(values + 4 * word);
    *(kiln_quantize_codes *)codes = bytes;
}

/* The codes of a thread's share of its line, whatever the elements are. place and own: of its first vector. codes: of
 * the line. Returns the scale. */
KILN_INLINE float kiln_quantize_line(const kiln_quantize_args *q, const kiln_vector *tile, uint32_t place, uint32_t own,
                                     uint8_t *codes) {
    kiln_greatest_magnitude magnitude = kiln_greatest_magnitude_none();
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_LINE; i += KILN_LINE_THREADS)
        kiln_greatest_magnitude_take(&magnitude, tile[place ^ i]);
    const float greatest =
        kiln_subgroup_reduce(kiln_greatest_magnitude_value(magnitude), KILN_LINE_THREADS_LOG2, KILN_REDUCE_MAX);
    const float scale = kiln_quantize_scale(q, greatest), factor = 1.0f / scale;
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_LINE; i += KILN_LINE_THREADS) {
        float values[8] = {0.0f};
        kiln_quantize_codes words;
        kiln_vector_scaled(values, tile[place ^ i], factor);
        const kiln_eight_bytes bytes = KILN_QUANTIZE_EIGHT(values, KILN_QUANTIZE_MOST);
        KILN_UNROLL
        for (int word = 0; word < KILN_QUADS; word++)
            words.words[word] = bytes.words[word];
        *(kiln_quantize_codes *)(codes + (own ^ i) * KILN_VECTOR) = words;
    }
    return scale;
}

/* Returns whether it did the block's tile, which it does if it is a whole one. tile: shared memory. */
KILN_INLINE bool kiln_quantize_transposed_tile(const kiln_quantize_transposed_args *args, kiln_vector *tile) {
    enum { ROWS = KILN_TRANSPOSED_LINES };
    static_assert(KILN_LINE_EACH == 4 && 2 * KILN_LINE_THREADS >= 8, "the bits of places that lines change are lower");
    const kiln_quantize_args *q = &args->quantize;
    kiln_transposed t = args->x;
    t.rows_log2 = KILN_TRANSPOSED_LINES_LOG2; /* known to the compiler */
    const uint64_t first = kiln_block() * ROWS;
    if (first + ROWS > (uint64_t)args->whole) return false;

    const uint64_t col = (uint64_t)kiln_tile() * KILN_TRANSPOSED_COLS;
    kiln_transposed_load_whole(&t, first, col, tile);
    kiln_barrier();

    kiln_vector vectors[KILN_LINE_EACH];
    const uint32_t line = kiln_thread() / KILN_LINE_THREADS, own = kiln_transposed_own(line);
    const uint32_t place = kiln_transposed_place(&t, line, own), second = place ^ KILN_LINE_THREADS;
    KILN_UNROLL
    for (int i = 0; i < KILN_LINE_EACH; i++)
        vectors[i] = tile[(i % 2 ? second : place) + i / 2 * 2 * KILN_LINE_THREADS];
    kiln_greatest_or_nan magnitude = kiln_greatest_or_nan_of(vectors[0]);
    KILN_UNROLL
    for (int i = 1; i < KILN_LINE_EACH; i++)
        kiln_greatest_or_nan_take(&magnitude, vectors[i]);
    uint32_t bits = kiln_greatest_or_nan_bits(magnitude);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_LINE_THREADS_LOG2; i++) {
        const uint32_t other = kiln_bits_of_other_half(bits, i);
        bits = bits > other ? bits : other;
    }

    /* kiln_quantize_scale, and 1 over it: kiln_scale_quickly (codes_sm90a.h) says why. */
    const float greatest = kiln_float(bits), start = 1.0f / KILN_QUANTIZE_MOST, near = greatest * start;
    float scale = KILN_FMA(KILN_FMA(-KILN_QUANTIZE_MOST, near, greatest), start, near);
    const float factor = kiln_reciprocal_step(scale, kiln_fast_reciprocal(scale));
    const bool usual = bits - kiln_bits(0x1p-64f) <= kiln_bits(0x1p64f) - kiln_bits(0x1p-64f) && ~kiln_bits(scale) << 9;
    uint8_t *codes = (uint8_t *)q->codes + first * (uint64_t)q->codes_stride + col;
    codes += line * (uint64_t)q->codes_stride;
    if (kiln_subgroup_any(!usual)) {
        scale = kiln_quantize_line(q, tile, place, own, codes);
    } else {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_LINE_EACH; i++) {
            uint8_t *target = codes + (own ^ i % 2 * KILN_LINE_THREADS) * KILN_VECTOR;
            kiln_quantize_put_finite(target + i / 2 * 2 * KILN_LINE_THREADS * KILN_VECTOR, vectors[i],
                                     factor * KILN_QUANTIZE_UNIT);
        }
    }
    if (q->scales && kiln_thread() % KILN_LINE_THREADS == 0)
        q->scales[(first + line) * (uint64_t)q->scale_cols + kiln_tile()] = scale;
    return true;
}

#endif
