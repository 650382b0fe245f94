/* The scales of NVFP4, one source for host C and both device compilers: IEEE division, so that all backends have the
 * same bits. A tensor or row has a decode scale g in f32, 16 elements have one in E4M3: an element is E2M1 * E4M3 * g.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_SCALE_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_SCALE_H

#include "kernels/common/formats/float4.h"
#include "kernels/common/formats/float8.h"

enum { KILN_NVFP4_BLOCK = 16, KILN_NVFP4_BLOCK_BYTES = KILN_NVFP4_BLOCK / 2 };

#define KILN_NVFP4_GREATEST (KILN_E4M3_GREATEST * KILN_E2M1_GREATEST)
#define KILN_NVFP4_LEAST    0x1p-116f /* g: 1 / g over the least E4M3 is still finite */

/* g, from the greatest magnitude or from its own given value. A value below the least, as for zeros, and NaN give 1,
 * and infinity gives the greatest finite number. */
KILN_INLINE float kiln_nvfp4_global(float value, uint32_t given) {
    float finite = value < 0x1.fffffep127f ? value : 0x1.fffffep127f;
    float least = given ? KILN_NVFP4_LEAST : KILN_NVFP4_LEAST * KILN_NVFP4_GREATEST;
    float scale = given ? finite : finite / KILN_NVFP4_GREATEST;
    return value >= least ? scale : 1.0f;
}

/* The E4M3 scale of 16 elements whose greatest magnitude has these bits; encode is 1 / g. */
KILN_INLINE uint32_t kiln_nvfp4_scale(uint32_t greatest, float encode) {
    float scale = kiln_float(greatest) / KILN_E2M1_GREATEST * encode;
    return kiln_small_float_encode(kiln_bits(scale), 3, 7, KILN_E4M3_GREATEST);
}

/* The factor by which elements are multiplied before they become E2M1, from the rounded scale. */
KILN_INLINE float kiln_nvfp4_factor(uint32_t scale, float encode) {
    float decode = kiln_small_float_decode(scale, 3, 7);
    float factor = encode / (scale ? decode : 1.0f);
    return scale ? factor : 0.0f;
}

/* The place of a block's scale among those of rows of `blocks` blocks, a multiple of 4: tiles of 128 rows by 4 blocks,
 * in which row r has its four bytes at (r % 32) * 16 + r / 32 * 4. */
KILN_INLINE uint64_t kiln_nvfp4_swizzled(uint64_t row, uint64_t block, uint64_t blocks) {
    return ((row >> 7) * (blocks >> 2) + (block >> 2)) * 512 + (row & 31) * 16 + (row >> 5 & 3) * 4 + (block & 3);
}

#endif
