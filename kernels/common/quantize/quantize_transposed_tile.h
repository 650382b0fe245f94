/* quantize_fp8 and quantize_int8 where x's columns are not adjacent, for blocks that have one whole tile, each of whose
 * lines has a computed scale: groups of 128 columns, above all. After one barrier the threads that share a line find
 * its scale by themselves, keep their vectors meanwhile, and know that no product is NaN or beyond the code's greatest
 * number, but in warps that have infinities, NaN or a magnitude that is far from 1.
 *
 * Included after quantize_transposed_gpu.h and quantize_finite.h. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_TILE_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_TILE_H

#include "kernels/common/device.h"
#include "kernels/common/quantize/quantize_finite.h"
#include "kernels/common/quantize/quantize_transposed_gpu.h"
#include "kernels/common/reduce/greatest_or_nan.h"
#include "kernels/common/reduce/subgroup_any.h"

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

    float scale, factor;
    const bool usual = kiln_quantize_finite_scale(bits, &scale, &factor);
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
