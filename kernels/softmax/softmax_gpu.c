/* softmax: y = exp(x - max x) / sum exp(x - max x) over each row, in f32, with one rounding.
 *
 * A group does a block of short rows, or one chunk (32 KiB) of a long one. It reads them once: each thread keeps the
 * vectors that it read in slots of its own of the dynamic shared memory, as they came, for the three passes over them:
 * maximum, sum, result. Narrow rows take 1 to 32 threads each and reduce by shuffles alone; others take the group.
 * Slots of one round lie side by side, free of bank conflicts, and the launch asks for those of the rounds needed. A
 * thread has one load in flight: the groups of a multiprocessor, seven or eight, cover the latency.
 *
 * Long rows are launched twice: KILN_SOFTMAX_PARTIAL writes the maximum and the sum of each chunk into the workspace,
 * KILN_SOFTMAX_FINISH takes them from there (from the L2 cache) in place of the first two passes. One entry point does
 * all: the passes are most of its code, and there are fifty images of it.
 *
 * exp is computed twice for each element instead of being kept in f32, which would double the shared memory and halve
 * the groups that hide the memory's latency.
 *
 * A row of -inf has maximum 0 for the subtraction and sum 0, whose reciprocal is taken as 0: zeros. +inf gives inf -
 * inf and NaN gives NaN in the sum: the row is NaN. No branch looks for them.
 *
 * Floor: one read and one write of the tensor at memory bandwidth; long rows two reads and one write.
 * Test: build/tests/ops/softmax_test */
#include "kernels/common/reduce.h"
#include "kernels/softmax/softmax_args.h"

/* What a thread does of a row, or of a chunk of it: every lanes-th vector from first on. */
typedef struct span {
    uint64_t row;
    uint64_t start; /* element of the row */
    uint32_t count; /* elements; 0 for a row beyond the last, which takes part, empty */
    uint32_t whole; /* vectors that are read and written with one access */
    uint32_t first;
    uint32_t lanes_log2;
} span;

KILN_INLINE span span_of(const kiln_softmax_args *args) {
    span s;
    s.lanes_log2 = args->lanes_log2;
    s.first = kiln_thread() & ((1u << s.lanes_log2) - 1);
    s.row = (kiln_block() << (KILN_GROUP_LOG2 - s.lanes_log2)) + (kiln_thread() >> s.lanes_log2);
    s.start = (uint64_t)kiln_tile() * args->chunk;
    uint64_t left = s.row < (uint64_t)args->rows ? (uint64_t)args->cols - s.start : 0;
    s.count = left < args->chunk ? (uint32_t)left : args->chunk;
    s.whole = args->wide ? s.count / KILN_VECTOR : 0;
    return s;
}

/* The loop over a span: vector is the number of a vector, slot its slot. */
#define FOR_VECTORS(s)                                                                        \
    for (uint32_t vector = (s).first, slot = kiln_thread(); vector * KILN_VECTOR < (s).count; \
         vector += 1u << (s).lanes_log2, slot += KILN_GROUP)

/* Reads the span into the thread's slots. */
KILN_INLINE void hold(span s, kiln_vector *slots, const kiln_element *x) {
#pragma unroll 1
    FOR_VECTORS(s) {
        if (vector < s.whole) {
            slots[slot] = kiln_vector_load(x + vector * KILN_VECTOR);
        } else {
            kiln_vector_gather(&slots[slot], x + vector * KILN_VECTOR, s.count - vector * KILN_VECTOR,
                               KILN_ELEMENT_NEGATIVE_INFINITY);
        }
    }
}

KILN_INLINE float max_of(span s, const kiln_vector *slots) {
    float max = -KILN_INFINITY, values[4];
#pragma unroll 1
    FOR_VECTORS(s) {
        kiln_vector held = slots[slot];
#pragma unroll 1
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&held, values);
#pragma unroll
            for (int i = 0; i < 4; i++)
                max = kiln_max(values[i], max);
        }
    }
    return max;
}

/* 16 bits of a result do not show what the subtraction loses. */
KILN_INLINE float exp_of(float x, float max) {
    return sizeof(kiln_element) == sizeof(float) ? kiln_exp_difference(x, max) : kiln_exp(x - max);
}

KILN_INLINE float sum_of(span s, const kiln_vector *slots, float max) {
    float sum = 0.0f, values[4];
#pragma unroll 1
    FOR_VECTORS(s) {
        kiln_vector held = slots[slot];
#pragma unroll 1
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&held, values);
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum += exp_of(values[i], max);
        }
    }
    return sum;
}

/* Writes exp(x - max) * scale. */
KILN_INLINE void put(span s, kiln_vector *slots, kiln_element *y, float max, float scale) {
    float values[4];
#pragma unroll 1
    FOR_VECTORS(s) {
        kiln_vector in = slots[slot], out = in;
#pragma unroll 1
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&in, values);
#pragma unroll
            for (int i = 0; i < 4; i++)
                values[i] = exp_of(values[i], max) * scale;
            kiln_quad_give(&out, values);
        }
        if (vector < s.whole) {
            kiln_vector_store(y + vector * KILN_VECTOR, out);
        } else {
            slots[slot] = out;
            kiln_vector_scatter(y + vector * KILN_VECTOR, &slots[slot], s.count - vector * KILN_VECTOR);
        }
    }
}

/* The thread's share of the maximum and of the sum over a row's partials. */
KILN_INLINE float max_of_partials(const kiln_softmax_partial *partials, uint32_t chunks) {
    float max = -KILN_INFINITY;
#pragma unroll 1
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_GROUP)
        max = kiln_max(partials[i].max, max);
    return max;
}

KILN_INLINE float sum_of_partials(const kiln_softmax_partial *partials, uint32_t chunks, float max) {
    float sum = 0.0f;
#pragma unroll 1
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_GROUP)
        sum = KILN_FMA(partials[i].sum, kiln_exp(partials[i].max - max), sum);
    return sum;
}

KILN_ENTRY(softmax_rows, kiln_softmax_args) {
    KILN_DYNAMIC_SHARED(kiln_vector, slots);
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    span s = span_of(&args);
    kiln_softmax_partial *partials = args.partials + s.row * args.chunks;
    bool finish = args.phase == KILN_SOFTMAX_FINISH;
    if (s.row - (kiln_thread() >> s.lanes_log2) >= (uint64_t)args.rows) return; /* the whole group */

    hold(s, slots, (const kiln_element *)args.x + s.row * (uint64_t)args.x_stride + s.start);
    float max = finish ? max_of_partials(partials, args.chunks) : max_of(s, slots);
    max = kiln_reduce(max, s.lanes_log2, exchange, KILN_REDUCE_MAX);
    float origin = max == -KILN_INFINITY ? 0.0f : max;
    float sum = finish ? sum_of_partials(partials, args.chunks, origin) : sum_of(s, slots, origin);
    sum = kiln_reduce(sum, s.lanes_log2, exchange, KILN_REDUCE_SUM);

    if (args.phase == KILN_SOFTMAX_PARTIAL) {
        if (kiln_thread() == 0) {
            partials[kiln_tile()].max = max;
            partials[kiln_tile()].sum = sum;
        }
    } else {
        put(s, slots, (kiln_element *)args.y + s.row * (uint64_t)args.y_stride + s.start, origin,
            sum == 0.0f ? 0.0f : kiln_reciprocal(sum));
    }
}
