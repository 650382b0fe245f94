/* Where a span's tile begins (span.h), in fewer instructions on AMD's devices: where a whole wave has one row, the
 * scalar unit multiplies the row by the stride, which takes the vector unit of gfx9 twelve turns. */
#ifndef KILN_KERNELS_COMMON_SPAN_ROW_H
#define KILN_KERNELS_COMMON_SPAN_ROW_H

#include "kernels/common/span.h"

#if defined(__HIP__)

#include "kernels/arch/gfx.h"
#include "kernels/common/global.h"

/* kiln_span_of_input, of a span of that shape. */
KILN_INLINE const kiln_element *kiln_row_of_input(const kiln_shape *shape, kiln_span s, const void *tensor,
                                                  int64_t stride) {
    if (1u << shape->lanes_log2 < __builtin_amdgcn_wavefrontsize()) return kiln_span_of_input(s, tensor, stride);
    s.row = kiln_gfx_first_lane(s.row);
    return KILN_GLOBAL(const kiln_element, kiln_gfx_scalar((uint64_t)kiln_span_of_input(s, tensor, stride)));
}

#else

KILN_INLINE const kiln_element *kiln_row_of_input(const kiln_shape *, kiln_span s, const void *tensor, int64_t stride) {
    return kiln_span_of_input(s, tensor, stride);
}

#endif

/* kiln_span_in, likewise. */
KILN_INLINE kiln_element *kiln_row_in(const kiln_shape *shape, kiln_span s, void *tensor, int64_t stride) {
    return (kiln_element *)kiln_row_of_input(shape, s, tensor, stride);
}

#endif
