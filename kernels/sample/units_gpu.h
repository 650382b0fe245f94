/* Sums of weights in units of 2^-40, rounded down each: what choice.h defines, without a conversion to 64 bits for each
 * element, which takes a multiprocessor as long as 8 to 64 other instructions.
 *
 * A weight of at most 2^40 units is a multiple of 2^17 of them and a rest below that. Each is an integer that a number
 * of f32 holds exactly; the two are summed apart, at most 256 of them. */
#ifndef KILN_KERNELS_SAMPLE_UNITS_GPU_H
#define KILN_KERNELS_SAMPLE_UNITS_GPU_H

#include "kernels/common/math/special.h"
#include "kernels/sample/choice.h"

typedef struct units {
    uint32_t high; /* of 2^17 */
    uint32_t low;
} units;

/* Adds the weight of a number, 0 for NaN. The row has no infinite elements. */
KILN_INLINE void units_add(units *sum, const kiln_row *row, float value) {
    const kiln_exp_reduction reduction = kiln_exp_reduce(kiln_fast_max(kiln_sample_exponent(row, value), -88.0f));
#if defined(__CUDACC__)
    /* 2^n is multiplied by 2^40 in its exponent, and by e^r with each addition. Rounded down, a sum with 2^40 is a
     * multiple of 2^17, and one with 2^23 an integer, in the lowest bits of its own. */
    const kiln_exp_reduction rest = {kiln_float(127), reduction.r};
    float power = kiln_exp_finish(rest), scale = kiln_float((kiln_bits(reduction.shifted) + 40) << 23);
    float high = __fmaf_rd(power, scale, 0x1p40f);
    float low = __fmaf_rd(power, scale, 0x1p40f + 0x1p23f - high);
    sum->high += kiln_bits(high) - kiln_bits(0x1p40f);
    sum->low += kiln_bits(low) - kiln_bits(0x1p23f);
#else
    float exponential = kiln_exp_finish(reduction), high = __builtin_floorf(exponential * 0x1p23f);
    sum->high += (uint32_t)high;
    sum->low += (uint32_t)KILN_FMA(high, -0x1p17f, exponential * 0x1p40f);
#endif
}

KILN_INLINE uint64_t units_sum(units sum) {
    return ((uint64_t)sum.high << 17) + sum.low;
}

#endif
