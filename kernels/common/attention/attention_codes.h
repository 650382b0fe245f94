/* Attention on codes of 8 bits: what all its backends compute alike, one source for host C and both device compilers.
 * The includer (device.h, cpu.h) defines what math.h asks for, and PAGED for sequence.h.
 *
 * Weights are E4M3 codes too, of 2^(x - m + 8) for a score x to the base 2 and a whole number m that is at least as
 * great as the row's scores, and less than 1 greater than one of them. As m changes by whole numbers only, the codes of
 * a row's weights do not depend on the order in which it meets its keys, but for those below 2^-14: every division of
 * the keys, and every backend, rounds the same weights to the same codes. Results are divided by the sum of the codes'
 * numbers, so that what rounding adds to all weights together is taken away again. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_H

#include "kernels/common/attention/attention_codes_args.h"
#include "kernels/common/attention/sequence.h"

#if defined(__CUDACC__)
#define KILN_CEIL(x) ceilf(x)
#else
#define KILN_CEIL(x) __builtin_ceilf(x)
#endif

#define KILN_WEIGHT_LOG2_E 0x1.715476p0f
#define KILN_WEIGHT_LN_2   0x1.62e430p-1f

KILN_INLINE uint64_t kiln_scale_at(kiln_scale_index index, uint64_t token) {
    return (token >> index.high) << index.bits | (token & index.mask) >> index.low;
}

/* m of a row whose greatest score is max, as a natural logarithm; -inf of a row that has seen no key. */
KILN_INLINE float kiln_weight_origin(float max) {
    return KILN_CEIL(max * KILN_WEIGHT_LOG2_E) * KILN_WEIGHT_LN_2;
}

/* Where blocks share a row's keys each leaves, behind its result, m and the sum of its weights as codes where mha has
 * maximum and sum, and behind those of all rows the sum of its weights before they were rounded, which lse wants. */
KILN_INLINE float *kiln_partial_sums(const kiln_attention_args *args) {
    return kiln_partial_scales(args) + 2 * kiln_partial_row(args, args->splits, 0, 0);
}

/* What a weight of at most 1 is as a code: 4 significant bits, or a multiple of 2^-17 below 2^-14. NaN stays. */
KILN_INLINE float kiln_weight_rounded(float weight) {
    uint32_t bits = kiln_bits(weight);
    float rounded = kiln_float((bits + 0x7ffffu + (bits >> 20 & 1u)) & 0xfff00000u);
    float small = (weight + 0x1.8p6f) - 0x1.8p6f;
    return weight >= 0x1p-14f ? rounded : small;
}

#endif
