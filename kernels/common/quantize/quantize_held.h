/* quantize_fp8 and quantize_int8 where a block keeps all elements of a computed scale for codes up to their greatest,
 * in whole, aligned vectors: 128 rows by 128 columns, or a row. x is read once. A thread loads some of its vectors at a
 * time, keeps the first in registers and the others in shared memory, from which it alone takes them again: registers
 * have no index, and code for each vector was long (150 KiB of images for each operator). Infinities, NaN, or
 * magnitudes that are all far from 1 leave a block to kiln_quantize.
 *
 * Included after quantize_finite.h. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_HELD_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_HELD_H

#include "kernels/common/device.h"
#include "kernels/common/quantize/quantize_finite.h"
#include "kernels/common/reduce/greatest_or_nan.h"

enum {
    KILN_HELD_LANES = KILN_QUANTIZE_GROUP / KILN_VECTOR, /* threads that share 128 columns */
    KILN_HELD_STEP = KILN_BLOCK / KILN_HELD_LANES        /* rows that they have at a time */
};

/* Where a thread's first vector is, and how many it has. */
typedef struct kiln_held {
    uint64_t row;
    uint32_t col, count;
} kiln_held;

KILN_INLINE kiln_held kiln_held_of(const kiln_quantize_args *args) {
    const uint32_t thread = kiln_thread(), cols = (uint32_t)args->shape.cols;
    const bool square = args->rows_log2 != 0;
    const uint64_t rows = (uint64_t)args->shape.rows;
    kiln_held h;
    h.row = kiln_block() * args->block_rows + (square ? thread / KILN_HELD_LANES : 0);
    h.col = kiln_tile() * KILN_QUANTIZE_GROUP + (square ? thread % KILN_HELD_LANES : thread) * KILN_VECTOR;
    const uint64_t left = h.row < rows ? rows - h.row : 0;
    const uint32_t below = left < KILN_QUANTIZE_GROUP ? (uint32_t)left : KILN_QUANTIZE_GROUP;
    const uint32_t beside = h.col < cols ? cols - h.col : 0;
    h.count = (beside + KILN_BLOCK * KILN_VECTOR - 1) / (KILN_BLOCK * KILN_VECTOR);
    if (square) h.count = beside ? (below + KILN_HELD_STEP - 1) / KILN_HELD_STEP : 0;
    return h;
}

/* How far apart a thread's vectors are in a tensor whose rows are that far apart. */
KILN_INLINE uint64_t kiln_held_step(const kiln_quantize_args *args, int64_t stride) {
    return args->rows_log2 ? KILN_HELD_STEP * (uint64_t)stride : KILN_BLOCK * KILN_VECTOR;
}

/* The greatest of bits in a block. */
KILN_INLINE uint32_t kiln_held_greatest(uint32_t bits, uint32_t *exchange) {
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_SUBGROUP_LOG2; i++) {
        const uint32_t other = kiln_bits_of_other_half(bits, i);
        bits = bits > other ? bits : other;
    }
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = bits;
    kiln_barrier();
    bits = exchange[0];
    KILN_UNROLL
    for (int i = 1; i < KILN_SUBGROUPS; i++)
        bits = bits > exchange[i] ? bits : exchange[i];
    return bits;
}

/* What a block has, if the call is for it. tile: shared memory for the vectors of its threads but their first. Returns
 * whether it did that. */
KILN_INLINE bool kiln_quantize_of_block(const kiln_quantize_args *args, uint32_t *exchange, kiln_vector *tile) {
    enum { AT_ONCE = 4 };
    if (args->source != KILN_QUANTIZE_HELD) return false;
    if (kiln_block() * args->block_rows >= (uint64_t)args->shape.rows) return true; /* the whole block */
    const kiln_held h = kiln_held_of(args);
    const kiln_element *x = (const kiln_element *)args->x + h.row * (uint64_t)args->x_stride + h.col;
    const uint64_t x_step = kiln_held_step(args, args->x_stride);
    kiln_vector kept = {{0}};
    if (h.count) kept = kiln_vector_load(x);
    kiln_greatest_or_nan greatest = kiln_greatest_or_nan_of(kept);
    kiln_vector *own = tile + kiln_thread();
    KILN_LOOP
    for (uint32_t first = 1; first < h.count; first += AT_ONCE, own += AT_ONCE * KILN_BLOCK) {
        kiln_vector vectors[AT_ONCE];
        KILN_UNROLL
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            x += x_step;
            if (first + i < h.count) vectors[i] = kiln_vector_load(x);
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            if (first + i >= h.count) continue;
            kiln_greatest_or_nan_take(&greatest, vectors[i]);
            own[i * KILN_BLOCK] = vectors[i];
        }
    }
    const uint32_t bits = kiln_held_greatest(kiln_greatest_or_nan_bits(greatest), exchange);
    float scale, factor;
    if (!kiln_quantize_finite_scale(bits, &scale, &factor)) {
        if (bits) return false;
        scale = factor = 1.0f; /* of zeros */
    }
    uint8_t *codes = (uint8_t *)args->codes + h.row * (uint64_t)args->codes_stride + h.col;
    const uint64_t step = kiln_held_step(args, args->codes_stride);
    own = tile + kiln_thread();
    KILN_LOOP
    for (uint32_t i = 0; i < h.count; i++, codes += step, own += KILN_BLOCK) {
        kiln_quantize_put_finite(codes, kept, factor * KILN_QUANTIZE_UNIT);
        if (i + 1 < h.count) kept = *own;
    }
    if (args->scales && kiln_thread() == 0)
        args->scales[kiln_block() * (uint64_t)args->scale_cols + kiln_tile()] = scale;
    return true;
}

#endif
