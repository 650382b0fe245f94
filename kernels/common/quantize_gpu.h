/* The kernel of quantize_fp8 and quantize_int8 on devices. The includer defines KILN_QUANTIZE_QUAD(values, bound), the
 * bytes of four numbers, and its entry point over kiln_quantize. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_GPU_H

#include "kernels/common/minimum.h"
#include "kernels/common/quantize_scale.h"
#include "kernels/common/reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"

/* Vectors that a thread has in registers between the two passes: as many as leave scalar registers on AMD's chips. */
#if defined(__CUDACC__)
enum { KILN_QUANTIZE_KEPT = 4 };
#else
enum { KILN_QUANTIZE_KEPT = 2 };
#endif

/* The codes of a vector of elements. */
typedef struct kiln_quantize_codes {
    uint32_t words[KILN_QUADS];
} __attribute__((aligned(KILN_VECTOR))) kiln_quantize_codes;

/* A block's tile of its rows. */
typedef struct kiln_quantize_tile {
    const kiln_quantize_args *args;
    kiln_span s;    /* row: this thread's first, of the block's first rows */
    uint64_t end;   /* of the block's rows */
    uint32_t step;  /* rows that the block's threads are in at once */
    uint32_t down;  /* non-zero: a row is one vector a thread, which keeps those of several rows; else of one row */
    uint32_t shift; /* from one kept vector of a row to the next */
} kiln_quantize_tile;

/* How many of a thread's kept vectors are in different rows, the first of which is `row`. */
KILN_INLINE bool kiln_quantize_has_row(const kiln_quantize_tile *t, uint64_t row, uint32_t i) {
    return row + i * t->step < t->end && (t->down || !i);
}

KILN_INLINE const kiln_element *kiln_quantize_row(const kiln_quantize_tile *t, uint64_t row) {
    return (const kiln_element *)t->args->x + row * (uint64_t)t->args->x_stride + t->s.start;
}

/* Reads the vectors that the thread keeps; zeros where it has none. */
KILN_INLINE void kiln_quantize_keep(const kiln_quantize_tile *t, uint64_t row, kiln_vector *kept) {
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_QUANTIZE_KEPT; i++) {
        uint64_t at = t->down ? row + i * t->step : row;
        uint32_t vector = t->s.first + i * t->shift;
        kept[i] = (kiln_vector){{0, 0, 0, 0}};
        if (at < t->end && vector < t->s.whole)
            kept[i] = kiln_vector_load(kiln_quantize_row(t, at) + vector * KILN_VECTOR);
    }
}

KILN_INLINE float kiln_quantize_greater(float greatest, kiln_vector vector) {
    float values[KILN_VECTOR];
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++) /* NaN is not greater */
        greatest = kiln_fast_max(__builtin_fabsf(values[i]), greatest);
    return greatest;
}

/* The greatest magnitude of a thread's share of a row beyond the vectors that it keeps. */
KILN_INLINE float kiln_quantize_beyond(const kiln_quantize_tile *t, uint64_t row, float greatest) {
    const kiln_element *x = kiln_quantize_row(t, row);
    kiln_span s = t->s;
    uint32_t kept = t->down ? 1 : KILN_QUANTIZE_KEPT;
    KILN_LOOP
    for (uint32_t vector = s.first + kept * s.lanes; vector < s.whole; vector += s.lanes)
        greatest = kiln_quantize_greater(greatest, kiln_vector_load(x + vector * KILN_VECTOR));
    KILN_LOOP
    KILN_FOR_REST(s, i)
    greatest = kiln_fast_max(__builtin_fabsf(kiln_element_to_f32(x[i])), greatest);
    return greatest;
}

KILN_INLINE void kiln_quantize_put(uint8_t *codes, kiln_vector from, float factor, float smax) {
    kiln_quantize_codes vector;
    float values[KILN_VECTOR];
    kiln_vector_values(values, from);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] *= factor;
    KILN_UNROLL
    for (int word = 0; word < KILN_QUADS; word++)
        vector.words[word] = KILN_QUANTIZE_QUAD(values + 4 * word, smax);
    *(kiln_quantize_codes *)codes = vector;
}

