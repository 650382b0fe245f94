/* How products of matrices end on the CPU: sums of blocks that share k are added up; what has been scaled gets its bias
 * and goes through its activation. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_END_CPU_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_END_CPU_H

#include "kernels/common/cpu.h"
/* after it: */
#include "kernels/common/math/math.h"

/* Adds up the partial sums of count columns of a row; those of the next split are `step` further. */
KILN_INLINE void kiln_matmul_join(float *sums, const float *partials, uint64_t splits, uint64_t step, size_t count) {
    memset(sums, 0, count * sizeof *sums);
    for (uint64_t split = 0; split < splits; split++, partials += step)
        for (size_t i = 0; i < count; i++)
            sums[i] += partials[i];
}

/* Adds the biases of columns from `col` on, if there are any; at most a tile, which `tile` has room for. */
KILN_INLINE void kiln_matmul_add_bias(float *results, float *tile, const void *bias, uint64_t col, size_t count,
                                      kiln_cpu_dtype dtype) {
    if (!bias) return;
    const float *biases = kiln_tile_load(tile, kiln_at(bias, col, dtype), count, dtype);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        results[i] += biases[i];
}

/* The activation of kiln_gated. */
KILN_INLINE void kiln_matmul_activate(float *results, size_t count, float bound, const float *coefficients,
                                      int coefficient_count) {
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        results[i] = kiln_gated(results[i], bound, coefficients, coefficient_count);
}

#endif
