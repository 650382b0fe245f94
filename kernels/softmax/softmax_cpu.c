/* softmax on the CPU: the operator's definition. softmax_gpu.c has the kernels, and says what their blocks do.
 *
 * There are three passes over a row, or over a chunk of a long one: the maximum, the sum of exp(x - max), the
 * result, a tile at a time. The row comes from memory once, since a chunk is at most 32 KiB. In f32 the second pass
 * keeps exp(x - max) for the third, which only scales it; a y of 16 bits could not hold it, so that it is computed
 * again.
 *
 * The third pass over a row is made together with the second over the next, which also prefetches the row after it,
 * so that memory is read and written at a steady pace. Reductions have KILN_LANES accumulators on every level.
 *
 * Floor: one read and one write of the tensor at memory bandwidth; long rows two reads and one write.
 * Test: build/tests/ops/softmax_test. Bench: build/kiln bench softmax --device cpu */
#include "kernels/common/reduce/row_cpu.h"
#include "kernels/softmax/softmax_args.h"

/* What the third pass needs to know of a row or chunk. */
typedef struct result {
    void *y; /* NULL: there is no row to finish */
    const void *x;
    const float *exps; /* exp(x - max), which may be y; NULL: not kept */
    float max;
    float scale;
} result;

/* In 16-bit results the rounding error of the subtraction does not show. */
KILN_INLINE float exp_of(float x, float max, kiln_cpu_dtype dtype) {
    return dtype == KILN_CPU_f32 ? kiln_exp_difference(x, max) : kiln_exp(x - max);
}

/* Writes n elements of a result, at most a tile, from start on. */
KILN_INLINE void put(const result *row, size_t start, size_t n, kiln_cpu_dtype dtype, bool nontemporal) {
    float tile[KILN_TILE];
    void *y = kiln_at_mut(row->y, start, dtype);
    float *target = kiln_tile_target(tile, y, dtype, nontemporal);
    if (row->exps) {
        const float *exps = row->exps + start;
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            target[i] = exps[i] * row->scale;
    } else {
        const float *values = kiln_tile_load(tile, kiln_at(row->x, start, dtype), n, dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            target[i] = exp_of(values[i], row->max, dtype) * row->scale;
    }
    kiln_tile_write(y, target, n, dtype, nontemporal);
}

/* The sum of exp(x - max); the exponentials are left in exps if that is not NULL. Meanwhile it writes `before`, a
 * result of as many elements, whose own exps may lie where these go, and prefetches what lies `ahead` bytes from x. */
KILN_INLINE float sum_of(const void *x, float *exps, size_t count, float max, const result *before, size_t ahead,
                         kiln_cpu_dtype dtype, bool nontemporal) {
    float tile[KILN_TILE], sum[KILN_LANES] = {0};
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE), whole = n / KILN_LANES * KILN_LANES;
        if (before->y) put(before, start, n, dtype, nontemporal);
        kiln_prefetch(kiln_at(x, start, dtype), n * kiln_dtype_size(dtype), ahead);
        const float *values = kiln_tile_load(tile, kiln_at(x, start, dtype), n, dtype);
        float *results = exps ? exps + start : tile;
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            results[i] = exp_of(values[i], max, dtype);
        for (size_t i = 0; i < whole; i += KILN_LANES)
            for (size_t lane = 0; lane < KILN_LANES; lane++)
                sum[lane] += results[i + lane]; /* set above, since whole <= n: NOLINT(clang-analyzer-core.*) */
        for (size_t i = whole; i < n; i++)
            sum[i - whole] += results[i]; /* NOLINT(clang-analyzer-core.*) */
    }
    return kiln_lanes_sum(sum);
}

KILN_INLINE void put_all(const result *row, size_t count, kiln_cpu_dtype dtype, bool nontemporal) {
    for (size_t start = 0; start < count; start += KILN_TILE)
        put(row, start, kiln_min(count - start, KILN_TILE), dtype, nontemporal);
}

/* What is subtracted from the elements of a row: 0 if none is finite. */
KILN_INLINE float origin_of(float max) {
    return max == -KILN_INFINITY ? 0.0f : max;
}

KILN_INLINE float scale_of(float sum) {
    return sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
}

/* The short rows of a span. Where stores are non-temporal and f32 rows are not overwritten in place, the first row's y
 * holds exp(x - max) of each row in turn and so stays in the cache; the first row is then computed last. */
