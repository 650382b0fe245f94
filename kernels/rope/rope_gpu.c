/* rope: each pair of a head's elements is rotated by the token's position times the pair's frequency, or by a table's
 * cosine and sine; see rotate_gpu.h.
 *
 * A block rotates several heads of one token: 1 << lanes_log2 threads share a head, so that small heads leave no thread
 * idle.
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/rope_test. Bench: build/kiln bench rope */
#include "kernels/common/rotate_gpu.h"

#include "kernels/common/index.h"
#include "kernels/rope/rope_args.h"

KILN_ENTRY(rope, kiln_rope_args) {
    uint32_t lanes = 1u << args.lanes_log2, lane = kiln_thread() & (lanes - 1);
    uint32_t head = kiln_tile() * (KILN_BLOCK >> args.lanes_log2) + (kiln_thread() >> args.lanes_log2);
    uint64_t token = kiln_block();
    if (head >= args.heads || token >= (uint64_t)args.tokens) return;
    uint64_t position = args.positions ? kiln_index(args.positions, args.positions_64, token) : token;
    const kiln_element *x = (const kiln_element *)args.x + token * (uint64_t)args.x_stride;
    kiln_element *y = (kiln_element *)args.y + token * (uint64_t)args.y_stride;
    x += head * (uint64_t)args.x_head_stride;
    y += head * (uint64_t)args.y_head_stride;
    kiln_pairs pairs = {args.frequencies, args.cosines, args.sines, args.scale,
                        args.source,      args.pairs,   args.step,  args.wide};
    kiln_place place = {{position, 0, 0}, args.pairs, args.pairs};
    if (args.source != KILN_TURN_BY_FREQUENCY) {
        bool inside = position < (uint64_t)args.table_rows;
        uint64_t row = inside ? position * (uint64_t)args.table_stride : 0;
        row *= args.source == KILN_TURN_BY_TABLE_F32 ? sizeof(float) : sizeof(kiln_element);
        pairs.cosines = (const char *)args.cosines + row;
        pairs.sines = (const char *)args.sines + row;
        if (!inside) pairs.source = KILN_TURN_BY_NOTHING;
    }
    kiln_turn_head(&pairs, &place, y, x, lane, lanes);
}
