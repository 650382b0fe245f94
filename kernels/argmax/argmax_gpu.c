/* argmax: the column of each row's greatest element, the first of equal ones; NaN counts as greater than every number.
 *
 * The threads of a row find its greatest element; those that have it then look up where it stands, in the vectors that
 * they hold, four for each, or in a cache, and the first column is the result. Carrying a column along with each
 * maximum would take longer than the bytes. Threads compare their results as integer keys (total_order.h), so that the
 * answer does not depend on the order in which they meet. Short rows take 1 to 32 threads each; longer rows take the
 * whole block. Rows of more than a chunk, of which a decoding step has one or a few, take two launches:
 * KILN_ARGMAX_PARTIAL writes the best of each chunk into the workspace, KILN_ARGMAX_FINISH the best of these.
 *
 * Floor: one read of the tensor at memory bandwidth, 4 bytes an element of f32, 2 of 16 bits; docs/kernel-report.md has
 * the instruction counts. Measured (H100 80GB HBM3, driver 580.159.04, 2026-11-26; bf16, [16384, 4096], a copy of
 * it 90.2 us): 45.0 us, 2.98 TB/s; before, vector after vector, 47.6 us. [1024, 131072] takes 90.6 us.
 * Test: build/tests/ops/argmax_test. Bench: build/kiln bench argmax */
#include "kernels/argmax/argmax_args.h"
#include "kernels/common/held.h"
#include "kernels/common/reduce/atomic.h"
#include "kernels/common/reduce/greatest.h"
#include "kernels/common/reduce/row_reduce.h"

#define NOWHERE 0xffffffffu

KILN_INLINE uint32_t greater(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The greatest key of the thread's elements; that of -inf if it has none. */
KILN_INLINE uint32_t greatest_of(kiln_span s, const kiln_element *x, const kiln_vector *held) {
    kiln_greatest greatest = kiln_greatest_none();
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        kiln_greatest_take(&greatest, held[k]);
    }
    KILN_LOOP
    KILN_FOR_UNHELD(s, vector)
    kiln_greatest_take(&greatest, kiln_vector_load(x + vector * KILN_VECTOR));
    uint32_t key = kiln_greatest_key(greatest);
    KILN_LOOP
    KILN_FOR_REST(s, i)
    key = greater(key, kiln_order_key(kiln_element_to_f32(x[i])));
    return key;
}

/* A bound that numbers with smaller keys do not exceed, and numbers with this key do: infinity for NaN's key. 0 stands
 * for -0 too. */
KILN_INLINE float bound_below(uint32_t key) {
    return key == kiln_order_key(__builtin_nanf("")) ? KILN_INFINITY
                                                     : kiln_order_value(key - (key == kiln_order_key(0.0f) ? 2 : 1));
}

/* The place in a vector of its first element above a bound; KILN_VECTOR if there is none. */
KILN_INLINE uint32_t first_above(float below, kiln_vector vector) {
    float values[KILN_VECTOR];
    uint32_t first = KILN_VECTOR;
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (uint32_t i = KILN_VECTOR; i-- > 0;)
        first = values[i] <= below ? first : i;
    return first;
}

/* The column of the thread's first element that has the key, which no element exceeds; NOWHERE if none has. */
KILN_INLINE uint32_t first_with(uint32_t key, kiln_span s, const kiln_element *x, const kiln_vector *held) {
    float below = bound_below(key);
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        uint32_t first = first_above(below, held[k]);
        if (first < KILN_VECTOR) return (uint32_t)s.start + vector * KILN_VECTOR + first;
    }
    KILN_LOOP
    KILN_FOR_UNHELD(s, vector) {
        uint32_t first = first_above(below, kiln_vector_load(x + vector * KILN_VECTOR));
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

/* The greatest key among 1 << lanes_log2 threads of a subgroup. */
KILN_INLINE uint32_t greatest_of_subgroup(uint32_t key, uint32_t lanes_log2) {
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_SUBGROUP_LOG2; i++)
        if (i < lanes_log2) key = greater(key, kiln_bits(kiln_of_other_half(kiln_float(key), i)));
    return key;
}

KILN_INLINE uint32_t greatest_of_row_of(uint32_t key, uint32_t lanes_log2, uint32_t exchange[KILN_SUBGROUPS]) {
    key = greatest_of_subgroup(key, lanes_log2);
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = key;
    kiln_barrier();
    if (lanes_log2 <= KILN_SUBGROUP_LOG2) return key;
    return greatest_of_subgroup(exchange[kiln_row_subgroup(lanes_log2)], kiln_row_subgroups_log2(lanes_log2));
}

/* The greatest key among the threads that share a row. exchange is shared memory. */
KILN_INLINE uint32_t greatest_of_row(uint32_t key, uint32_t lanes_log2, uint32_t exchange[KILN_SUBGROUPS]) {
    if (KILN_ROW_OF_BLOCK && lanes_log2 == KILN_BLOCK_LOG2) return greatest_of_row_of(key, KILN_BLOCK_LOG2, exchange);
    return greatest_of_row_of(key, lanes_log2, exchange);
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
    kiln_vector held[KILN_HELD];
    if (!finish) kiln_hold(held, s, x);
    uint32_t key = finish ? greatest_of_partials(partials, args.chunks) : greatest_of(s, x, held);
    uint32_t greatest = greatest_of_row(key, lanes_log2, exchange);
    if (key == greatest)
        kiln_shared_min(first, finish ? first_partial_with(key, partials, args.chunks) : first_with(key, s, x, held));
    kiln_barrier();

    if ((kiln_thread() & (s.lanes - 1)) != 0 || s.row >= (uint64_t)args.shape.rows) return;
    if (args.phase == KILN_ARGMAX_PARTIAL)
        partials[kiln_tile()] = (kiln_argmax_best){greatest, *first};
    else
        args.y[s.row] = (int32_t)*first;
}
