/* log_softmax on the CPU: the operator's definition. log_softmax_gpu.c says what its blocks do.
 *
 * There are three passes over a row, or over a chunk of a long one, which is at most 32 KiB and stays in a cache: the
 * maximum, the sum of exp(x - origin), the result, a tile at a time. Sums have KILN_LANES accumulators on every
 * level.
 *
 * Floor: one read and one write of the tensor at memory bandwidth; long rows two reads and one write.
 * Test: build/tests/ops/log_softmax_test. Bench: build/kiln bench log_softmax --device cpu */
#include "kernels/common/reduce/row_cpu.h"

#include "kernels/common/math/logarithm.h"
#include "kernels/log_softmax/log_softmax_args.h"

KILN_INLINE float origin_of(float max) {
    return max < KILN_INFINITY && max > -KILN_INFINITY ? max : 0.0f;
}

/* e^(x - origin); infinity if x is greater than the origin, as in a row that has an infinite element. */
KILN_INLINE float exp_of(float x, float origin) {
    float y = kiln_exp_difference(x > origin ? origin : x, origin);
    return x > origin ? KILN_INFINITY : y;
}

/* The sum relative to another origin. 0, infinity and NaN stay what they are. */
KILN_INLINE float moved(float sum, float from, float origin) {
    return sum > 0.0f && sum < KILN_INFINITY ? sum * exp_of(from, origin) : sum;
}

KILN_INLINE float sum_of(const void *x, size_t count, float origin, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE], exps[KILN_TILE], sum[KILN_LANES] = {0};
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE), whole = n / KILN_LANES * KILN_LANES;
        const float *values = kiln_tile_load(tile, kiln_at(x, start, dtype), n, dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            exps[i] = exp_of(values[i], origin);
        for (size_t i = 0; i < whole; i += KILN_LANES)
            for (size_t lane = 0; lane < KILN_LANES; lane++)
                sum[lane] += exps[i + lane]; /* set above, since whole <= n: NOLINT(clang-analyzer-core.*) */
        for (size_t i = whole; i < n; i++)
            sum[i - whole] += exps[i]; /* NOLINT(clang-analyzer-core.*) */
    }
    return kiln_lanes_sum(sum);
}

KILN_INLINE kiln_log_softmax_partial partial_of(const void *x, size_t count, kiln_cpu_dtype dtype) {
    float origin = origin_of(kiln_row_max(x, count, true, dtype));
    return (kiln_log_softmax_partial){origin, sum_of(x, count, origin, dtype)};
}

/* The origin and the sum of a row from those of its chunks. A chunk whose sum is infinite has the origin 0. */
KILN_INLINE kiln_log_softmax_partial total_of(const kiln_log_softmax_partial *partials, uint32_t count) {
    kiln_log_softmax_partial total = {-KILN_INFINITY, 0.0f};
    for (uint32_t i = 0; i < count; i++)
        if (partials[i].sum != 0.0f) total.origin = kiln_max(partials[i].origin, total.origin);
    total.origin = origin_of(total.origin);
    for (uint32_t i = 0; i < count; i++)
        total.sum += moved(partials[i].sum, partials[i].origin, total.origin);
    return total;
}

KILN_INLINE void put(void *y, const void *x, size_t count, float origin, float log_sum, kiln_cpu_dtype dtype,
                     bool nontemporal) {
    float tile[KILN_TILE], results[KILN_TILE];
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const float *values = kiln_tile_load(tile, kiln_at(x, start, dtype), n, dtype);
        void *target_at = kiln_at_mut(y, start, dtype);
        float *target = kiln_tile_target(results, target_at, dtype, nontemporal);
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            target[i] = values[i] - origin - log_sum;
        kiln_tile_write(target_at, target, n, dtype, nontemporal);
    }
}

KILN_OUTLINED void log_softmax(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_log_softmax_args args =
        *(const kiln_log_softmax_args *)arguments; /* a copy, which no store can change */
    bool nontemporal = args.y && kiln_is_nontemporal(&args.shape, dtype);
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            const void *x = kiln_at(args.x, work.row * (uint64_t)args.x_stride + work.col, dtype);
            size_t count = work.col_end - work.col;
            kiln_log_softmax_partial *partials = args.partials + work.row * args.chunks;
            if (args.phase == KILN_LOG_SOFTMAX_PARTIAL) {
                partials[work.tile] = partial_of(x, count, dtype);
                continue;
            }
            kiln_log_softmax_partial total =
                args.phase == KILN_LOG_SOFTMAX_FINISH ? total_of(partials, args.chunks) : partial_of(x, count, dtype);
            float log_sum = total.sum < KILN_INFINITY && total.sum > 0.0f ? kiln_log(total.sum)
                            : total.sum == 0.0f                           ? -KILN_INFINITY
                                                                          : total.sum;
            if (work.tile == 0) args.lse[work.row] = total.origin + log_sum;
            if (total.sum == 0.0f) log_sum = 0.0f;
            if (total.sum == KILN_INFINITY) log_sum = __builtin_nanf("");
            if (args.y)
                put(kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride + work.col, dtype), x, count, total.origin,
                    log_sum, dtype, nontemporal);
        }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(log_softmax)
