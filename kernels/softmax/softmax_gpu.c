/* softmax: y = exp(x - max x) / sum exp(x - max x) over each row, in f32, with one rounding.
 *
 * softmax_rows     rows of up to a chunk (32 KiB). They are read once: each thread keeps the vectors that it read in
 *                  slots of its own of the dynamic shared memory, as they came, for the three passes over them
 * (maximum, sum, result). Narrow rows take 1 to 32 threads, so that a group does several, with shuffles alone; others
 * take the group. Slots of one round lie side by side, free of bank conflicts, and the shared memory asked for is that
 * of the rounds needed. softmax_partial  one chunk of a long row: its maximum and its sum, into the workspace.
 * softmax_finish   one chunk of a long row: combines all the row's partials (they are in the L2 cache), then reads the
 *                  chunk again and writes the result.
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

/* What a thread does of a row, or of a chunk of it: every lanes-th vector from its own on. */
typedef struct span {
    const kiln_element *x;
    uint32_t count; /* elements */
    uint32_t lanes_log2;
    uint32_t first; /* vector */
    uint32_t whole; /* vectors that are read and written with one access */
} span;

KILN_INLINE span span_of(const kiln_softmax_args *args, uint64_t row, uint64_t start, uint32_t count,
                         uint32_t lanes_log2) {
    span s = {(const kiln_element *)args->x + row * (uint64_t)args->x_stride + start, count, lanes_log2,
              kiln_thread() & ((1u << lanes_log2) - 1), args->wide ? count / KILN_VECTOR : 0};
    return s;
}

/* Reads the span into the thread's slots. Whole vectors are read four at a time, to have their latencies overlap. */
KILN_INLINE void hold(span s, kiln_vector *slots) {
    uint32_t vector = s.first;
#pragma unroll 4
    for (; vector < s.whole; vector += 1u << s.lanes_log2, slots += KILN_GROUP)
        *slots = kiln_vector_load(s.x + vector * KILN_VECTOR);
#pragma unroll 1
    for (; vector * KILN_VECTOR < s.count; vector += 1u << s.lanes_log2, slots += KILN_GROUP)
        kiln_vector_gather(slots, s.x + vector * KILN_VECTOR, s.count - vector * KILN_VECTOR,
                           KILN_ELEMENT_NEGATIVE_INFINITY);
}

/* 16 bits of a result do not show what the subtraction loses. */
KILN_INLINE float exp_of(float x, float max) {
    return sizeof(kiln_element) == sizeof(float) ? kiln_exp_difference(x, max) : kiln_exp(x - max);
}

KILN_INLINE float max_of(span s, const kiln_vector *slots) {
    float max = -KILN_INFINITY, values[4];
#pragma unroll 1
    for (uint32_t vector = s.first; vector * KILN_VECTOR < s.count; vector += 1u << s.lanes_log2, slots += KILN_GROUP) {
        kiln_vector held = *slots;
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

KILN_INLINE float sum_of(span s, const kiln_vector *slots, float max) {
    float sum = 0.0f, values[4];
#pragma unroll 1
    for (uint32_t vector = s.first; vector * KILN_VECTOR < s.count; vector += 1u << s.lanes_log2, slots += KILN_GROUP) {
        kiln_vector held = *slots;
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
    for (uint32_t vector = s.first; vector * KILN_VECTOR < s.count; vector += 1u << s.lanes_log2, slots += KILN_GROUP) {
        kiln_vector in = *slots, out = in;
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
            *slots = out;
            kiln_vector_scatter(y + vector * KILN_VECTOR, slots, s.count - vector * KILN_VECTOR);
        }
    }
}

KILN_INLINE float finite_max(float max) {
    return max == -KILN_INFINITY ? 0.0f : max;
}
KILN_INLINE float scale_of(float sum) {
    return sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
}

KILN_ENTRY(softmax_rows, kiln_softmax_args) {
    KILN_DYNAMIC_SHARED(kiln_vector, held);
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    uint32_t lanes_log2 = args.lanes_log2;
    uint64_t first_row = kiln_block() << (KILN_GROUP_LOG2 - lanes_log2);
    if (first_row >= (uint64_t)args.rows) return;
    uint64_t row = first_row + (kiln_thread() >> lanes_log2);
    uint32_t count =
        row < (uint64_t)args.rows ? (uint32_t)args.cols : 0; /* a row that is not there takes part, empty */
    kiln_vector *slots = held + kiln_thread();
    span s = span_of(&args, row, 0, count, lanes_log2);
    hold(s, slots);

    float max = finite_max(kiln_reduce(max_of(s, slots), lanes_log2, exchange, KILN_REDUCE_MAX));
    float scale = scale_of(kiln_reduce(sum_of(s, slots, max), lanes_log2, exchange, KILN_REDUCE_SUM));

    put(s, slots, (kiln_element *)args.y + row * (uint64_t)args.y_stride, max, scale);
}

/* The chunk of a row that the group does. */
KILN_INLINE span chunk_of(const kiln_softmax_args *args, uint64_t row, uint64_t start) {
    uint64_t left = (uint64_t)args->cols - start;
    return span_of(args, row, start, left < args->chunk ? (uint32_t)left : args->chunk, KILN_GROUP_LOG2);
}

KILN_ENTRY(softmax_partial, kiln_softmax_args) {
    KILN_DYNAMIC_SHARED(kiln_vector, held);
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    uint64_t row = kiln_block();
    if (row >= (uint64_t)args.rows) return;
    kiln_vector *slots = held + kiln_thread();
    span s = chunk_of(&args, row, (uint64_t)kiln_tile() * args.chunk);
    hold(s, slots);

    float max = kiln_reduce(max_of(s, slots), KILN_GROUP_LOG2, exchange, KILN_REDUCE_MAX);
    float sum = kiln_reduce(sum_of(s, slots, finite_max(max)), KILN_GROUP_LOG2, exchange, KILN_REDUCE_SUM);
    if (kiln_thread() == 0) {
        kiln_softmax_partial *partial = args.partials + row * args.chunks + kiln_tile();
        partial->max = max;
        partial->sum = sum;
    }
}

KILN_ENTRY(softmax_finish, kiln_softmax_args) {
    KILN_DYNAMIC_SHARED(kiln_vector, held);
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    uint64_t row = kiln_block();
    if (row >= (uint64_t)args.rows) return;
    const kiln_softmax_partial *partials = args.partials + row * args.chunks;

    float max = -KILN_INFINITY;
#pragma unroll 1
    for (uint32_t i = kiln_thread(); i < args.chunks; i += KILN_GROUP)
        max = kiln_max(partials[i].max, max);
    max = finite_max(kiln_reduce(max, KILN_GROUP_LOG2, exchange, KILN_REDUCE_MAX));

    float sum = 0.0f;
#pragma unroll 1
    for (uint32_t i = kiln_thread(); i < args.chunks; i += KILN_GROUP)
        sum = KILN_FMA(partials[i].sum, kiln_exp(partials[i].max - max), sum);
    float scale = scale_of(kiln_reduce(sum, KILN_GROUP_LOG2, exchange, KILN_REDUCE_SUM));

    kiln_vector *slots = held + kiln_thread();
    uint64_t start = (uint64_t)kiln_tile() * args.chunk;
    span s = chunk_of(&args, row, start);
    hold(s, slots);
    put(s, slots, (kiln_element *)args.y + row * (uint64_t)args.y_stride + start, max, scale);
}
