/* mha_quantize_nvfp4 on all backends: the scale of a channel of v, and where its blocks are. The includer (device.h,
 * cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_MHA_QUANTIZE_NVFP4_SCALE_H
#define KILN_KERNELS_MHA_QUANTIZE_NVFP4_SCALE_H

#include "kernels/common/attention/attention_nvfp4.h"
#include "kernels/common/quantize/nvfp4_scale.h"

/* NaN comes of infinities, and is taken for one. */
KILN_INLINE float value_scale(float amax) {
    return kiln_nvfp4_global(amax == amax ? amax : KILN_INFINITY, 0);
}

#include "kernels/common/attention/mha_quantize_keys.h"

/* Where a sequence's keys begin in v transposed, in tiles: more than the one before has of them. */
KILN_INLINE uint32_t first_tile(const kiln_mha_quantize_args *args, uint32_t batch) {
    return kiln_value_tile(keys_of(args, batch).first, batch);
}

/* The sequence whose keys a tile has: the last that begins at it or before. */
KILN_INLINE uint32_t sequence_of_tile(const kiln_mha_quantize_args *args, uint32_t tile) {
    uint32_t batch = 0, end = args->batch;
    while (end - batch > 1) {
        uint32_t middle = batch + (end - batch) / 2;
        if (first_tile(args, middle) <= tile)
            batch = middle;
        else
            end = middle;
    }
    return batch;
}

#endif
