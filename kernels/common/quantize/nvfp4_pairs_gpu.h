/* A block of NVFP4 of elements of 16 bits on AMD's devices: KILN_NVFP4_PAIRS is 1 there. Magnitudes and signs are taken
 * apart two elements at a time, before these become f32, and of the magnitudes, as integers, the greatest is found two
 * at a time, too, which also tells whether there is NaN. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_PAIRS_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_PAIRS_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/math/two.h"
#include "kernels/common/quantize/nvfp4_codes.h"
#include "kernels/common/quantize/nvfp4_quickly.h"
#include "kernels/common/values.h"

#if defined(__HIP__) && !defined(KILN_PART_f32)
#define KILN_NVFP4_PAIRS 1

enum {
    KILN_PAIRS = KILN_NVFP4_BLOCK / 2,
#if defined(KILN_PART_f16)
    KILN_INFINITE = 0x7c00 /* the bits of infinity; those of NaN are greater */
#else
    KILN_INFINITE = 0x7f80
#endif
};

/* Two elements with 0 instead of NaN. */
KILN_INLINE uint32_t kiln_pair_without_nan(uint32_t pair) {
    const uint32_t first = (pair & 0x7fffu) > KILN_INFINITE ? 0u : pair & 0xffffu;
    return first | ((pair >> 16 & 0x7fffu) > KILN_INFINITE ? 0u : pair & 0xffff0000u);
}

/* Two magnitudes as f32. Of shifts the compiler would clear the signs once more. */
KILN_INLINE kiln_two kiln_pair_of_magnitudes(uint32_t pair) {
#if defined(KILN_PART_bf16)
    return kiln_two_of(kiln_float(__builtin_amdgcn_perm(pair, pair, 0x01000c0cu)),
                       kiln_float(__builtin_amdgcn_perm(pair, pair, 0x03020c0cu)));
#else
    float values[2];
    kiln_pair_values(values, pair);
    return kiln_two_of(values[0], values[1]);
#endif
}

/* The greatest of a block's magnitudes, which are bits of elements. */
KILN_INLINE uint32_t kiln_pairs_greatest(const uint32_t *magnitudes) {
    typedef uint16_t two __attribute__((ext_vector_type(2)));
    two greatest = __builtin_bit_cast(two, magnitudes[0]);
    KILN_UNROLL
    for (int i = 1; i < KILN_PAIRS; i++)
        greatest = __builtin_elementwise_max(greatest, __builtin_bit_cast(two, magnitudes[i]));
    return greatest.x > greatest.y ? greatest.x : greatest.y;
}

/* The signs of four pairs, each in the topmost of four bits, the first in the lowest four. */
KILN_INLINE uint32_t kiln_pairs_signs(const uint32_t *pairs) {
    const uint32_t low = __builtin_amdgcn_perm(pairs[1], pairs[0], 0x07050301u);
    const uint32_t high = __builtin_amdgcn_perm(pairs[3], pairs[2], 0x07050301u);
    return (__builtin_amdgcn_perm(high, low, 0x06040200u) >> 4 & 0x08080808u) |
           (__builtin_amdgcn_perm(high, low, 0x07050301u) & 0x80808080u);
}

/* The codes of four pairs' products, which are less than 7, without signs. As in kiln_e2m1_eight_of (e2m1_eight.h) a
 * code is the least of three lines. */
KILN_INLINE uint32_t kiln_nvfp4_four_pairs(const kiln_two *products) {
    const kiln_two one = kiln_two_of(0x1.8p23f, 0x1.8p23f);
    float sums[8];
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
        const kiln_two halves = __builtin_elementwise_fma(products[i], (kiln_two)2.0f, one);
        const kiln_two ones = products[i] + (one + 2.0f);
        const kiln_two twos = __builtin_elementwise_fma(products[i], (kiln_two)0.5f, one + 4.0f);
        sums[2 * i] = __builtin_fminf(__builtin_fminf(halves.x, ones.x), twos.x);
        sums[2 * i + 1] = __builtin_fminf(__builtin_fminf(halves.y, ones.y), twos.y);
    }
    return kiln_float_bytes(sums, 2, 0) | kiln_float_bytes(sums + 1, 2, 0) << 4;
}

/* Quantises a block. Returns its scale. NaN becomes +6, but is not the greatest. The pairs are lost. */
KILN_INLINE uint32_t kiln_nvfp4_pairs(uint32_t *codes, uint32_t *pairs, float encode) {
    uint32_t magnitudes[KILN_PAIRS];
    kiln_two products[KILN_PAIRS];
    KILN_UNROLL
    for (int i = 0; i < KILN_PAIRS; i++)
        magnitudes[i] = pairs[i] & 0x7fff7fffu;
    uint32_t greatest = kiln_pairs_greatest(magnitudes);
    const bool nan = greatest > KILN_INFINITE;
    if (nan) {
        uint32_t numbers[KILN_PAIRS];
        KILN_UNROLL
        for (int i = 0; i < KILN_PAIRS; i++) {
            pairs[i] = kiln_pair_without_nan(pairs[i]);
            numbers[i] = pairs[i] & 0x7fff7fffu;
        }
        greatest = kiln_pairs_greatest(numbers);
    }
    const float of_block = kiln_element_to_f32((kiln_element)greatest);
    const uint32_t scale = kiln_nvfp4_block_scale(of_block, encode);
    const float factor = kiln_nvfp4_any_factor(scale, encode);
    KILN_UNROLL
    for (int i = 0; i < KILN_PAIRS; i++)
        products[i] = kiln_pair_of_magnitudes(magnitudes[i]) * factor;
    if (nan ||
        !(of_block * factor < 7.0f)) { /* the scale is a subnormal number, or the greatest, or there is infinity */
        KILN_UNROLL
        for (int i = 0; i < KILN_PAIRS; i++)
            products[i] = kiln_two_of(__builtin_fminf(products[i].x, KILN_E2M1_GREATEST),
                                      __builtin_fminf(products[i].y, KILN_E2M1_GREATEST));
    }
    codes[0] = kiln_nvfp4_four_pairs(products) | kiln_pairs_signs(pairs);
    codes[1] = kiln_nvfp4_four_pairs(products + 4) | kiln_pairs_signs(pairs + 4);
    return scale;
}

#else
#define KILN_NVFP4_PAIRS 0
#endif

#endif
