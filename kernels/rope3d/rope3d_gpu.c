/* rope3d: each pair of a head's elements is rotated by its frequency times the token's position on one of three axes;
 * see rotate_gpu.h. The tokens of a sequence lie in the order of frames, rows and columns; those after the grid's last
 * are copied.
 *
 * A block rotates several heads of one token: 1 << lanes_log2 threads share a head, so that small heads leave no thread
 * idle.
 *
 * Positions of 32 bits: each product with a frequency would take AMD's vector unit a third multiplication, four turns,
 * if they had 64.
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/rope3d_test. Bench: build/kiln bench rope3d */
#define KILN_POSITION uint32_t
#include "kernels/common/rotary/rotate_gpu.h"
#include "kernels/common/rotary/token_grid.h"
#include "kernels/rope3d/rope3d_args.h"

KILN_ENTRY(rope3d, kiln_rope3d_args) {
    uint32_t lanes = 1u << args.lanes_log2, lane = kiln_thread() & (lanes - 1);
    uint32_t head = kiln_tile() * (KILN_BLOCK >> args.lanes_log2) + (kiln_thread() >> args.lanes_log2);
    uint32_t row = (uint32_t)kiln_block(), sequence = row / args.tokens;
    if (head >= args.heads || sequence >= args.batch) return;
    kiln_pairs pairs = {args.frequencies, 0, 0, 1.0f, KILN_TURN_BY_FREQUENCY, true, args.pairs, args.step, args.wide};
    kiln_place place = {{0, 0, 0}, args.first, args.second};
    const kiln_element *x = (const kiln_element *)args.x + row * (uint64_t)args.x_stride;
    kiln_element *y = (kiln_element *)args.y + row * (uint64_t)args.y_stride;
    x += head * (uint64_t)args.x_head_stride;
    y += head * (uint64_t)args.y_head_stride;
    if (kiln_grid_place(args.grids + 3 * sequence, row % args.tokens, &place)) {
        const kiln_heads heads = {y, x, 0, 0, 1};
        kiln_turn_heads(&pairs, &place, &heads, lane, lanes);
        return;
    }
    KILN_LOOP
    for (uint32_t i = lane; i < 2 * args.pairs; i += lanes)
        y[i] = x[i];
}
