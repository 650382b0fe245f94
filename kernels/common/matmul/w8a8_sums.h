/* Sums of products that are taken over group by group: f32, in registers of whatever a matrix instruction adds in. */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_SUMS_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_SUMS_H

#include "kernels/common/device.h"

KILN_INLINE float w8a8_f32(float sum) {
    return sum;
}
KILN_INLINE float w8a8_f32(int32_t sum) {
    return kiln_float((uint32_t)sum);
}
KILN_INLINE void w8a8_add(float *sum, float product, float factor) {
    *sum = KILN_FMA(product, factor, *sum);
}
KILN_INLINE void w8a8_add(int32_t *sum, float product, float factor) {
    *sum = (int32_t)kiln_bits(KILN_FMA(product, factor, w8a8_f32(*sum)));
}

#endif
