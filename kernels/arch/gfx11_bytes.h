/* Raw instructions of gfx11: products of matrices of int8 by waves of 32. */
#ifndef KILN_KERNELS_ARCH_GFX11_BYTES_H
#define KILN_KERNELS_ARCH_GFX11_BYTES_H

#include <stdint.h>

/* Laid out as kiln_gfx11_sums (gfx11.h). */
typedef int32_t kiln_gfx11_sums_i32 __attribute__((ext_vector_type(8)));

/* sums[16 x 16] += a[16 x 16] b[16 x 16], exactly: the 16 bytes of row lane % 16 of a and of column lane % 16 of b, of
 * which lanes 16 to 31 have the same as 0 to 15. */
static __attribute__((device, always_inline)) inline kiln_gfx11_sums_i32
kiln_gfx11_wmma_i8(const uint32_t *a, const uint32_t *b, kiln_gfx11_sums_i32 sums) {
    typedef int32_t int4 __attribute__((ext_vector_type(4)));
    const int4 left = {(int32_t)a[0], (int32_t)a[1], (int32_t)a[2], (int32_t)a[3]};
    const int4 right = {(int32_t)b[0], (int32_t)b[1], (int32_t)b[2], (int32_t)b[3]};
    return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, left, true, right, sums, false);
}

#endif
