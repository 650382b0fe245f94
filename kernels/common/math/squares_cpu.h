/* The sum of a row's squares on the CPU, for rmsnorm and add_rmsnorm: tile after tile is added into lanes, as many on
 * every level, which are added up at the end. */
#ifndef KILN_KERNELS_COMMON_MATH_SQUARES_CPU_H
#define KILN_KERNELS_COMMON_MATH_SQUARES_CPU_H

#include "kernels/common/reduce/row_cpu.h"

/* Adds the squares of n elements, at most a tile. */
KILN_INLINE void kiln_squares_add(float sum[KILN_LANES], const float *values, size_t n) {
    size_t whole = n / KILN_LANES * KILN_LANES;
    for (size_t i = 0; i < whole; i += KILN_LANES)
        for (size_t lane = 0; lane < KILN_LANES; lane++)
            sum[lane] = KILN_FMA(values[i + lane], values[i + lane], sum[lane]);
    for (size_t i = whole; i < n; i++)
        sum[i - whole] = KILN_FMA(values[i], values[i], sum[i - whole]);
}

#endif
