/* What the device kernels that quantise their own result share: a thread's place, how its eights are read, and how they
 * become codes of 8 bits. Rows that are not aligned are read and written element by element, by the same threads, so
 * that results do not depend on the alignment. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_GPU_H

#include "kernels/common/device.h"

#include "kernels/common/formats/encode_gpu.h"
#include "kernels/common/quantize/codes_scale.h"
#include "kernels/common/reduce/reduce.h"
#include "kernels/common/values.h"

/* A thread's share of a row: every lanes-th eight from lane on. */
typedef struct kiln_codes_place {
    uint64_t row;
    uint32_t lane, lanes;
    uint32_t inside; /* whether the row exists */
    uint32_t beyond; /* whether the whole block is beyond the last row */
} kiln_codes_place;

KILN_INLINE kiln_codes_place kiln_codes_place_of(const kiln_codes_args *args) {
    kiln_codes_place p;
    uint32_t lanes_log2 = args->shape.lanes_log2;
    uint64_t first = kiln_block() << (KILN_BLOCK_LOG2 - lanes_log2);
    p.lanes = 1u << lanes_log2;
    p.lane = kiln_thread() & (p.lanes - 1);
    p.row = first + (kiln_thread() >> lanes_log2);
    p.inside = p.row < (uint64_t)args->rows;
    p.beyond = first >= (uint64_t)args->shape.rows;
    return p;
}

/* How many elements of an eight the thread's row has. */
KILN_INLINE uint32_t kiln_eight_count(const kiln_codes_args *args, kiln_codes_place p, uint32_t eight) {
    uint32_t cols = p.inside ? (uint32_t)args->shape.cols : 0u, col = eight * KILN_EIGHT;
    uint32_t left = col < cols ? cols - col : 0u;
    return left < KILN_EIGHT ? left : KILN_EIGHT;
}

/* An eight as its bits, 16 or 32 bytes. */
typedef struct kiln_eight_bits {
    kiln_vector vectors[KILN_EIGHT / KILN_VECTOR];
} kiln_eight_bits;

/* Loads an eight, of which count elements are the row's and the others become zeros. An array that is not indexed by
 * constants would not stay in registers, so that single elements are shifted in through the last place. */
KILN_INLINE kiln_eight_bits kiln_eight_load(const kiln_element *source, uint32_t count, uint32_t wide) {
    enum { WORDS = KILN_VECTOR_BYTES / 4, LAST = KILN_EIGHT / KILN_VECTOR * WORDS - 1 };
    kiln_eight_bits eight;
    if (wide && count == KILN_EIGHT) {
        KILN_UNROLL
        for (int i = 0; i < KILN_EIGHT / KILN_VECTOR; i++)
            eight.vectors[i] = kiln_vector_load(source + i * KILN_VECTOR);
        return eight;
    }
    uint32_t words[LAST + 1] = {0};
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_EIGHT; i++) {
        uint32_t next = i < count ? source[i] : 0u;
        KILN_UNROLL
        for (int j = 0; j <= LAST; j++) {
            uint32_t above = j < LAST ? words[j < LAST ? j + 1 : j] : next;
#if defined(KILN_PART_f32)
            words[j] = above;
#else
            words[j] = words[j] >> 16 | above << 16;
#endif
        }
    }
    KILN_UNROLL
    for (int j = 0; j <= LAST; j++)
        eight.vectors[j / WORDS].words[j % WORDS] = words[j];
    return eight;
}

KILN_INLINE void kiln_eight_values(float *values, kiln_eight_bits eight) {
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT / KILN_VECTOR; i++)
        kiln_vector_values(values + i * KILN_VECTOR, eight.vectors[i]);
}

/* Stores count elements of an eight. Element by element, it is rotated through the first place. */
KILN_INLINE void kiln_eight_store(kiln_element *target, float *values, uint32_t count, uint32_t wide) {
    if (wide && count == KILN_EIGHT) {
        KILN_UNROLL
        for (int i = 0; i < KILN_EIGHT; i += KILN_VECTOR)
            kiln_vector_store(target + i, kiln_vector_of(values + i));
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_EIGHT; i++) {
        float first = values[0];
        if (i < count) target[i] = kiln_element_from_f32(first);
        KILN_UNROLL
        for (int j = 0; j + 1 < KILN_EIGHT; j++)
            values[j] = values[j + 1];
        values[KILN_EIGHT - 1] = first;
    }
}

