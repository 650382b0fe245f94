/* How a result is quantised, one source for host C and both device compilers, so that all backends have the same bits.
 * The includer (device.h, cpu.h) defines what math.h asks for. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_SCALE_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_SCALE_H

#include "kernels/common/formats/small_integer.h"
#include "kernels/common/quantize/codes_args.h"
#include "kernels/common/quantize/nvfp4_scale.h"
#include "kernels/common/quantize/quantize_scale.h"

/* The scale of elements, from their greatest magnitude. */
KILN_INLINE float kiln_codes_scale(const kiln_codes_args *args, float greatest) {
    kiln_quantize_args formula;
    formula.smax = args->smax;
    formula.source = KILN_QUANTIZE_COMPUTED;
    float computed = kiln_quantize_scale(&formula, greatest);
    return args->static_scale != 0.0f ? args->static_scale : computed;
}

/* The global scale of NVFP4 of a row, from its greatest magnitude. */
KILN_INLINE float kiln_codes_global(const kiln_codes_args *args, float greatest) {
    float computed = kiln_nvfp4_global(greatest, 0);
    return args->static_scale != 0.0f ? args->static_scale : computed;
}

/* The 8-bit code of a value that is divided by its scale. */
KILN_INLINE uint8_t kiln_codes_byte(float scaled, float smax, kiln_codes_format format) {
    return format == KILN_CODES_E4M3 ? kiln_e4m3_within(scaled, smax) : (uint8_t)kiln_int8_within(scaled, smax);
}

/* Whether a row's greatest magnitude must be known before any of its codes can be made. */
KILN_INLINE uint32_t kiln_codes_of_row(const kiln_codes_args *args) {
    return args->static_scale == 0.0f && !args->grouped;
}

/* The sum of the squares of eight values, added by halves. */
KILN_INLINE float kiln_eight_squares(const float *values) {
    float sums[KILN_EIGHT / 2];
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT / 2; i++)
        sums[i] = values[i] * values[i] + values[i + KILN_EIGHT / 2] * values[i + KILN_EIGHT / 2];
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

#endif
