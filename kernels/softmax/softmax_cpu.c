/* softmax on the CPU, and its definition: see softmax_gpu.c for the kernels and the meaning of their groups.
 *
 * A row, or a chunk of a long one, is passed over three times, a tile at a time: its maximum, the sum of exp(x - max),
 * the result. It comes from memory once, since a chunk is at most 32 KiB. In f32 y holds exp(x - max) for the last
 * pass, which only scales; 16 bits would round it. Reductions run in KILN_LANES accumulators, on every level alike.
 *
 * Floor: one read and one write of the tensor at memory bandwidth; long rows two reads and one write.
 * Test: build/tests/ops/softmax_test */
#include "kernels/common/cpu.h"
#include "kernels/softmax/softmax_args.h"

/* 16 bits of a result do not show what the subtraction loses. */
KILN_INLINE float exp_of(float x, float max, kiln_cpu_part part) {
    return part == KILN_CPU_f32 ? kiln_exp_difference(x, max) : kiln_exp(x - max);
}

KILN_INLINE float max_of(const void *x, size_t count, kiln_cpu_part part) {
    float tile[KILN_TILE], max[KILN_LANES];
    for (size_t lane = 0; lane < KILN_LANES; lane++)
        max[lane] = -KILN_INFINITY;
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE), whole = n / KILN_LANES * KILN_LANES;
        const float *values = kiln_tile_read(tile, kiln_at(x, start, part), n, part);
        for (size_t i = 0; i < whole; i += KILN_LANES)
            for (size_t lane = 0; lane < KILN_LANES; lane++)
                max[lane] = kiln_max(values[i + lane], max[lane]);
        for (size_t i = whole; i < n; i++)
            max[i - whole] = kiln_max(values[i], max[i - whole]);
    }
    for (size_t lane = 1; lane < KILN_LANES; lane++)
        max[0] = kiln_max(max[lane], max[0]);
    return max[0];
}

/* The sum of the accumulators, which are lost. */
KILN_INLINE float total_of(float *sum) {
    for (size_t half = KILN_LANES / 2; half; half /= 2)
        for (size_t lane = 0; lane < half; lane++)
            sum[lane] += sum[lane + half];
    return sum[0];
}

/* The sum of exp(x - max). exps is NULL, or where to leave them. */
KILN_INLINE float sum_of(const void *x, float *exps, size_t count, float max, kiln_cpu_part part) {
    float tile[KILN_TILE], sum[KILN_LANES] = {0};
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE), whole = n / KILN_LANES * KILN_LANES;
        const float *values = kiln_tile_read(tile, kiln_at(x, start, part), n, part);
        float *results = exps ? exps + start : tile;
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            results[i] = exp_of(values[i], max, part);
        for (size_t i = 0; i < whole; i += KILN_LANES)
            for (size_t lane = 0; lane < KILN_LANES; lane++)
                sum[lane] += results[i + lane];
        for (size_t i = whole; i < n; i++)
            sum[i - whole] += results[i];
    }
    return total_of(sum);
}

/* Writes exp(x - max) * scale. */
KILN_INLINE void put(void *y, const void *x, size_t count, float max, float scale, kiln_cpu_part part, bool stream) {
    float tile[KILN_TILE];
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const float *values = kiln_tile_read(tile, kiln_at(x, start, part), n, part);
        float *result = kiln_tile_target(tile, kiln_at_mut(y, start, part), part, stream);
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            result[i] = exp_of(values[i], max, part) * scale;
        kiln_tile_write(kiln_at_mut(y, start, part), result, n, part, stream);
    }
}

KILN_INLINE float max_of_partials(const kiln_softmax_partial *partials, uint32_t chunks) {
    float max = -KILN_INFINITY;
    for (uint32_t i = 0; i < chunks; i++)
        max = kiln_max(partials[i].max, max);
    return max;
}

/* In lanes: one sum of 2048 partials would round so often that it alone used up the error that a result may have. */
KILN_INLINE float sum_of_partials(const kiln_softmax_partial *partials, uint32_t chunks, float max) {
    float sum[KILN_LANES] = {0};
    for (uint32_t i = 0; i < chunks; i++)
        sum[i % KILN_LANES] = KILN_FMA(partials[i].sum, kiln_exp(partials[i].max - max), sum[i % KILN_LANES]);
    return total_of(sum);
}

KILN_INLINE void scale_by(float *y, size_t count, float scale) {
    for (size_t i = 0; i < count; i++)
        y[i] *= scale;
}

/* A short row, or the chunk of a long one that the work's tile is. */
KILN_INLINE void softmax_row(const kiln_softmax_args *args, kiln_cpu_work work, kiln_cpu_part part, bool stream) {
    const void *x = kiln_at(args->x, work.row * (uint64_t)args->x_stride + work.col, part);
    void *y = kiln_at_mut(args->y, work.row * (uint64_t)args->y_stride + work.col, part);
    size_t count = work.col_end - work.col;
    kiln_softmax_partial *partials = args->partials + work.row * args->chunks;
    bool finish = args->phase == KILN_SOFTMAX_FINISH;
    bool keep = part == KILN_CPU_f32 && args->phase == KILN_SOFTMAX_ROWS; /* y holds exp(x - max) as it is */

    float max = finish ? max_of_partials(partials, args->chunks) : max_of(x, count, part);
    float origin = max == -KILN_INFINITY ? 0.0f : max;
    float sum =
        finish ? sum_of_partials(partials, args->chunks, origin) : sum_of(x, keep ? y : NULL, count, origin, part);
    float scale = sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
    if (args->phase == KILN_SOFTMAX_PARTIAL) {
        partials[work.tile].max = max;
        partials[work.tile].sum = sum;
    } else if (keep) {
        scale_by(y, count, scale);
    } else {
        put(y, x, count, origin, scale, part, stream);
    }
}

KILN_INLINE void softmax_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_softmax_args *args = arguments;
    bool stream = kiln_streams(&args->shape, part);
    for (uint64_t group = span->begin; group < span->end; group++)
        for (kiln_cpu_work work = kiln_work_of(&args->shape, span, group); work.row < work.row_end; work.row++)
            softmax_row(args, work, part, stream);
    if (stream) kiln_stream_fence();
}
KILN_CPU_KERNEL(softmax_rows)
