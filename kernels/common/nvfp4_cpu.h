/* Blocks of NVFP4 on the CPU: the definition of their scales and codes. */
#ifndef KILN_KERNELS_COMMON_NVFP4_CPU_H
#define KILN_KERNELS_COMMON_NVFP4_CPU_H

#include "kernels/common/greatest_cpu.h"
#include "kernels/common/nvfp4_scale.h"

enum { KILN_NVFP4_TILE_BLOCKS = KILN_TILE / KILN_NVFP4_BLOCK };

/* kiln_e2m1_of in numbers of 32 bits, which compilers keep in vectors as wide as those of f32: by where a magnitude
 * lies among the midpoints of the format's numbers, of which every other one is rounded down. NaN lies behind all. */
KILN_INLINE uint32_t kiln_e2m1_code(float value) {
    const float magnitude = __builtin_fabsf(value);
    uint32_t code = magnitude <= 0.25f ? 0u : 1u;
    code += magnitude < 0.75f ? 0u : 1u;
    code += magnitude <= 1.25f ? 0u : 1u;
    code += magnitude < 1.75f ? 0u : 1u;
    code += magnitude <= 2.5f ? 0u : 1u;
    code += magnitude < 3.5f ? 0u : 1u;
    code += magnitude <= 5.0f ? 0u : 1u;
    return code | (value == value ? kiln_bits(value) >> 28 & 8u : 0u);
}

/* The codes and the scales of whole blocks that lie one behind the other, at most those of a tile. */
KILN_OUTLINED void kiln_nvfp4_encode(uint8_t *codes, uint8_t *scales, const float *values, float encode,
                                     size_t blocks) {
    uint32_t greatest[KILN_NVFP4_TILE_BLOCKS], each[KILN_TILE];
    float factors[KILN_NVFP4_TILE_BLOCKS], scaled[KILN_TILE];
    for (size_t block = 0; block < blocks; block++)
        greatest[block] = kiln_greatest_magnitude(0, values + block * KILN_NVFP4_BLOCK, KILN_NVFP4_BLOCK);
    KILN_INDEPENDENT
    for (size_t block = 0; block < blocks; block++) {
        greatest[block] = kiln_nvfp4_scale(greatest[block], encode);
        factors[block] = kiln_nvfp4_factor(greatest[block], encode);
    }
    for (size_t block = 0; block < blocks; block++) {
        const size_t first = block * KILN_NVFP4_BLOCK;
        const float factor = factors[block];
        scales[block] = (uint8_t)greatest[block];
        KILN_INDEPENDENT
        for (size_t i = 0; i < KILN_NVFP4_BLOCK; i++)
            scaled[first + i] = values[first + i] * factor;
    }
    KILN_INDEPENDENT
    for (size_t i = 0; i < blocks * KILN_NVFP4_BLOCK; i++)
        each[i] = kiln_e2m1_code(scaled[i]);
    KILN_INDEPENDENT
    for (size_t i = 0; i < blocks * KILN_NVFP4_BLOCK_BYTES; i++)
        codes[i] = (uint8_t)(each[2 * i] | each[2 * i + 1] << 4);
}

#endif
