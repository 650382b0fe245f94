/* kv_compact: the keys and values of a tree's accepted nodes, moved to the rows of its first nodes, bit by bit.
 *
 * A sequence is a row: a block moves a tile of the tokens of several sequences, as in add_gelu, with up to four vectors
 * of 16 bytes for each thread. A thread moves its vectors of one node after the other, in the order of the path: nodes
 * ascend, so that a row is read before another node is moved there, and threads need not wait for each other.
 *
 * Floor: one read and one write of the accepted tokens' keys and values at memory bandwidth; for few tokens, the
 * launch.
 * Test: build/tests/ops/kv_compact_test. Bench: build/kiln bench kv_compact */
#include "kernels/common/span.h"

#include "kernels/kv_compact/moves.h"

KILN_INLINE void move_row(kiln_span s, void *cache, kiln_move move, int64_t stride) {
    const kiln_element *source = (const kiln_element *)cache + move.from * (uint64_t)stride + s.start;
    kiln_element *target = (kiln_element *)cache + move.to * (uint64_t)stride + s.start;
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector)
    kiln_vector_store(target + vector * KILN_VECTOR, kiln_vector_load(source + vector * KILN_VECTOR));
    KILN_LOOP
    KILN_FOR_REST(s, i)
    target[i] = source[i];
}

KILN_ENTRY(kv_compact, kiln_kv_compact_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    uint32_t accepted = kiln_accepted(&args, s.row);
    KILN_LOOP
    for (uint32_t i = 0; i < accepted; i++) {
        kiln_move move = kiln_move_of(&args, s.row, i);
        if (move.from == move.to) continue;
        move_row(s, args.key_cache, move, args.key_cache_stride);
        move_row(s, args.value_cache, move, args.value_cache_stride);
    }
}
