/* softmax: y = exp(x - max x) / sum exp(x - max x) over each row, in f32, with one rounding.
 *
 * A block does some short rows, or one chunk (32 KiB) of a long one. It reads them once: each thread keeps the
 * vectors that it read in slots of its own of the dynamic shared memory, as they came, for the three passes over them:
 * maximum, sum, result. Narrow rows take 1 to 32 threads each and reduce by shuffles alone; others take the block.
 * Slots of one round lie side by side, free of bank conflicts, and the launch asks for those of the rounds needed. A
 * thread has one load in flight: the blocks of a multiprocessor, seven or eight, cover the latency.
 *
 * Long rows are launched twice: KILN_SOFTMAX_PARTIAL writes the maximum and the sum of each chunk into the workspace,
 * KILN_SOFTMAX_FINISH takes them from there (from the L2 cache) in place of the first two passes. One entry point does
 * all: the passes are most of its code, and there are fifty images of it.
 *
 * exp is computed twice for each element instead of being kept in f32, which would double the shared memory and halve
 * the blocks that hide the memory's latency.
 *
 * A row of -inf has maximum 0 for the subtraction and sum 0, whose reciprocal is taken as 0: zeros. +inf gives inf -
 * inf and NaN gives NaN in the sum: the row is NaN. No branch looks for them.
 *
 * Floor: one read and one write of the tensor at memory bandwidth; long rows two reads and one write.
 * Test: build/tests/ops/softmax_test. Bench: build/kiln bench softmax */
#include "kernels/common/reduce.h"
#include "kernels/common/span.h"
#include "kernels/softmax/softmax_args.h"

/* The loop over a span: vector is the number of a vector, slot its slot. */
#define FOR_VECTORS(s)                                                                        \
    for (uint32_t vector = (s).first, slot = kiln_thread(); vector * KILN_VECTOR < (s).count; \
         vector += (s).lanes, slot += KILN_BLOCK)

/* Reads the span into the thread's slots. */
KILN_INLINE void hold(kiln_span s, kiln_vector *slots, const kiln_element *x) {
    KILN_LOOP
    FOR_VECTORS(s) {
        if (vector < s.whole) {
            slots[slot] = kiln_vector_load(x + vector * KILN_VECTOR);
        } else {
            kiln_vector_gather(&slots[slot], x + vector * KILN_VECTOR, s.count - vector * KILN_VECTOR,
                               KILN_ELEMENT_NEGATIVE_INFINITY);
        }
    }
}

KILN_INLINE float max_of(kiln_span s, const kiln_vector *slots) {
    float max = -KILN_INFINITY, values[4];
    KILN_LOOP
    FOR_VECTORS(s) {
        kiln_vector held = slots[slot];
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&held, values);
            KILN_UNROLL
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

KILN_INLINE float sum_of(kiln_span s, const kiln_vector *slots, float max) {
    float sum = 0.0f, values[4];
    KILN_LOOP
    FOR_VECTORS(s) {
        kiln_vector held = slots[slot];
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&held, values);
            KILN_UNROLL
            for (int i = 0; i < 4; i++)
                sum += exp_of(values[i], max);
        }
    }
    return sum;
}

/* Writes exp(x - max) * scale. */
KILN_INLINE void put(kiln_span s, kiln_vector *slots, kiln_element *y, float max, float scale) {
    float values[4];
    KILN_LOOP
    FOR_VECTORS(s) {
        kiln_vector in = slots[slot], out = in;
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&in, values);
            KILN_UNROLL
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
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_BLOCK)
        max = kiln_max(partials[i].max, max);
    return max;
}

KILN_INLINE float sum_of_partials(const kiln_softmax_partial *partials, uint32_t chunks, float max) {
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_BLOCK)
        sum = KILN_FMA(partials[i].sum, kiln_exp(partials[i].max - max), sum);
    return sum;
}

KILN_ENTRY(softmax_rows, kiln_softmax_args) {
    KILN_DYNAMIC_SHARED(kiln_vector, slots);
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    kiln_softmax_partial *partials = args.partials + s.row * args.chunks;
    bool finish = args.phase == KILN_SOFTMAX_FINISH;

    /* A row beyond the last takes part, empty: reductions are of all threads. */
    hold(s, slots, kiln_span_of_input(s, args.x, args.x_stride));
    float max = finish ? max_of_partials(partials, args.chunks) : max_of(s, slots);
    max = kiln_reduce(max, lanes_log2, exchange, KILN_REDUCE_MAX);
    float origin = max == -KILN_INFINITY ? 0.0f : max;
    float sum = finish ? sum_of_partials(partials, args.chunks, origin) : sum_of(s, slots, origin);
    sum = kiln_reduce(sum, lanes_log2, exchange, KILN_REDUCE_SUM);

    if (args.phase != KILN_SOFTMAX_PARTIAL) {
        float scale = sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
        put(s, slots, kiln_span_in(s, args.y, args.y_stride), origin, scale);
    } else if (kiln_thread() == 0) {
        partials[kiln_tile()].max = max;
        partials[kiln_tile()].sum = sum;
    }
}