/* Writes the codes of a thread's share of a row, and its scale. kept: its vectors of that row. */
KILN_INLINE void kiln_quantize_write(const kiln_quantize_tile *t, uint64_t row, float value, const kiln_vector *kept,
                                     uint32_t count) {
    const kiln_quantize_args *args = t->args;
    uint64_t at = kiln_quantize_scale_at(args, row, kiln_tile());
    if (args->source != KILN_QUANTIZE_COMPUTED) value = args->values[at];
    float scale = kiln_quantize_scale(args, value), factor = 1.0f / scale;
    const kiln_element *x = kiln_quantize_row(t, row);
    uint8_t *codes = (uint8_t *)args->codes + row * (uint64_t)args->codes_stride + t->s.start;
    kiln_span s = t->s;
    KILN_UNROLL
    for (uint32_t i = 0; i < count; i++) {
        uint32_t vector = s.first + i * s.lanes;
        if (vector < s.whole) kiln_quantize_put(codes + vector * KILN_VECTOR, kept[i], factor, args->smax);
    }
    KILN_LOOP
    for (uint32_t vector = s.first + count * s.lanes; vector < s.whole; vector += s.lanes)
        kiln_quantize_put(codes + vector * KILN_VECTOR, kiln_vector_load(x + vector * KILN_VECTOR), factor, args->smax);
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float one[4] = {kiln_element_to_f32(x[i]) * factor, 0.0f, 0.0f, 0.0f};
        codes[i] = (uint8_t)KILN_QUANTIZE_QUAD(one, args->smax);
    }
    if (args->scales && s.first == 0 && kiln_quantize_is_first(args, row, kiln_tile())) args->scales[at] = scale;
}

/* A block's tile of its rows, which has one scale, or one for each row, or scales that are known beforehand. All
 * threads take part in each reduction, also those without a row. */
KILN_INLINE void kiln_quantize(const kiln_quantize_args *args, float *exchange) {
    kiln_quantize_tile t = {args, kiln_span_of(&args->shape), 0, (uint32_t)KILN_BLOCK >> args->shape.lanes_log2, 0, 0};
    uint64_t rows = (uint64_t)args->shape.rows, block_row = kiln_block() * args->block_rows;
    if (block_row >= rows) return; /* the whole block */
    t.end = block_row + args->block_rows < rows ? block_row + args->block_rows : rows;
    uint64_t left = (uint64_t)args->shape.cols - t.s.start;
    t.s.count = left < args->shape.tile ? (uint32_t)left : args->shape.tile;
    t.s.whole = args->shape.wide ? t.s.count / KILN_VECTOR : 0;
    t.down = t.s.whole <= t.s.lanes;
    t.shift = t.down ? 0 : t.s.lanes;
    uint32_t kept_rows = t.down ? KILN_QUANTIZE_KEPT * t.step : t.step,
             thread_row = kiln_thread() >> args->shape.lanes_log2;
    bool computed = args->source == KILN_QUANTIZE_COMPUTED, shared = computed && args->rows_log2;
    kiln_vector kept[KILN_QUANTIZE_KEPT];
    float values[KILN_QUANTIZE_KEPT], value = 0.0f;

    KILN_LOOP
    for (uint64_t row = block_row; shared && row < t.end; row += kept_rows) {
        kiln_quantize_keep(&t, row + thread_row, kept);
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_QUANTIZE_KEPT; i++) {
            value = kiln_quantize_greater(value, kept[i]);
            if (kiln_quantize_has_row(&t, row + thread_row, i))
                value = kiln_quantize_beyond(&t, row + thread_row + i * t.step, value);
        }
    }
    if (shared) value = kiln_reduce(value, args->scale_lanes_log2, exchange, KILN_REDUCE_MAX);
    KILN_LOOP
    for (uint64_t row = block_row; row < t.end; row += kept_rows) {
        uint64_t own = row + thread_row;
        kiln_quantize_keep(&t, own, kept);
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_QUANTIZE_KEPT; i++)
            values[i] = shared ? value : kiln_quantize_greater(0.0f, kept[i]);
        if (computed && !shared) {
            KILN_UNROLL
            for (uint32_t i = 1; i < KILN_QUANTIZE_KEPT; i++)
                values[0] = t.down ? values[0] : kiln_fast_max(values[i], values[0]);
            KILN_UNROLL
            for (uint32_t i = 0; i < KILN_QUANTIZE_KEPT; i++) {
                if (!kiln_quantize_has_row(&t, row, i)) continue; /* for no thread */
                if (own + i * t.step < t.end) values[i] = kiln_quantize_beyond(&t, own + i * t.step, values[i]);
                values[i] = kiln_reduce(values[i], args->scale_lanes_log2, exchange, KILN_REDUCE_MAX);
            }
        }
        if (!t.down) {
            if (own < t.end) kiln_quantize_write(&t, own, values[0], kept, KILN_QUANTIZE_KEPT);
            continue;
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_QUANTIZE_KEPT; i++)
            if (own + i * t.step < t.end) kiln_quantize_write(&t, own + i * t.step, values[i], &kept[i], 1);
    }
}

#endif
