/* silu_mul_fp8 and silu_mul_int8 on sm_90a, for aligned rows that a block shares: a thread computes two
 * eights at a time, and keeps them in registers until a row's scale is known if it has no more. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_SM90A_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_SM90A_H

#include "kernels/common/device.h"
#include "kernels/common/math/pairs.h"
#include "kernels/common/quantize/codes_sm90a.h"
#include "kernels/common/quantize/silu_mul_codes_gpu.h"

/* Whether all of a vector's elements are of at most that magnitude. NaN is not. */
KILN_INLINE bool kiln_silu_mul_within(kiln_vector v, float bound) {
    float pair[2];
    kiln_pair_values(pair, kiln_pair_greater_or_nan(kiln_pair_greater_or_nan(v.words[0], v.words[1]),
                                                    kiln_pair_greater_or_nan(v.words[2], v.words[3])));
    return __builtin_fabsf(pair[0]) <= bound && __builtin_fabsf(pair[1]) <= bound;
}

/* The results of an eight. `within`: the activation is SiLU, and no gate is beyond its bound. */
KILN_INLINE void kiln_silu_mul_values(const kiln_silu_mul_codes_args *args, float *values, kiln_vector gates,
                                      kiln_vector ups, bool within) {
    float arguments[KILN_EIGHT], factors[KILN_EIGHT];
    kiln_vector_values(values, gates);
    kiln_vector_values(factors, ups);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        arguments[i] = within ? values[i] : kiln_fast_min(values[i], args->bound);
    if (!within && args->coefficients[1] != 0.0f) {
        KILN_UNROLL
        for (int i = 0; i < KILN_EIGHT; i++)
            arguments[i] = kiln_glu_argument(arguments[i], args->coefficients);
    }
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        values[i] = (within ? kiln_glu_within(values[i], arguments[i])
                            : kiln_glu_result(values[i], arguments[i], args->bound)) *
                    factors[i];
}

/* Returns whether it did the call. */
KILN_INLINE bool kiln_silu_mul_held(const kiln_silu_mul_codes_args *args, kiln_codes_kept *kept,
                                    kiln_codes_exchange *exchange, kiln_codes_format format) {
    enum { COUNT = 2 };
    const kiln_codes_args *out = &args->out;
    const uint32_t rounds = out->rounds, of_row = kiln_codes_of_row(out);
    if (!kiln_codes_regular(out) || (of_row && rounds > COUNT && rounds > out->kept)) return false;
    const kiln_codes_place p = kiln_codes_place_of_block(out);
    if (p.beyond) return true;
    const uint32_t eights = p.inside ? (uint32_t)out->shape.cols / KILN_EIGHT : 0, step = KILN_BLOCK * KILN_EIGHT;
    const kiln_element *gate =
        (const kiln_element *)args->gate + p.row * (uint64_t)args->gate_stride + p.lane * KILN_EIGHT;
    const kiln_element *up = (const kiln_element *)args->up + p.row * (uint64_t)args->up_stride + p.lane * KILN_EIGHT;
    float values[COUNT][KILN_EIGHT], greatest = 0.0f, factor = 0.0f;
    if (!of_row) factor = kiln_codes_block_factor(out, p, greatest);
    KILN_LOOP
    for (uint32_t number = 0; number < rounds; number += COUNT) {
        const uint32_t first = p.lane + number * KILN_BLOCK;
        kiln_vector gates[COUNT], ups[COUNT];
        KILN_UNROLL
        for (int i = 0; i < COUNT; i++) {
            gates[i] = ups[i] = kiln_vector{};
            if (first + i * KILN_BLOCK < eights) {
                gates[i] = kiln_vector_load(gate + i * step);
                ups[i] = kiln_vector_load(up + i * step);
            }
        }
        gate += COUNT * step;
        up += COUNT * step;
        bool within = args->coefficients[1] == 0.0f;
        KILN_UNROLL
        for (int i = 0; i < COUNT; i++)
            within &= kiln_silu_mul_within(gates[i], args->bound);
        if (within) {
            KILN_UNROLL
            for (int i = 0; i < COUNT; i++)
                kiln_silu_mul_values(args, values[i], gates[i], ups[i], true);
        } else {
            KILN_UNROLL
            for (int i = 0; i < COUNT; i++)
                kiln_silu_mul_values(args, values[i], gates[i], ups[i], false);
        }
        if (!of_row) {
            kiln_codes_put<COUNT>(out, p, first, eights, values, factor, format, out->grouped);
            continue;
        }
        KILN_UNROLL
        for (int i = 0; i < COUNT; i++) {
            greatest = kiln_eight_greatest(values[i], greatest);
            if (rounds > COUNT && number + i < rounds) kiln_eight_keep(kept, number + i, values[i]);
        }
    }
    if (!of_row) return true;
    factor = kiln_codes_block_factor(out, p, kiln_codes_block_greatest(greatest, exchange));
    KILN_LOOP
    for (uint32_t number = 0; number < rounds; number += COUNT) {
        KILN_UNROLL
        for (int i = 0; i < COUNT; i++)
            if (rounds > COUNT && number + i < rounds) kiln_eight_recall(kept, number + i, values[i]);
        kiln_codes_put<COUNT>(out, p, p.lane + number * KILN_BLOCK, eights, values, factor, format, false);
    }
    return true;
}

#endif
