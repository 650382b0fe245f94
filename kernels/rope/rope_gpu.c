/* rope: each pair of a head's elements is turned by the token's position times the pair's frequency; see rotate_gpu.h.
 *
 * A block does some of one token's heads: 1 << lanes_log2 threads share a head, so that small ones leave none idle.
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/rope_test. Bench: build/kiln bench rope */
#include "kernels/common/rotate_gpu.h"
#include "kernels/rope/rope_args.h"

KILN_ENTRY(rope, kiln_rope_args) {
    uint32_t lanes = 1u << args.lanes_log2, lane = kiln_thread() & (lanes - 1);
    uint32_t head = kiln_tile() * (KILN_BLOCK >> args.lanes_log2) + (kiln_thread() >> args.lanes_log2);
    uint64_t token = kiln_block();
    if (head >= args.heads || token >= (uint64_t)args.tokens) return;
    kiln_pairs pairs = {args.frequencies, args.pairs, args.step, args.wide};
    kiln_place place = {{(uint64_t)args.positions[token], 0, 0}, args.pairs, args.pairs};
    const kiln_element *x = (const kiln_element *)args.x + token * (uint64_t)args.x_stride;
    kiln_element *y = (kiln_element *)args.y + token * (uint64_t)args.y_stride;
    kiln_turn_head(&pairs, &place, y + head * (uint64_t)args.y_head_stride, x + head * (uint64_t)args.x_head_stride,
                   lane, lanes);
}
