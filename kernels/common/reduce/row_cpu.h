/* Reductions of a row on the CPU, with KILN_LANES accumulators on every level, so that all levels reduce in one order.
 */
#ifndef KILN_KERNELS_COMMON_REDUCE_ROW_CPU_H
#define KILN_KERNELS_COMMON_REDUCE_ROW_CPU_H

#include "kernels/common/cpu.h"

/* The greatest of count elements, -inf of none. prefetch: as kiln_tile_read does. */
KILN_INLINE float kiln_row_max(const void *x, size_t count, bool prefetch, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE], max[KILN_LANES];
    for (size_t lane = 0; lane < KILN_LANES; lane++)
        max[lane] = -KILN_INFINITY;
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE), whole = n / KILN_LANES * KILN_LANES;
        const void *source = kiln_at(x, start, dtype);
        const float *values =
            prefetch ? kiln_tile_read(tile, source, n, dtype) : kiln_tile_load(tile, source, n, dtype);
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

/* The sum of all lanes, whose contents are lost. */
KILN_INLINE float kiln_lanes_sum(float sum[KILN_LANES]) {
    for (size_t half = KILN_LANES / 2; half; half /= 2)
        for (size_t lane = 0; lane < half; lane++)
            sum[lane] += sum[lane + half];
    return sum[0];
}

#endif
