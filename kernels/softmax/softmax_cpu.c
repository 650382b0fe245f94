/* softmax on the CPU, and its definition: see softmax_gpu.c for the kernels and the meaning of their groups.
 *
 * A row, or a chunk of a long one, is passed over three times, a tile at a time: its maximum, the sum of exp(x - max),
 * the result. It comes from memory once, since a row in a chunk is at most 32 KiB. Reductions run in KILN_LANES
 * accumulators, on every level alike.
 *
 * Floor: one read and one write of the tensor at memory bandwidth; long rows two reads and one write.
 * Test: build/tests/ops/softmax_test */
#include "kernels/common/cpu.h"
#include "kernels/softmax/softmax_args.h"

typedef struct lanes {
    float values[KILN_LANES];
} lanes;

/* Reads a tile and pads it with -inf to a multiple of KILN_LANES, which is returned. */
KILN_INLINE size_t load_padded(float *tile, const void *x, size_t count, kiln_cpu_part part) {
    kiln_tile_load(tile, x, count, part);
    size_t padded = (count + KILN_LANES - 1) / KILN_LANES * KILN_LANES;
    for (size_t i = count; i < padded; i++)
        tile[i] = -KILN_INFINITY;
    return padded;
}

/* 16 bits of a result do not show what the subtraction loses. */
KILN_INLINE float exp_of(float x, float max, kiln_cpu_part part) {
    return part == KILN_CPU_f32 ? kiln_exp_difference(x, max) : kiln_exp(x - max);
}

KILN_INLINE float max_of(const void *x, size_t count, kiln_cpu_part part) {
    float tile[KILN_TILE], max[KILN_LANES];
    for (int lane = 0; lane < KILN_LANES; lane++)
        max[lane] = -KILN_INFINITY;
    for (size_t i = 0; i < count; i += KILN_TILE) {
        size_t n = count - i < KILN_TILE ? count - i : KILN_TILE;
        n = load_padded(tile, kiln_at(x, (int64_t)i, part), n, part);
        for (size_t j = 0; j < n; j += KILN_LANES)
            for (int lane = 0; lane < KILN_LANES; lane++)
                max[lane] = kiln_max(tile[j + (size_t)lane], max[lane]);
    }
    for (int lane = 1; lane < KILN_LANES; lane++)
        max[0] = kiln_max(max[lane], max[0]);
    return max[0];
}

KILN_INLINE float sum_of(const void *x, size_t count, float max, kiln_cpu_part part) {
    float tile[KILN_TILE], sum[KILN_LANES] = {0};
    for (size_t i = 0; i < count; i += KILN_TILE) {
        size_t n = count - i < KILN_TILE ? count - i : KILN_TILE;
        n = load_padded(tile, kiln_at(x, (int64_t)i, part), n, part);
        for (size_t j = 0; j < n; j += KILN_LANES)
            for (int lane = 0; lane < KILN_LANES; lane++)
                sum[lane] += exp_of(tile[j + (size_t)lane], max, part);
    }
    for (int half = KILN_LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            sum[lane] += sum[lane + half];
    return sum[0];
}

/* Writes exp(x - max) * scale. */
KILN_INLINE void put(void *y, const void *x, size_t count, float max, float scale, kiln_cpu_part part) {
    float tile[KILN_TILE];
    for (size_t i = 0; i < count; i += KILN_TILE) {
        size_t n = count - i < KILN_TILE ? count - i : KILN_TILE;
        kiln_tile_load(tile, kiln_at(x, (int64_t)i, part), n, part);
        for (size_t j = 0; j < n; j++)
            tile[j] = exp_of(tile[j], max, part) * scale;
        kiln_tile_store(kiln_at_mut(y, (int64_t)i, part), tile, n, part);
    }
}

KILN_INLINE float finite_max(float max) {
    return max == -KILN_INFINITY ? 0.0f : max;
}
KILN_INLINE float scale_of(float sum) {
    return sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
}

KILN_INLINE void softmax_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_softmax_args *args = arguments;
    int64_t block_rows = KILN_GROUP >> args->lanes_log2;
    int64_t end = (int64_t)span->end * block_rows;
    if (end > args->rows) end = args->rows;
    for (int64_t row = (int64_t)span->begin * block_rows; row < end; row++) {
        const void *x = kiln_at(args->x, row * args->x_stride, part);
        float max = finite_max(max_of(x, (size_t)args->cols, part));
        float scale = scale_of(sum_of(x, (size_t)args->cols, max, part));
        put(kiln_at_mut(args->y, row * args->y_stride, part), x, (size_t)args->cols, max, scale, part);
    }
}
KILN_CPU_KERNEL(softmax_rows)

/* The chunk of a row that a group does: its first element and its length. */
KILN_INLINE size_t chunk_of(const kiln_softmax_args *args, kiln_cpu_group group, int64_t *out_start) {
    *out_start = (int64_t)group.tile * args->chunk;
    int64_t left = args->cols - *out_start;
    return left < args->chunk ? (size_t)left : args->chunk;
}

KILN_INLINE void softmax_partial(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_softmax_args *args = arguments;
    for (uint64_t i = span->begin; i < span->end; i++) {
        kiln_cpu_group group = kiln_group_at(span, i);
        if (group.block >= (uint64_t)args->rows) return;
        int64_t start, row = (int64_t)group.block;
        size_t count = chunk_of(args, group, &start);
        const void *x = kiln_at(args->x, row * args->x_stride + start, part);
        kiln_softmax_partial *partial = args->partials + group.block * args->chunks + group.tile;
        partial->max = max_of(x, count, part);
        partial->sum = sum_of(x, count, finite_max(partial->max), part);
    }
}
KILN_CPU_KERNEL(softmax_partial)

KILN_INLINE void softmax_finish(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_softmax_args *args = arguments;
    for (uint64_t i = span->begin; i < span->end; i++) {
        kiln_cpu_group group = kiln_group_at(span, i);
        if (group.block >= (uint64_t)args->rows) return;
        const kiln_softmax_partial *partials = args->partials + group.block * args->chunks;
        float max = -KILN_INFINITY, sum = 0.0f;
        for (uint32_t j = 0; j < args->chunks; j++)
            max = kiln_max(partials[j].max, max);
        max = finite_max(max);
        for (uint32_t j = 0; j < args->chunks; j++)
            sum += partials[j].sum * kiln_exp(partials[j].max - max);

        int64_t start, row = (int64_t)group.block;
        size_t count = chunk_of(args, group, &start);
        put(kiln_at_mut(args->y, row * args->y_stride + start, part),
            kiln_at(args->x, row * args->x_stride + start, part), count, max, scale_of(sum), part);
    }
}
KILN_CPU_KERNEL(softmax_finish)
