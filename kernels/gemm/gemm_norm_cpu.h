/* gemm on the CPU with normalised rows of a: as rmsnorm does it, in f32. gemm_norm rounds the results, gemm_rows_fused
 * multiplies them as they are.
 *
 * Included once, by gemm_cpu.c. */
#include "kernels/common/math/root.h"
#include "kernels/common/math/squares_cpu.h"
#include "kernels/gemm/gemm_fused_args.h"

/* The factor of a row of a. */
KILN_OUTLINED float norm_scale(const kiln_gemm_fused_args *args, const void *row, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE], sum[KILN_LANES] = {0};
    for (size_t k = 0; k < (size_t)args->plain.k; k += KILN_TILE) {
        const size_t n = kiln_min((uint64_t)args->plain.k - k, KILN_TILE);
        kiln_squares_add(sum, kiln_tile_load(tile, kiln_at(row, k, dtype), n, dtype), n);
    }
    return kiln_rsqrt(KILN_FMA(kiln_lanes_sum(sum), args->mean, args->eps));
}

/* The results of n elements, at most a tile. */
KILN_OUTLINED void normalise(float *results, const void *a, const void *weight, float scale, size_t n,
                             kiln_cpu_dtype dtype) {
    float tile[KILN_TILE], weight_tile[KILN_TILE];
    const float *values = kiln_tile_load(tile, a, n, dtype), *weights = kiln_tile_load(weight_tile, weight, n, dtype);
    KILN_INDEPENDENT
    for (size_t i = 0; i < n; i++)
        results[i] = values[i] * scale * weights[i];
}

KILN_OUTLINED void gemm_norm(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_fused_args args = *(const kiln_gemm_fused_args *)arguments; /* a copy, which no store can change */
    const uint64_t m = (uint64_t)args.plain.m, k_end = (uint64_t)args.plain.k;
    float tile[KILN_TILE];
    for (uint64_t row = span->begin; row < span->end && row < m * args.plain.batch; row++) {
        const uint64_t place = row / m * (uint64_t)args.plain.a_batch_stride + row % m * (uint64_t)args.plain.a_stride;
        const void *a = kiln_at(args.plain.a, place, dtype);
        const float scale = norm_scale(&args, a, dtype);
        for (uint64_t k = 0; k < k_end; k += KILN_TILE) {
            const size_t n = kiln_min(k_end - k, KILN_TILE);
            void *target = kiln_at_mut(args.packed, row * k_end + k, dtype);
            float *results = kiln_tile_target(tile, target, dtype, false);
            normalise(results, kiln_at(a, k, dtype), kiln_at(args.norm_weight, k, dtype), scale, n, dtype);
            kiln_tile_write(target, results, n, dtype, false);
        }
    }
}
KILN_CPU_KERNEL(gemm_norm)
