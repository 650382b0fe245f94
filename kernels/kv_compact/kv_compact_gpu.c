/* kv_compact: the keys and values of a tree's accepted nodes, moved to the rows of its first nodes, bit by bit.
 *
 * A sequence is a row: a block moves a tile of the tokens of several sequences, with one vector of 16 bytes for each
 * thread. A thread reads its vectors of four nodes of the path, keys and values, before it writes one of them, so that
 * the latency of the memory is waited for once for four nodes and eight vectors of a thread are under way. The nodes of
 * a path ascend, so that a row is read before another node is moved there, and threads need not wait for each other.
 *
 * Floor: one read and one write of the accepted tokens' keys and values at memory bandwidth; for few tokens, the
 * launch and the three reads one after the other that a move takes: of the path, the slots and the tokens. Not
 * measured: kiln bench's random paths hardly move a token, so that 106 us for 262144 sequences (H100 80GB HBM3, driver
 * 580.159.04, 2026-11-26), with the tokens moved one by one, were those of paths and slots.
 * Test: build/tests/ops/kv_compact_test. Bench: build/kiln bench kv_compact */
#include "kernels/common/span.h"

#include "kernels/kv_compact/moves.h"

enum { FOUR = 4 }; /* nodes */

/* The rows of the path's nodes from `first` on, all asked for at once: nodes that are not there are read from the
 * places of others, and moved nowhere. */
KILN_INLINE void moves_of(kiln_move *moves, const kiln_kv_compact_args *args, uint64_t row, uint32_t first,
                          uint32_t accepted, uint32_t slots_64) {
    uint64_t slots = row * args->nodes;
    const int32_t *path = args->path + row * args->depth;
    uint32_t places[FOUR], nodes[FOUR];
    KILN_UNROLL
    for (uint32_t i = 0; i < FOUR; i++) {
        places[i] = first + i < accepted ? first + i : first;
        nodes[i] = (uint32_t)path[places[i]];
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < FOUR; i++) {
        uint32_t node = nodes[i] < args->nodes ? nodes[i] : first;
        moves[i].from = kiln_index(args->slot_mapping, slots_64, slots + node);
        moves[i].to = kiln_index(args->slot_mapping, slots_64, slots + places[i]);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < FOUR; i++) {
        bool present = (first + i < accepted) & (nodes[i] < args->nodes) & (moves[i].from < (uint64_t)args->capacity) &
                       (moves[i].to < (uint64_t)args->capacity);
        if (!present) moves[i].from = moves[i].to;
    }
}

/* A cache at the thread's first column. */
typedef struct column {
    kiln_element *first;
    uint64_t stride;
} column;

KILN_INLINE column column_of(kiln_span s, void *cache, int64_t stride) {
    return (column){(kiln_element *)cache + s.start, (uint64_t)stride};
}

KILN_INLINE void move_vectors(column keys, column values, const kiln_move *moves, uint32_t element) {
    kiln_vector moved_keys[FOUR], moved_values[FOUR];
    KILN_UNROLL
    for (uint32_t i = 0; i < FOUR; i++) {
        if (moves[i].from == moves[i].to) continue;
        moved_keys[i] = kiln_vector_load(keys.first + moves[i].from * keys.stride + element);
        moved_values[i] = kiln_vector_load(values.first + moves[i].from * values.stride + element);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < FOUR; i++) {
        if (moves[i].from == moves[i].to) continue;
        kiln_vector_store(keys.first + moves[i].to * keys.stride + element, moved_keys[i]);
        kiln_vector_store(values.first + moves[i].to * values.stride + element, moved_values[i]);
    }
}

/* What is not moved in vectors, node by node. */
KILN_INLINE void move_rest(const kiln_kv_compact_args *args, kiln_span s, column keys, column values,
                           uint32_t accepted) {
    KILN_LOOP
    for (uint32_t node = 0; node < accepted; node++) {
        kiln_move move = kiln_move_of(args, s.row, node);
        if (move.from == move.to) continue;
        KILN_LOOP
        KILN_FOR_REST(s, i) {
            keys.first[move.to * keys.stride + i] = keys.first[move.from * keys.stride + i];
            values.first[move.to * values.stride + i] = values.first[move.from * values.stride + i];
        }
    }
}

KILN_ENTRY(kv_compact, kiln_kv_compact_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    uint32_t accepted = kiln_accepted(&args, s.row);
    const column keys = column_of(s, args.key_cache, args.key_cache_stride);
    const column values = column_of(s, args.value_cache, args.value_cache_stride);
    KILN_LOOP
    for (uint32_t first = 0; first < accepted; first += FOUR) {
        kiln_move moves[FOUR];
        if (args.slots_64)
            moves_of(moves, &args, s.row, first, accepted, 1);
        else
            moves_of(moves, &args, s.row, first, accepted, 0);
        KILN_LOOP
        KILN_FOR_WHOLE(s, vector)
        move_vectors(keys, values, moves, vector * KILN_VECTOR);
    }
    if (s.whole * KILN_VECTOR < s.count) move_rest(&args, s, keys, values, accepted);
}
