/* rmsnorm on the CPU: the operator's definition. rmsnorm_gpu.c says what its blocks do.
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/rmsnorm_test. Bench: build/kiln bench rmsnorm --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/math/root.h"
#include "kernels/common/math/squares_cpu.h"
#include "kernels/rmsnorm/rmsnorm_args.h"

KILN_INLINE float squares_of(const void *x, size_t count, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE], sum[KILN_LANES] = {0};
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        kiln_squares_add(sum, kiln_tile_load(tile, kiln_at(x, start, dtype), n, dtype), n);
    }
    return kiln_lanes_sum(sum);
}

/* Writes the results of a row. Of a large tensor it prefetches what lies `ahead` bytes from x, so that memory is read
 * and written at the same time. */
KILN_INLINE void put(void *y, const void *x, const void *weight, float scale, size_t count, size_t ahead,
                     kiln_cpu_dtype dtype, bool nontemporal) {
    float tile[KILN_TILE], weight_tile[KILN_TILE];
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        void *target = kiln_at_mut(y, start, dtype);
        if (nontemporal) kiln_prefetch(kiln_at(x, start, dtype), n * kiln_dtype_size(dtype), ahead);
        const float *values = kiln_tile_load(tile, kiln_at(x, start, dtype), n, dtype);
        float *results = kiln_tile_target(tile, target, dtype, nontemporal);
        if (weight) {
            const float *weights = kiln_tile_load(weight_tile, kiln_at(weight, start, dtype), n, dtype);
            KILN_INDEPENDENT
            for (size_t i = 0; i < n; i++)
                results[i] = values[i] * scale * weights[i];
        } else {
            KILN_INDEPENDENT
            for (size_t i = 0; i < n; i++)
                results[i] = values[i] * scale;
        }
        kiln_tile_write(target, results, n, dtype, nontemporal);
    }
}

KILN_OUTLINED void rmsnorm(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_rmsnorm_args args = *(const kiln_rmsnorm_args *)arguments; /* a copy, which no store can change */
    bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            const void *x = kiln_at(args.x, work.row * (uint64_t)args.x_stride, dtype);
            float sum = squares_of(x, work.col_end, dtype);
            float scale = kiln_rsqrt(KILN_FMA(sum, args.mean, args.eps));
            put(kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride, dtype), x, args.weight, scale, work.col_end,
                (uint64_t)args.x_stride * kiln_dtype_size(dtype), dtype, nontemporal);
        }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(rmsnorm)
