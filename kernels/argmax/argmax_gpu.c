/* argmax: the column of each row's greatest element, the first of equal ones; NaN counts as greater than every number.
 *
 * The threads of a row find its greatest element; those that have it then look up where it stands, in what the caches
 * still hold, and the first column is the result. Carrying a column along with each maximum would take longer than the
 * bytes. Threads compare their results as integer keys (total_order.h), so that the answer does not depend on the order
 * in which they meet. Short rows take 1 to 32 threads each; longer rows take the whole block. Rows of more than a
 * chunk, of which a decoding step has one or a few, take two launches: KILN_ARGMAX_PARTIAL writes the best of each
 * chunk into the workspace, KILN_ARGMAX_FINISH the best of these.
 *
 * Floor: one read of the tensor at memory bandwidth, 4 bytes an element of f32, 2 of 16 bits; docs/kernel-report.md has
 * the instruction counts and the time that they take.
 * Test: build/tests/ops/argmax_test. Bench: build/kiln bench argmax */
#include "kernels/argmax/argmax_args.h"
#include "kernels/common/atomic.h"
#include "kernels/common/reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/total_order.h"
#include "kernels/common/values.h"

#define NOWHERE 0xffffffffu

KILN_INLINE uint32_t greater(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The greatest key of the thread's elements; that of -inf if it has none. NaN, which maxima ignore, is looked for in
 * pairs of elements. */
KILN_INLINE uint32_t greatest_of(kiln_span s, const kiln_element *x) {
    float max = -KILN_INFINITY, values[KILN_VECTOR];
    uint32_t nan = 0;
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            max = kiln_fast_max(values[i], max);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i += 2) {
            bool unordered = (values[i] != values[i]) | (values[i + 1] != values[i + 1]);
            nan = unordered ? 1 : nan;
        }
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = kiln_element_to_f32(x[i]);
        max = kiln_fast_max(value, max);
        nan = value != value ? 1 : nan;
    }
    return kiln_order_key(nan ? __builtin_nanf("") : max);
}

/* A bound that numbers with smaller keys do not exceed, and numbers with this key do: infinity for NaN's key. 0 stands
 * for -0 too. */
KILN_INLINE float bound_below(uint32_t key) {
    return key == kiln_order_key(__builtin_nanf("")) ? KILN_INFINITY
                                                     : kiln_order_value(key - (key == kiln_order_key(0.0f) ? 2 : 1));
}

/* The column of the thread's first element that has the key, which no element exceeds; NOWHERE if none has. */
KILN_INLINE uint32_t first_with(uint32_t key, kiln_span s, const kiln_element *x) {
    float below = bound_below(key);
    float values[KILN_VECTOR];
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        uint32_t first = KILN_VECTOR;
        KILN_UNROLL
        for (uint32_t i = KILN_VECTOR; i-- > 0;)
            first = values[i] <= below ? first : i;
        if (first < KILN_VECTOR) return (uint32_t)s.start + vector * KILN_VECTOR + first;
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        if (!(kiln_element_to_f32(x[i]) <= below)) return (uint32_t)s.start + i;
    }
    return NOWHERE;
}

/* The same over the thread's share of a row's partial results. */
KILN_INLINE uint32_t greatest_of_partials(const kiln_argmax_best *partials, uint32_t chunks) {
    uint32_t greatest = 0;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_BLOCK)
        greatest = greater(greatest, partials[i].key);
    return greatest;
}

KILN_INLINE uint32_t first_partial_with(uint32_t key, const kiln_argmax_best *partials, uint32_t chunks) {
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_BLOCK)
        if (partials[i].key == key) return partials[i].col;
    return NOWHERE;
}

/* The greatest key among the threads that share a row. exchange is shared memory for KILN_SUBGROUPS keys. */
KILN_INLINE uint32_t reduce(uint32_t key, uint32_t lanes_log2, uint32_t *exchange) {
    if (lanes_log2 <= KILN_SUBGROUP_LOG2) {
        KILN_LOOP
        for (uint32_t mask = 1; mask < 1u << lanes_log2; mask *= 2)
            key = greater(key, kiln_bits(kiln_shuffle_xor(kiln_float(key), mask)));
        return key;
    }
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
        key = greater(key, kiln_bits(kiln_shuffle_xor(kiln_float(key), mask)));

    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = key;
    kiln_barrier();
    KILN_UNROLL
    for (int i = 0; i < KILN_SUBGROUPS; i++)
        key = greater(key, exchange[i]);
    return key;
}

KILN_ENTRY(argmax, kiln_argmax_args) {
    KILN_SHARED uint32_t exchange[KILN_SUBGROUPS];
    KILN_SHARED uint32_t firsts[KILN_BLOCK]; /* of the block's rows */
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    kiln_argmax_best *partials = args.partials + s.row * args.chunks;
    uint32_t *first = &firsts[kiln_thread() >> lanes_log2];
    bool finish = args.phase == KILN_ARGMAX_FINISH;

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    firsts[kiln_thread()] = NOWHERE;
    uint32_t key = finish ? greatest_of_partials(partials, args.chunks) : greatest_of(s, x);
    uint32_t greatest = reduce(key, lanes_log2, exchange);
    kiln_barrier();
    if (key == greatest)
        kiln_shared_min(first, finish ? first_partial_with(key, partials, args.chunks) : first_with(key, s, x));
    kiln_barrier();

    if ((kiln_thread() & (s.lanes - 1)) != 0 || s.row >= (uint64_t)args.shape.rows) return;
    if (args.phase == KILN_ARGMAX_PARTIAL)
        partials[kiln_tile()] = (kiln_argmax_best){greatest, *first};
    else
        args.y[s.row] = (int32_t)*first;
}