KILN_INLINE void short_rows(const kiln_softmax_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype,
                            bool nontemporal) {
    uint64_t rows = KILN_BLOCK >> args->shape.lanes_log2; /* per block */
    uint64_t first = span->begin * rows, end = kiln_min(span->end * rows, (uint64_t)args->shape.rows);
    size_t count = (size_t)args->shape.cols, x_stride = (size_t)args->x_stride * kiln_dtype_size(dtype);
    size_t ahead = x_stride > KILN_PREFETCH_BYTES ? x_stride : KILN_PREFETCH_BYTES;
    bool keep = dtype == KILN_CPU_f32, rotate = keep && nontemporal && args->x != args->y;
    if (keep) nontemporal = rotate;
    result before = {0};
    for (uint64_t i = first; i < end; i++) {
        uint64_t row = !rotate ? i : i + 1 < end ? i + 1 : first;
        result now = {.y = kiln_at_mut(args->y, row * (uint64_t)args->y_stride, dtype),
                      .x = kiln_at(args->x, row * (uint64_t)args->x_stride, dtype)};
        float *exps = NULL;
        if (keep) exps = rotate ? kiln_at_mut(args->y, first * (uint64_t)args->y_stride, dtype) : now.y;
        now.exps = exps;
        now.max = origin_of(kiln_row_max(now.x, count, false, dtype));
        now.scale = scale_of(sum_of(now.x, exps, count, now.max, &before, ahead, dtype, nontemporal));
        before = now;
    }
    if (before.y) put_all(&before, count, dtype, nontemporal);
}

/* The first pass over a chunk of a long row, and the second. */
KILN_INLINE kiln_softmax_partial partial_of(const void *x, size_t count, kiln_cpu_dtype dtype) {
    const result none = {0};
    float max = kiln_row_max(x, count, false, dtype);
    float sum = sum_of(x, NULL, count, origin_of(max), &none, count * kiln_dtype_size(dtype), dtype, false);
    return (kiln_softmax_partial){max, sum};
}

/* The maximum and the sum of a row from those of its chunks. */
KILN_INLINE kiln_softmax_partial total_of_partials(const kiln_softmax_partial *partials, uint32_t count) {
    kiln_softmax_partial total = {-KILN_INFINITY, 0.0f};
    for (uint32_t i = 0; i < count; i++)
        total.max = kiln_max(partials[i].max, total.max);
    float sum[KILN_LANES] = {0}, max = origin_of(total.max);
    for (uint32_t start = 0; start < count; start += KILN_LANES)
        for (uint32_t lane = 0; lane < kiln_min(count - start, KILN_LANES); lane++)
            sum[lane] = KILN_FMA(partials[start + lane].sum, kiln_exp(partials[start + lane].max - max), sum[lane]);
    total.sum = kiln_lanes_sum(sum);
    return total;
}

/* The chunks of long rows of a span, in either of their two phases. */
KILN_INLINE void long_rows(const kiln_softmax_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype,
                           bool nontemporal) {
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args->shape, span, block); work.row < work.row_end; work.row++) {
            const void *x = kiln_at(args->x, work.row * (uint64_t)args->x_stride + work.col, dtype);
            size_t count = work.col_end - work.col;
            kiln_softmax_partial *partials = args->partials + work.row * args->chunks;
            if (args->phase == KILN_SOFTMAX_PARTIAL) {
                partials[work.tile] = partial_of(x, count, dtype);
            } else {
                kiln_softmax_partial total = total_of_partials(partials, args->chunks);
                void *y = kiln_at_mut(args->y, work.row * (uint64_t)args->y_stride + work.col, dtype);
                result chunk = {.y = y, .x = x, .max = origin_of(total.max), .scale = scale_of(total.sum)};
                put_all(&chunk, count, dtype, nontemporal);
            }
        }
}

KILN_INLINE void rows_of(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_softmax_args *args = arguments;
    bool nontemporal = kiln_is_nontemporal(&args->shape, dtype);
    if (args->phase == KILN_SOFTMAX_ROWS) {
        short_rows(args, span, dtype, nontemporal);
    } else {
        long_rows(args, span, dtype, nontemporal);
    }
    if (nontemporal) kiln_nontemporal_fence();
}

/* f16 and bf16 differ in nothing but how tiles are converted: one copy serves both. */
KILN_OUTLINED void rows_of_halves(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f32) __builtin_unreachable();
    rows_of(arguments, span, dtype);
}

KILN_INLINE void softmax_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f32)
        rows_of(arguments, span, dtype);
    else
        rows_of_halves(arguments, span, dtype);
}
KILN_CPU_KERNEL(softmax_rows)
