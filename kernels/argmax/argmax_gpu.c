/* argmax: the column of each row's greatest element, of equal ones the first; a NaN counts as greater than all.
 *
 * Elements are compared as integer keys (total_order.h), so that the answer is the same whatever the order in which
 * threads meet. Narrow rows take 1 to 32 threads each and reduce by shuffles alone; others take the block. Rows of more
 * than a chunk, of which a decoding step has one or a few, are launched twice: KILN_ARGMAX_PARTIAL writes the best of
 * each chunk into the workspace, KILN_ARGMAX_FINISH the best of these.
 *
 * Floor: one read of the tensor at memory bandwidth.
 * Test: build/tests/ops/argmax_test. Bench: build/kiln bench argmax */
#include "kernels/argmax/argmax_args.h"
#include "kernels/common/reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/total_order.h"

/* Without && and ||, of which nvcc makes branches for some targets. */
KILN_INLINE void consider(kiln_argmax_best *best, uint32_t key, uint32_t col) {
    bool better = (key > best->key) | ((key == best->key) & (col < best->col));
    best->key = better ? key : best->key;
    best->col = better ? col : best->col;
}

KILN_INLINE kiln_argmax_best best_of(kiln_span s, const kiln_element *x) {
    kiln_argmax_best best = {0, 0xffffffffu};
    float values[4];
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector held = kiln_vector_load(x + vector * KILN_VECTOR);
        uint32_t col = (uint32_t)s.start + vector * KILN_VECTOR;
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++, col += 4) {
            kiln_quad_take(&held, values);
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                consider(&best, kiln_order_key(values[i]), col + i);
        }
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    consider(&best, kiln_order_key(kiln_element_to_f32(x[i])), (uint32_t)s.start + i);
    return best;
}

/* The thread's share of a row's chunks. */
KILN_INLINE kiln_argmax_best best_of_partials(const kiln_argmax_best *partials, uint32_t chunks) {
    kiln_argmax_best best = {0, 0xffffffffu};
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_BLOCK)
        consider(&best, partials[i].key, partials[i].col);
    return best;
}

/* The best of the threads that share a row; exchange is shared memory of KILN_SUBGROUPS. */
KILN_INLINE kiln_argmax_best reduce(kiln_argmax_best best, uint32_t lanes_log2, kiln_argmax_best *exchange) {
    uint32_t lanes = lanes_log2 < KILN_SUBGROUP_LOG2 ? 1u << lanes_log2 : KILN_SUBGROUP;
    KILN_LOOP
    for (uint32_t mask = 1; mask < lanes; mask *= 2) {
        uint32_t key = kiln_bits(kiln_shuffle_xor(kiln_float(best.key), mask));
        uint32_t col = kiln_bits(kiln_shuffle_xor(kiln_float(best.col), mask));
        consider(&best, key, col);
    }
    if (lanes_log2 <= KILN_SUBGROUP_LOG2) return best;

    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = best;
    kiln_barrier();
    KILN_LOOP
    for (int i = 0; i < KILN_SUBGROUPS; i++)
        consider(&best, exchange[i].key, exchange[i].col);
    return best;
}

KILN_ENTRY(argmax, kiln_argmax_args) {
    KILN_SHARED kiln_argmax_best exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    kiln_argmax_best *partials = args.partials + s.row * args.chunks;

    /* A row beyond the last takes part, empty: reductions are of all threads. */
    kiln_argmax_best best = args.phase == KILN_ARGMAX_FINISH ? best_of_partials(partials, args.chunks)
                                                             : best_of(s, kiln_span_of_input(s, args.x, args.x_stride));
    best = reduce(best, lanes_log2, exchange);

    if ((kiln_thread() & (s.lanes - 1)) != 0 || s.row >= (uint64_t)args.shape.rows) return;
    if (args.phase == KILN_ARGMAX_PARTIAL)
        partials[kiln_tile()] = best;
    else
        args.y[s.row] = (int32_t)best.col;
}
