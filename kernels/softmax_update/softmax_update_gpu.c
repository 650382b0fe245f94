/* softmax_update: adds a block of scores, or another state, to the state of an online softmax of each row.
 *
 * The threads that share a row make two passes over its scores: the greatest, and the sum of exp(x - max), whose
 * elements come from a cache. So the state is rescaled to a new maximum once, by one thread, and every score is summed
 * with the final origin. Each thread's sum is a pair of floats, to which it adds the sum of each vector. Short rows
 * take 1 to 32 threads each and are reduced by shuffles alone; longer rows take the whole block. Rows are not divided
 * between blocks: the operator is for many short blocks of scores, and log_softmax sums few long rows.
 *
 * Floor: one read of the scores at memory bandwidth, 4 bytes an element of f32, 2 of 16 bits, and 24 bytes for each
 * row's states. Not measured. Test: build/tests/ops/softmax_update_test. Bench: build/kiln bench softmax_update */
#include "kernels/common/reduce.h"

#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/softmax_update/state.h"

KILN_INLINE float max_of(kiln_span s, const kiln_element *x) {
    float values[KILN_VECTOR], max = -KILN_INFINITY;
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            max = kiln_fast_max(values[i], max);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    max = kiln_fast_max(kiln_element_to_f32(x[i]), max);
    return max;
}

KILN_INLINE kiln_online_sum sum_of(kiln_span s, const kiln_element *x, float origin) {
    kiln_online_sum sum = {0.0f, 0.0f};
    float values[KILN_VECTOR];
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        kiln_online_sum part = {0.0f, 0.0f};
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            part.value += kiln_online_weight(values[i], origin);
        sum = kiln_online_add(sum, part);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        kiln_online_sum part = {kiln_online_weight(kiln_element_to_f32(x[i]), origin), 0.0f};
        sum = kiln_online_add(sum, part);
    }
    return sum;
}

KILN_ENTRY(softmax_update, kiln_softmax_update_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);

    /* Rows beyond the last take part with no elements: a reduction needs all threads. A row's first thread has its
     * state. */
    bool first = s.row < (uint64_t)args.shape.rows && (kiln_thread() & (s.lanes - 1)) == 0;
    kiln_online_state before = kiln_state_of(first ? args.before : 0, s.row, args.shape.rows);
    kiln_online_state other = kiln_state_of(first ? args.other : 0, s.row, args.shape.rows);
    float max = kiln_fast_max(other.max, kiln_fast_max(before.max, max_of(s, x)));
    max = kiln_reduce(max, lanes_log2, exchange, KILN_REDUCE_MAX);
    kiln_online_sum sum = sum_of(s, x, kiln_online_origin(max));
    sum.value = kiln_reduce(sum.value, lanes_log2, exchange, KILN_REDUCE_SUM);
    sum.rest = kiln_reduce(sum.rest, lanes_log2, exchange, KILN_REDUCE_SUM);
    if (first) kiln_state_put(&args, s.row, before, other, sum, max);
}
