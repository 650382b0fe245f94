/* Attention on NVFP4: where v's blocks are, and what weights become, one source for host C and both device compilers.
 * The includer (device.h, cpu.h) defines KILN_INLINE.
 *
 * Weights become NVFP4 16 keys at a time, those that share a scale of v. They are of 2^(x - m), as attention_codes.h
 * tells of codes of 8 bits: as m is a whole number, their codes do not depend on the order of keys, but for scales that
 * are subnormal. 2688 is 448 * 6, the greatest scale times the greatest code, so that a weight of 1 becomes that. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_NVFP4_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_NVFP4_H

#include "kernels/common/quantize/nvfp4_scale.h"

enum {
    KILN_VALUE_TILE = 64, /* keys of v that are of one sequence */
    KILN_VALUE_TILE_BLOCKS = KILN_VALUE_TILE / KILN_NVFP4_BLOCK,
};

/* Where a sequence's keys begin in v transposed, in tiles, from where they begin in rows. */
KILN_INLINE uint32_t kiln_value_tile(uint32_t first, uint32_t batch) {
    return first / KILN_VALUE_TILE + batch;
}

/* The E4M3 of 16 weights whose greatest is this, at most 1. */
KILN_INLINE uint32_t kiln_weights_scale(float greatest) {
    return kiln_small_float_encode(kiln_bits(greatest * KILN_E4M3_GREATEST), 3, 7, KILN_E4M3_GREATEST);
}

/* What weights are multiplied with before they become E2M1: by the scale as it was rounded. */
KILN_INLINE float kiln_weights_factor(float scale) {
    float factor = KILN_NVFP4_GREATEST / (scale > 0.0f ? scale : 1.0f);
    return scale > 0.0f ? factor : 0.0f;
}

/* A weight as its code has it, times 2688. NaN stays. */
KILN_INLINE float kiln_weight_of_block(float weight, float scale, float factor) {
    float rounded = kiln_e2m1_value(kiln_e2m1_of(weight * factor)) * scale;
    return weight == weight ? rounded : weight;
}

#endif
