/* add_rmsnorm on the CPU: the operator's definition. add_rmsnorm_gpu.c says what its blocks do.
 *
 * Floor: two reads and two writes of the tensor at memory bandwidth.
 * Test: build/tests/ops/rmsnorm_test. Bench: build/kiln bench add_rmsnorm --device cpu */
#include "kernels/add_rmsnorm/add_rmsnorm_args.h"
#include "kernels/common/cpu.h"
#include "kernels/common/math/root.h"
#include "kernels/common/math/squares_cpu.h"

/* The sums of n elements, at most a tile. */
KILN_INLINE void sums_of(float *sums, const void *x, const void *residual, size_t n, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE];
    const float *xs = kiln_tile_load(sums, x, n, dtype);
    const float *residuals = kiln_tile_load(tile, residual, n, dtype);
    KILN_INDEPENDENT
    for (size_t i = 0; i < n; i++)
        sums[i] = xs[i] + residuals[i];
}

KILN_INLINE float squares_of(const void *x, const void *residual, size_t count, kiln_cpu_dtype dtype) {
    float values[KILN_TILE], sum[KILN_LANES] = {0};
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        sums_of(values, kiln_at(x, start, dtype), kiln_at(residual, start, dtype), n, dtype);
        kiln_squares_add(sum, values, n);
    }
    return kiln_lanes_sum(sum);
}

/* The same row of all tensors. */
typedef struct places {
    void *y, *sum;
    const void *x, *residual;
    size_t x_ahead, residual_ahead; /* bytes to the next row */
} places;

KILN_INLINE void write(void *target, const float *values, size_t n, kiln_cpu_dtype dtype, bool nontemporal) {
    if (dtype == KILN_CPU_f32 && !nontemporal)
        memcpy(target, values, n * sizeof *values);
    else
        kiln_tile_write(target, values, n, dtype, nontemporal);
}

/* Writes the results of a row. Of a large tensor it prefetches the next row meanwhile, so that memory is read and
 * written at the same time. */
KILN_INLINE void put(const places *row, const void *weight, float scale, size_t count, kiln_cpu_dtype dtype,
                     bool nontemporal) {
    float sums[KILN_TILE], results[KILN_TILE]; /* which hold the weights at first */
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const void *x = kiln_at(row->x, start, dtype), *residual = kiln_at(row->residual, start, dtype);
        if (nontemporal) {
            kiln_prefetch(x, n * kiln_dtype_size(dtype), row->x_ahead);
            kiln_prefetch(residual, n * kiln_dtype_size(dtype), row->residual_ahead);
        }
        sums_of(sums, x, residual, n, dtype);
        const float *weights = weight ? kiln_tile_load(results, kiln_at(weight, start, dtype), n, dtype) : NULL;
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            results[i] = sums[i] * scale * (weights ? weights[i] : 1.0f);
        write(kiln_at_mut(row->sum, start, dtype), sums, n, dtype, nontemporal);
        write(kiln_at_mut(row->y, start, dtype), results, n, dtype, nontemporal);
    }
}

KILN_OUTLINED void add_rmsnorm(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_add_rmsnorm_args args =
        *(const kiln_add_rmsnorm_args *)arguments; /* a copy, which no store can change */
    bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            const places row = {
                .y = kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride, dtype),
                .sum = kiln_at_mut(args.sum, work.row * (uint64_t)args.sum_stride, dtype),
                .x = kiln_at(args.x, work.row * (uint64_t)args.x_stride, dtype),
                .residual = kiln_at(args.residual, work.row * (uint64_t)args.residual_stride, dtype),
                .x_ahead = (uint64_t)args.x_stride * kiln_dtype_size(dtype),
                .residual_ahead = (uint64_t)args.residual_stride * kiln_dtype_size(dtype),
            };
            float squares = squares_of(row.x, row.residual, work.col_end, dtype);
            put(&row, args.weight, kiln_rsqrt(KILN_FMA(squares, args.mean, args.eps)), work.col_end, dtype,
                nontemporal);
        }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(add_rmsnorm)
