/* rope on the CPU: the operator's definition. rope_gpu.c says what its blocks do.
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/rope_test. Bench: build/kiln bench rope --device cpu */
#include "kernels/common/rotary/rotate_cpu.h"

#include "kernels/common/index.h"
#include "kernels/rope/rope_args.h"

KILN_OUTLINED void rope(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_rope_args args = *(const kiln_rope_args *)arguments; /* a copy, which no store can change */
    uint64_t count = (uint64_t)KILN_ROPE_HEADS << args.slots_log2, tiles = span->grid[0];
    uint32_t tokens_log2 = KILN_BLOCK_LOG2 - args.lanes_log2 - args.slots_log2; /* of a block */
    bool nontemporal = kiln_heads_are_nontemporal((uint64_t)args.tokens * args.heads, args.pairs, dtype);
    for (uint64_t work = span->begin << tokens_log2; work < span->end << tokens_log2; work++) {
        uint64_t block = work >> tokens_log2, first = block % tiles * count;
        uint64_t token = (block / tiles << tokens_log2) + (work & ((1u << tokens_log2) - 1));
        if (token >= (uint64_t)args.tokens || first >= args.heads) continue;
        uint64_t position = args.positions ? kiln_index(args.positions, args.positions_64, token) : token;
        bool by_table = args.source != KILN_TURN_BY_FREQUENCY;
        bool inside = !by_table || position < (uint64_t)args.table_rows;
        uint64_t row = by_table && inside ? position * (uint64_t)args.table_stride : 0;
        kiln_cpu_dtype of_table = args.source == KILN_TURN_BY_TABLE_F32 ? KILN_CPU_f32 : dtype;
        const kiln_heads heads = {
            .y = kiln_at_mut(args.y, token * (uint64_t)args.y_stride, dtype),
            .x = kiln_at(args.x, token * (uint64_t)args.x_stride, dtype),
            .y_head_stride = args.y_head_stride,
            .x_head_stride = args.x_head_stride,
            .first = (uint32_t)first,
            .end = (uint32_t)kiln_min(first + count, args.heads),
            .pairs = args.pairs,
            .step = args.step,
            .frequencies = args.frequencies,
            .cosines = kiln_at(args.cosines, row, of_table),
            .sines = kiln_at(args.sines, row, of_table),
            .scale = args.scale,
            .source = inside ? args.source : KILN_TURN_BY_NOTHING,
            .nontemporal = nontemporal,
        };
        const kiln_place place = {{position}, args.pairs, args.pairs};
        kiln_turn_heads(&heads, &place, dtype);
    }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(rope)
