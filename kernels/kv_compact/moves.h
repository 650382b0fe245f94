/* Which rows of the cache kv_compact moves, one source for all backends. The includer (device.h, cpu.h) defines
 * KILN_INLINE. */
#ifndef KILN_KERNELS_KV_COMPACT_MOVES_H
#define KILN_KERNELS_KV_COMPACT_MOVES_H

#include "kernels/common/index.h"
#include "kernels/kv_compact/kv_compact_args.h"

/* How many nodes of a sequence's path were accepted. */
KILN_INLINE uint32_t kiln_accepted(const kiln_kv_compact_args *args, uint64_t sequence) {
    int32_t accepted = args->accepted[sequence];
    uint32_t most = args->depth < args->nodes ? args->depth : args->nodes;
    return accepted <= 0 ? 0 : (uint32_t)accepted < most ? (uint32_t)accepted : most;
}

typedef struct kiln_move {
    uint64_t from;
    uint64_t to;
} kiln_move;

/* The move of the path's i-th node from its row to that of node i. The two are equal if there is nothing to move. */
KILN_INLINE kiln_move kiln_move_of(const kiln_kv_compact_args *args, uint64_t sequence, uint32_t i) {
    const kiln_move none = {0, 0};
    uint32_t node = (uint32_t)args->path[sequence * args->depth + i];
    if (node >= args->nodes) return none;
    kiln_move move;
    move.from = kiln_index(args->slot_mapping, args->slots_64, sequence * args->nodes + node);
    move.to = kiln_index(args->slot_mapping, args->slots_64, sequence * args->nodes + i);
    return move.from < (uint64_t)args->capacity && move.to < (uint64_t)args->capacity ? move : none;
}

#endif
