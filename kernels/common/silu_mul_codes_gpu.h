/* The kernel of silu_mul_fp8, silu_mul_int8 and silu_mul_nvfp4 on devices. */
#ifndef KILN_KERNELS_COMMON_SILU_MUL_CODES_GPU_H
#define KILN_KERNELS_COMMON_SILU_MUL_CODES_GPU_H

#include "kernels/common/codes_gpu.h"
#include "kernels/common/silu_mul_codes_args.h"

/* The results of an eight. A loop computes the activations by halves, always in the first four places, and up is read
 * after it: that takes fewer registers, so that more threads can wait for memory. */
KILN_INLINE void kiln_silu_mul_eight(const kiln_silu_mul_codes_args *args, float *values, uint64_t row, uint32_t col,
                                     uint32_t count) {
    enum { HALF = KILN_EIGHT / 2 };
    float factors[KILN_EIGHT];
    kiln_eight_load(values, (const kiln_element *)args->gate + row * (uint64_t)args->gate_stride + col, count,
                    args->out.shape.wide);
    KILN_LOOP
    for (int half = 0; half < 2; half++) {
        KILN_UNROLL
        for (int i = 0; i < HALF; i++) {
            float activated = kiln_gated(values[i], args->bound, args->coefficients, KILN_SILU_MUL_CODES_COEFFICIENTS);
            values[i] = values[i + HALF];
            values[i + HALF] = activated;
        }
    }
    kiln_eight_load(factors, (const kiln_element *)args->up + row * (uint64_t)args->up_stride + col, count,
                    args->out.shape.wide);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        values[i] *= factors[i];
}

/* A block's rows. If a row's greatest magnitude determines its scale, its results are computed twice. */
KILN_INLINE void kiln_silu_mul_codes(const kiln_silu_mul_codes_args *args, float *exchange, kiln_codes_format format) {
    const kiln_codes_args *out = &args->out;
    kiln_codes_place p = kiln_codes_place_of(out);
    if (p.beyond) return;
    float state = 0.0f; /* at first the greatest magnitude */
    KILN_LOOP
    for (uint32_t last = kiln_codes_of_row(out) ? 0 : 1; last < 2; last++) {
        if (last) state = kiln_codes_state(out, p, state, format);
        KILN_LOOP
        for (uint32_t first = 0; first < out->eights; first += p.lanes) { /* by all threads alike */
            uint32_t eight = first + p.lane, count = kiln_eight_count(out, p, eight);
            float values[KILN_EIGHT];
            kiln_silu_mul_eight(args, values, p.row, eight * KILN_EIGHT, count);
            if (last)
                kiln_eight_put(out, p, eight, values, count, &state, format);
            else
                state = kiln_eight_greatest(values, state);
        }
        if (!last) state = kiln_reduce(state, out->shape.lanes_log2, exchange, KILN_REDUCE_MAX);
    }
}

#endif
