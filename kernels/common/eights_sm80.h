/* What kernels that quantise their own result share from sm_80 on: eights.h, with two numbers for each pair where
 * the device has no instructions for both, and a row's greatest magnitude by what the device has. */
#ifndef KILN_KERNELS_COMMON_EIGHTS_SM80_H
#define KILN_KERNELS_COMMON_EIGHTS_SM80_H

#include "kernels/arch/sm80_greater_or_nan.h"
#include "kernels/common/eights.h"

/* The greater of a magnitude and an eight's, or NaN if there is one. From sm_86 on it has some sign. */
KILN_INLINE float kiln_eight_greatest_or_nan(const kiln_packed *pairs, float greatest) {
#if __CUDA_ARCH__ >= 860
    return kiln_eight_greater_or_nan(pairs, greatest);
#else
    float values[KILN_EIGHT];
    kiln_eight_unpack(values, pairs);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        greatest = kiln_sm80_greater_or_nan_f32(greatest, __builtin_fabsf(values[i]));
    return greatest;
#endif
}

/* kiln_eights_put. */
template <int COUNT, bool FULL>
KILN_INLINE void kiln_eights_finish(const kiln_codes_args *args, kiln_codes_place p, uint32_t eights,
                                    kiln_packed (*values)[KILN_EIGHT_PAIRS], kiln_codes_exchange *exchange,
                                    kiln_codes_format format) {
    float greatest = 0.0f;
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++)
        if (kiln_eight_is<FULL>(i, eights)) greatest = kiln_eight_greatest_or_nan(values[i], greatest);
    greatest = kiln_eights_block_greatest(__builtin_fabsf(greatest), exchange); /* NaN has the greatest bits */
    if (greatest < KILN_INFINITY)
        kiln_eights_put_finite<COUNT, FULL>(args, p, eights, values, greatest, format);
    else
        kiln_eights_put_special<COUNT>(args, p, eights, values, exchange, format);
}

#endif
