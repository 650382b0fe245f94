/* The bits of f32 on devices, without moves between registers for numbers and for integers where PTX tells these apart.
 *
 * kiln_float_and(value, mask), kiln_float_shl(value, count)
 *                              the number of those bits
 * kiln_float_shr(value, count) the bits
 * kiln_float_bytes(values, step, number)
 *                              the byte of that number, the lowest being 0, of each of four values, of which step says
 *                              how far apart they are; the first of them in the lowest byte */
#ifndef KILN_KERNELS_COMMON_MATH_FLOAT_BITS_H
#define KILN_KERNELS_COMMON_MATH_FLOAT_BITS_H

#include "kernels/common/device.h"

#if defined(__CUDACC__)

#include "kernels/arch/ptx.h"

KILN_INLINE float kiln_float_and(float value, uint32_t mask) {
    return kiln_ptx_and(value, mask);
}
KILN_INLINE float kiln_float_shl(float value, uint32_t count) {
    return kiln_ptx_shl(value, count);
}
KILN_INLINE uint32_t kiln_float_shr(float value, uint32_t count) {
    return kiln_ptx_shr(value, count);
}
KILN_INLINE uint32_t kiln_float_bytes(const float *values, uint32_t step, uint32_t number) {
    uint32_t pair = number | (4 + number) << 4;
    return __byte_perm(kiln_ptx_prmt(values[0], values[step], pair),
                       kiln_ptx_prmt(values[2 * step], values[3 * step], pair), 0x5410);
}

#elif defined(__HIP__)

KILN_INLINE float kiln_float_and(float value, uint32_t mask) {
    return kiln_float(kiln_bits(value) & mask);
}
KILN_INLINE float kiln_float_shl(float value, uint32_t count) {
    return kiln_float(kiln_bits(value) << count);
}
KILN_INLINE uint32_t kiln_float_shr(float value, uint32_t count) {
    return kiln_bits(value) >> count;
}
KILN_INLINE uint32_t kiln_float_bytes(const float *values, uint32_t step, uint32_t number) {
    uint32_t pair = number | (4 + number) << 8;
    return __builtin_amdgcn_perm(__builtin_amdgcn_perm(kiln_bits(values[3 * step]), kiln_bits(values[2 * step]), pair),
                                 __builtin_amdgcn_perm(kiln_bits(values[step]), kiln_bits(values[0]), pair),
                                 0x05040100u);
}

#endif

#endif
