/* The scales of codes, one source for host C and both device compilers. The includer (device.h, cpu.h) defines
 * KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_SCALES_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_SCALES_H

#include "kernels/common/matmul/w8a8_args.h"

/* The scale of a row's codes in a group of columns. */
KILN_INLINE float kiln_w8a8_scale(const kiln_w8a8_scales *scales, uint64_t row, uint64_t group) {
    return scales->values[(row >> scales->rows_log2) * (uint64_t)scales->cols + group * scales->step];
}

#endif
