/* kiln_e4m3_eight (encode_gpu.h) on AMD's devices in fewer instructions: powers and magnitudes are added two at a time
 * where the device can, NaN is looked for in the whole wave, and gfx942 has an instruction for E4M3 FNUZ: the code of a
 * number is the FNUZ code of its half, but for -0 and NaN, which FNUZ has otherwise. */
#ifndef KILN_KERNELS_COMMON_FORMATS_E4M3_EIGHT_H
#define KILN_KERNELS_COMMON_FORMATS_E4M3_EIGHT_H

#include "kernels/common/device.h"
#include "kernels/common/formats/encode_gpu.h"
#include "kernels/common/math/two.h"

#if defined(__HIP__)

#include "kernels/arch/gfx.h"

#if defined(__gfx942__)

#include "kernels/arch/gfx942.h"

/* The codes' magnitudes; the bits of signs may be set. */
KILN_INLINE uint32_t kiln_e4m3_four_of(const float *values, float bound) {
    float halves[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i += 2) {
        const float first = kiln_fast_clamp(values[i], bound), second = kiln_fast_clamp(values[i + 1], bound);
        const kiln_two pair = kiln_two_of(first, second) * 0.5f;
        halves[i] = pair.x;
        halves[i + 1] = pair.y;
    }
    return kiln_gfx942_cvt_fnuz_x4(halves);
}

#else

typedef uint16_t kiln_steps_two __attribute__((ext_vector_type(2)));

/* The steps from 0 (kiln_steps, encode_gpu.h) of two magnitudes. The powers are shifted and added as the halves of a
 * word. */
KILN_INLINE kiln_steps_two kiln_e4m3_steps(kiln_two magnitudes) {
    const kiln_two powers = kiln_two_of(kiln_float_and(kiln_fast_max(magnitudes.x, 0x1p-6f), 0x7f800000u),
                                        kiln_float_and(kiln_fast_max(magnitudes.y, 0x1p-6f), 0x7f800000u));
    const kiln_two sums = __builtin_elementwise_fma(powers, (kiln_two)0x1.00007p20f, magnitudes);
    const uint32_t low = __builtin_amdgcn_perm(kiln_bits(sums.y), kiln_bits(sums.x), 0x05040100u);
    const uint32_t high = __builtin_amdgcn_perm(kiln_bits(powers.y), kiln_bits(powers.x), 0x07060302u);
    return __builtin_bit_cast(kiln_steps_two, low) + (__builtin_bit_cast(kiln_steps_two, high) >> (uint16_t)4);
}

/* The codes of four magnitudes of at most 448.01, and of 480, whose code is NaN's. */
KILN_INLINE uint32_t kiln_e4m3_four_magnitudes(const float *magnitudes) {
    const kiln_steps_two low = kiln_e4m3_steps(kiln_two_of(magnitudes[0], magnitudes[1]));
    const kiln_steps_two high = kiln_e4m3_steps(kiln_two_of(magnitudes[2], magnitudes[3]));
    return __builtin_amdgcn_perm(__builtin_bit_cast(uint32_t, high), __builtin_bit_cast(uint32_t, low), 0x06040200u);
}

KILN_INLINE uint32_t kiln_e4m3_four_of(const float *values, float bound) {
    float magnitudes[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        magnitudes[i] = kiln_fast_min(__builtin_fabsf(values[i]), bound);
    return kiln_e4m3_four_magnitudes(magnitudes);
}

#endif

/* bound: from 1 to 448. */
KILN_INLINE kiln_eight_bytes kiln_e4m3_eight_of(const float *values, float bound) {
    kiln_eight_bytes codes;
    KILN_UNROLL
    for (int word = 0; word < 2; word++)
        codes.words[word] =
            kiln_e4m3_four_of(values + 4 * word, bound) | (kiln_float_bytes(values + 4 * word, 1, 3) & 0x80808080u);
    uint64_t unordered = 0;
    KILN_UNROLL
    for (int i = 0; i < 8; i += 2)
        unordered |= kiln_gfx_ballot(__builtin_isunordered(values[i], values[i + 1]));
    if (unordered) {
        KILN_UNROLL
        for (int i = 0; i < 8; i++) {
            const uint32_t others = ~(0xffu << i % 4 * 8), nan = 0x7fu << i % 4 * 8;
            if (values[i] != values[i]) codes.words[i / 4] = (codes.words[i / 4] & others) | nan;
        }
    }
    return codes;
}

#else

KILN_INLINE kiln_eight_bytes kiln_e4m3_eight_of(float *values, float bound) {
    return kiln_e4m3_eight(values, bound);
}

#endif

#endif
