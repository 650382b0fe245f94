/* rope3d on the CPU: the operator's definition. rope3d_gpu.c says what its blocks do.
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/rope3d_test. Bench: build/kiln bench rope3d --device cpu */
#include "kernels/common/rotary/rotate_cpu.h"
#include "kernels/common/rotary/token_grid.h"
#include "kernels/rope3d/rope3d_args.h"

KILN_INLINE void copy_heads(const kiln_heads *heads, kiln_cpu_dtype dtype) {
    for (uint32_t head = heads->first; head < heads->end; head++)
        memmove(kiln_at_mut(heads->y, head * (uint64_t)heads->y_head_stride, dtype),
                kiln_at(heads->x, head * (uint64_t)heads->x_head_stride, dtype),
                2 * (size_t)heads->pairs * kiln_dtype_size(dtype));
}

KILN_OUTLINED void rope3d(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_rope3d_args args = *(const kiln_rope3d_args *)arguments; /* a copy, which no store can change */
    uint32_t count = KILN_BLOCK >> args.lanes_log2;
    bool nontemporal = kiln_heads_are_nontemporal((uint64_t)args.batch * args.tokens * args.heads, args.pairs, dtype);
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t row = block / span->grid[0], first = block % span->grid[0] * count, sequence = row / args.tokens;
        if (sequence >= args.batch) break;
        const kiln_heads heads = {
            .y = kiln_at_mut(args.y, row * (uint64_t)args.y_stride, dtype),
            .x = kiln_at(args.x, row * (uint64_t)args.x_stride, dtype),
            .y_head_stride = args.y_head_stride,
            .x_head_stride = args.x_head_stride,
            .first = (uint32_t)first,
            .end = (uint32_t)kiln_min(first + count, args.heads),
            .pairs = args.pairs,
            .step = args.step,
            .frequencies = args.frequencies,
            .scale = 1.0f,
            .source = KILN_TURN_BY_FREQUENCY,
            .nontemporal = nontemporal,
        };
        kiln_place place = {.first = args.first, .second = args.second};
        if (kiln_grid_place(args.grids + 3 * sequence, (uint32_t)(row % args.tokens), &place))
            kiln_turn_heads(&heads, &place, dtype);
        else
            copy_heads(&heads, dtype);
    }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(rope3d)
