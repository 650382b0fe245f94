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
        n = load_padded(tile, kiln_at(x, i, part), n, part);
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
        n = load_padded(tile, kiln_at(x, i, part), n, part);
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
        kiln_tile_load(tile, kiln_at(x, i, part), n, part);
        for (size_t j = 0; j < n; j++)
            tile[j] = exp_of(tile[j], max, part) * scale;
        kiln_tile_store(kiln_at_mut(y, i, part), tile, n, part);
    }
}

KILN_INLINE float max_of_partials(const kiln_softmax_partial *partials, uint32_t chunks) {
    float max = -KILN_INFINITY;
    for (uint32_t i = 0; i < chunks; i++)
        max = kiln_max(partials[i].max, max);
    return max;
}

KILN_INLINE float sum_of_partials(const kiln_softmax_partial *partials, uint32_t chunks, float max) {
    float sum = 0.0f;
    for (uint32_t i = 0; i < chunks; i++)
        sum = KILN_FMA(partials[i].sum, kiln_exp(partials[i].max - max), sum);
    return sum;
}

/* A short row, or the chunk of a long one that is tile. */
KILN_INLINE void softmax_row(const kiln_softmax_args *args, uint64_t row, uint64_t tile, kiln_cpu_part part) {
    uint64_t start = tile * args->chunk, left = (uint64_t)args->cols - start;
    size_t count = left < args->chunk ? left : args->chunk;
    const void *x = kiln_at(args->x, row * (uint64_t)args->x_stride + start, part);
    kiln_softmax_partial *partials = args->partials + row * args->chunks;
    bool finish = args->phase == KILN_SOFTMAX_FINISH;

    float max = finish ? max_of_partials(partials, args->chunks) : max_of(x, count, part);
    float origin = max == -KILN_INFINITY ? 0.0f : max;
    float sum = finish ? sum_of_partials(partials, args->chunks, origin) : sum_of(x, count, origin, part);
    if (args->phase == KILN_SOFTMAX_PARTIAL) {
        partials[tile].max = max;
        partials[tile].sum = sum;
    } else {
        put(kiln_at_mut(args->y, row * (uint64_t)args->y_stride + start, part), x, count, origin,
            sum == 0.0f ? 0.0f : kiln_reciprocal(sum), part);
    }
}

KILN_INLINE void softmax_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_softmax_args *args = arguments;
    for (uint64_t i = span->begin; i < span->end; i++) {
        kiln_cpu_group group = kiln_group_at(span, i);
        kiln_cpu_rows rows = kiln_rows_of(group, args->lanes_log2, (uint64_t)args->rows);
        for (uint64_t row = rows.begin; row < rows.end; row++)
            softmax_row(args, row, group.tile, part);
    }
}
KILN_CPU_KERNEL(softmax_rows)
