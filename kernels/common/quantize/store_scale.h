/* The factor by which kv_store and rope_kv_store multiply elements before they become codes, one source for all
 * backends: IEEE division, so that all of them have the same bits. The includer (device.h, cpu.h) defines KILN_INLINE.
 */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_STORE_SCALE_H
#define KILN_KERNELS_COMMON_QUANTIZE_STORE_SCALE_H

#include "kernels/common/formats/float8.h"

/* 1 / the scale of a head. A scale that is not a positive normal number counts as 1. */
KILN_INLINE float kiln_store_factor(const float *scales, uint64_t head) {
    float scale = scales ? scales[head] : 1.0f;
    return 1.0f / (scale >= 0x1p-126f && scale < KILN_INFINITY ? scale : 1.0f);
}

#endif