/* Half an eight in shared memory. A thread finds its own alone; those of neighbouring threads are neighbours. */
typedef struct kiln_codes_kept {
    float values[KILN_EIGHT / 2];
} __attribute__((aligned(16))) kiln_codes_kept;

KILN_INLINE void kiln_eight_keep(kiln_codes_kept *kept, uint32_t number, const float *values) {
    KILN_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        kiln_codes_kept quad;
        KILN_UNROLL
        for (int i = 0; i < KILN_EIGHT / 2; i++)
            quad.values[i] = values[half * KILN_EIGHT / 2 + i];
        kept[(2 * number + half) * KILN_BLOCK + kiln_thread()] = quad;
    }
}

KILN_INLINE void kiln_eight_recall(const kiln_codes_kept *kept, uint32_t number, float *values) {
    KILN_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        kiln_codes_kept quad = kept[(2 * number + half) * KILN_BLOCK + kiln_thread()];
        KILN_UNROLL
        for (int i = 0; i < KILN_EIGHT / 2; i++)
            values[half * KILN_EIGHT / 2 + i] = quad.values[i];
    }
}

KILN_INLINE float kiln_eight_greatest(const float *values, float greatest) {
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++) /* NaN is not greater */
        greatest = kiln_fast_max(__builtin_fabsf(values[i]), greatest);
    return greatest;
}

/* The greatest value among that many neighbouring threads, a power of two. */
KILN_INLINE float kiln_eights_greatest(float greatest, uint32_t threads) {
    KILN_LOOP
    for (uint32_t mask = 1; mask < threads; mask *= 2)
        greatest = kiln_max(greatest, kiln_shuffle_xor(greatest, mask));
    return greatest;
}

/* Stores the first count bytes, which are the row's. */
KILN_INLINE void kiln_eight_put_bytes(uint8_t *codes, kiln_eight_bytes bytes, uint32_t count, uint32_t wide) {
    if (wide && count == KILN_EIGHT) {
        *(kiln_eight_bytes *)codes = bytes;
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < count; i++) {
        codes[i] = (uint8_t)bytes.words[0];
        bytes.words[0] = bytes.words[0] >> 8 | bytes.words[1] << 24;
        bytes.words[1] >>= 8;
    }
}

/* The factor of a row's elements, unless each group has its own, from the row's greatest magnitude if that makes a
 * scale. The scale is written. */
KILN_INLINE float kiln_codes_row_factor(const kiln_codes_args *args, kiln_codes_place p, float greatest) {
    if (args->grouped) return 0.0f;
    float scale = kiln_codes_scale(args, greatest);
    if (args->scales && p.inside && p.lane == 0) ((float *)args->scales)[p.row] = scale;
    return 1.0f / scale;
}

/* Writes the codes of an eight, and the scale of a group if it is the first of it. factor: the row's, if it has one.
 * All threads call this, since those that share a scale find its greatest magnitude together. The values are lost. */
KILN_INLINE void kiln_eight_put(const kiln_codes_args *args, kiln_codes_place p, uint32_t eight, float *values,
                                uint32_t count, float factor, kiln_codes_format format) {
    if (args->grouped) {
        float greatest = kiln_eights_greatest(kiln_eight_greatest(values, 0.0f), KILN_EIGHTS_GROUP);
        float scale = kiln_codes_scale(args, greatest);
        factor = 1.0f / scale;
        if (args->scales && count && (eight & (KILN_EIGHTS_GROUP - 1)) == 0)
            ((float *)args->scales)[p.row * (uint64_t)args->scale_cols + eight / KILN_EIGHTS_GROUP] = scale;
    }
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        values[i] *= factor;
    kiln_eight_bytes bytes =
        format == KILN_CODES_E4M3 ? kiln_e4m3_eight(values, args->smax) : kiln_int8_eight(values, args->smax);
    uint8_t *codes = args->codes + p.row * (uint64_t)args->codes_stride + (uint64_t)eight * KILN_EIGHT;
    kiln_eight_put_bytes(codes, bytes, count, args->shape.wide);
}

#endif
