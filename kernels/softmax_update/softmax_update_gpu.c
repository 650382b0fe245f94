/* softmax_update: the state of an online softmax of each row, with a block of scores or another state added.
 *
 * The threads that share a row go over its scores twice: for the greatest, and for the sum of exp(x - max), whose
 * elements come from a cache. So the states are taken to a new maximum once, by one thread, and no score is summed with
 * another origin than the last. Each thread's sum is one of two floats, to which a vector's sum is added. Narrow rows
 * take 1 to 32 threads each and reduce by shuffles alone; others take the block. Rows are not divided between blocks:
 * many short blocks of scores are what it is for, and log_softmax sums the few and long.
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

    /* A row beyond the last takes part, empty: reductions are of all threads. A row's first thread has its states. */
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
