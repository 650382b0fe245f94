/* The kernel of silu_mul_fp8 and silu_mul_int8 on devices. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/math/glu_exactly.h"
#include "kernels/common/quantize/codes_gpu.h"
#include "kernels/common/quantize/silu_mul_codes_args.h"

/* The results of an eight. The argument of SiLU's sigmoid is the gate itself, which three instructions for each element
 * need not be spent on. */
KILN_INLINE void kiln_silu_mul_eight(const kiln_silu_mul_codes_args *args, float *values, const kiln_element *gate,
                                     const kiln_element *up, uint32_t count) {
    kiln_eight_bits gates = kiln_eight_load(gate, count, args->out.shape.wide);
    kiln_eight_bits ups = kiln_eight_load(up, count, args->out.shape.wide);
    float arguments[KILN_EIGHT], factors[KILN_EIGHT];
    kiln_eight_values(values, gates);
    kiln_eight_values(factors, ups);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        arguments[i] = kiln_fast_min(values[i], args->bound);
    if (args->coefficients[1] != 0.0f) {
        KILN_UNROLL
        for (int i = 0; i < KILN_EIGHT; i++)
            arguments[i] = kiln_glu_argument(arguments[i], args->coefficients);
    }
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        values[i] = kiln_glu_result(values[i], arguments[i], args->bound) * factors[i];
}

/* A block's rows. If a row's greatest magnitude determines its scale, its results are kept in shared memory between
 * two passes; those for which there is no room are computed again. All threads go through the loops alike. */
KILN_INLINE void kiln_silu_mul_codes(const kiln_silu_mul_codes_args *args, kiln_codes_kept *kept, float *exchange,
                                     kiln_codes_format format) {
    const kiln_codes_args *out = &args->out;
    kiln_codes_place p = kiln_codes_place_of(out);
    if (p.beyond) return;
    uint32_t step = p.lanes * KILN_EIGHT;
    float state = 0.0f; /* the greatest magnitude, then the factor of the codes */
    KILN_LOOP
    for (uint32_t last = kiln_codes_of_row(out) ? 0 : 1; last < 2; last++) {
        if (last) state = kiln_codes_row_factor(out, p, state);
        uint32_t eight = p.lane;
        uint64_t col = (uint64_t)eight * KILN_EIGHT;
        const kiln_element *gate = (const kiln_element *)args->gate + p.row * (uint64_t)args->gate_stride + col;
        const kiln_element *up = (const kiln_element *)args->up + p.row * (uint64_t)args->up_stride + col;
        KILN_LOOP
        for (uint32_t number = 0; number < out->rounds; number++) {
            uint32_t count = kiln_eight_count(out, p, eight);
            float values[KILN_EIGHT];
            if (last && number < out->kept)
                kiln_eight_recall(kept, number, values);
            else
                kiln_silu_mul_eight(args, values, gate, up, count);
            if (last) {
                kiln_eight_put(out, p, eight, values, count, state, format);
            } else {
                state = kiln_eight_greatest(values, state);
                if (number < out->kept) kiln_eight_keep(kept, number, values);
            }
            eight += p.lanes;
            gate += step;
            up += step;
        }
        if (!last) state = kiln_reduce(state, out->shape.lanes_log2, exchange, KILN_REDUCE_MAX);
    }
}

#endif
