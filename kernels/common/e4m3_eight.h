/* kiln_e4m3_eight (encode_gpu.h), on gfx942 by its instruction for E4M3 FNUZ: the code of a number is the FNUZ code of
 * its half, but for -0 and NaN, which FNUZ has otherwise. */
#ifndef KILN_KERNELS_COMMON_E4M3_EIGHT_H
#define KILN_KERNELS_COMMON_E4M3_EIGHT_H

#include "kernels/common/encode_gpu.h"
#include "kernels/common/two.h"

#if defined(__gfx942__)

#include "kernels/arch/gfx942_codes.h"

/* bound: from 1 to 448. */
KILN_INLINE kiln_eight_bytes kiln_e4m3_eight_of(const float *values, float bound) {
    const kiln_two half = kiln_two_of(0.5f, 0.5f);
    float halves[8];
    KILN_UNROLL
    for (int i = 0; i < 8; i += 2) {
        const float first = kiln_fast_clamp(values[i], bound), second = kiln_fast_clamp(values[i + 1], bound);
        const kiln_two pair = kiln_two_mul(kiln_two_of(first, second), half);
        halves[i] = pair.x;
        halves[i + 1] = pair.y;
    }
    kiln_eight_bytes codes;
    KILN_UNROLL
    for (int word = 0; word < 2; word++)
        codes.words[word] =
            kiln_gfx942_cvt_fnuz_x4(halves + 4 * word) | (kiln_float_bytes(values + 4 * word, 1, 3) & 0x80808080u);
    if (kiln_any_nan(values)) {
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
