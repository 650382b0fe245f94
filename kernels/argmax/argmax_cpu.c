/* argmax on the CPU: the operator's definition. argmax_gpu.c says what its blocks do.
 *
 * Floor: one read of the tensor at memory bandwidth.
 * Test: build/tests/ops/argmax_test. Bench: build/kiln bench argmax --device cpu */
#include "kernels/argmax/argmax_args.h"
#include "kernels/common/cpu.h"
#include "kernels/common/reduce/total_order.h"

/* The best of count elements, the first of which is in column col. A tile is searched for the column only if it has a
 * new best. */
KILN_INLINE kiln_argmax_best best_of(const void *x, uint32_t col, size_t count, kiln_cpu_dtype dtype) {
    kiln_argmax_best best = {0, UINT32_MAX};
    float tile[KILN_TILE];
    uint32_t keys[KILN_TILE];
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE), i = 0;
        const float *values = kiln_tile_read(tile, kiln_at(x, start, dtype), n, dtype);
        uint32_t greatest = 0;
        KILN_INDEPENDENT
        for (size_t k = 0; k < n; k++)
            keys[k] = kiln_order_key(values[k]);
        for (size_t k = 0; k < n; k++)
            greatest = keys[k] > greatest ? keys[k] : greatest;
        if (greatest <= best.key) continue;
        while (keys[i] != greatest)
            i++;
        best = (kiln_argmax_best){greatest, col + (uint32_t)(start + i)};
    }
    return best;
}

KILN_INLINE kiln_argmax_best best_of_partials(const kiln_argmax_best *partials, uint32_t chunks) {
    kiln_argmax_best best = {0, UINT32_MAX};
    for (uint32_t i = 0; i < chunks; i++) /* in the order of their columns */
        best = partials[i].key > best.key ? partials[i] : best;
    return best;
}

KILN_OUTLINED void argmax(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_argmax_args args = *(const kiln_argmax_args *)arguments; /* a copy, which no store can change */
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            kiln_argmax_best *partials = args.partials + work.row * args.chunks;
            if (args.phase == KILN_ARGMAX_FINISH) {
                args.y[work.row] = (int32_t)best_of_partials(partials, args.chunks).col;
                continue;
            }
            const void *x = kiln_at(args.x, work.row * (uint64_t)args.x_stride + work.col, dtype);
            kiln_argmax_best best = best_of(x, (uint32_t)work.col, work.col_end - work.col, dtype);
            if (args.phase == KILN_ARGMAX_PARTIAL)
                partials[work.tile] = best;
            else
                args.y[work.row] = (int32_t)best.col;
        }
}
KILN_CPU_KERNEL(argmax)
