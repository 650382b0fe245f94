/* softmax_update on the CPU: the operator's definition. softmax_update_gpu.c says what its blocks do.
 *
 * There are two passes over a row, a tile at a time: the maximum, and the sum of exp(x - origin). A tile's sum has
 * KILN_LANES accumulators on every level and is added to the row's sum, which is two floats.
 *
 * Floor: one read of the scores at memory bandwidth, and a second one from a cache.
 * Test: build/tests/ops/softmax_update_test. Bench: build/kiln bench softmax_update --device cpu */
#include "kernels/common/reduce/row_cpu.h"

#define KILN_LOOP
#include "kernels/softmax_update/state.h"

KILN_INLINE kiln_online_sum tile_sum(const float *values, size_t n, float origin) {
    float weights[KILN_TILE], sum[KILN_LANES] = {0};
    size_t whole = n / KILN_LANES * KILN_LANES;
    KILN_INDEPENDENT
    for (size_t i = 0; i < n; i++)
        weights[i] = kiln_online_weight(values[i], origin);
    for (size_t i = 0; i < whole; i += KILN_LANES)
        for (size_t lane = 0; lane < KILN_LANES; lane++)
            sum[lane] += weights[i + lane]; /* set above, since whole <= n: NOLINT(clang-analyzer-core.*) */
    for (size_t i = whole; i < n; i++)
        sum[i - whole] += weights[i]; /* NOLINT(clang-analyzer-core.*) */
    return (kiln_online_sum){kiln_lanes_sum(sum), 0.0f};
}

KILN_INLINE kiln_online_sum sum_of(const void *x, size_t count, float origin, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE];
    kiln_online_sum sum = {0.0f, 0.0f};
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const float *values = kiln_tile_load(tile, kiln_at(x, start, dtype), n, dtype);
        sum = kiln_online_add(sum, tile_sum(values, n, origin));
    }
    return sum;
}

KILN_OUTLINED void softmax_update(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_softmax_update_args args =
        *(const kiln_softmax_update_args *)arguments; /* a copy, which no store can change */
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            const void *x = kiln_at(args.x, work.row * (uint64_t)args.x_stride, dtype);
            size_t count = (size_t)args.shape.cols;
            kiln_online_state before = kiln_state_of(args.before, work.row, args.shape.rows);
            kiln_online_state other = kiln_state_of(args.other, work.row, args.shape.rows);
            float max = kiln_max(other.max, kiln_max(before.max, kiln_row_max(x, count, true, dtype)));
            kiln_online_state scores = {max, sum_of(x, count, kiln_online_origin(max), dtype)};
            kiln_state_put(&args, work.row, before, other, scores, max);
        }
}
KILN_CPU_KERNEL(softmax_update)
