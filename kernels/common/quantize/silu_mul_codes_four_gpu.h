/* silu_mul_fp8, silu_mul_int8 and silu_mul_nvfp4 for SiLU, where rows are those of codes_four_gpu.h. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_FOUR_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_FOUR_GPU_H

#include "kernels/common/quantize/nvfp4_four_gpu.h"
#include "kernels/common/quantize/silu_mul_codes_gpu.h"

/* The results of any gates. In a loop, for the size of the image: they are shifted in through the last place. */
KILN_INLINE void kiln_silu_mul_any(const kiln_silu_mul_codes_args *args, float (*values)[KILN_EIGHT],
                                   const kiln_element *gate, const kiln_element *up, kiln_codes_place p) {
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_FOUR * KILN_EIGHT; i++) {
        const uint32_t last = (uint32_t)args->out.shape.cols - KILN_EIGHT;
        const uint32_t first = (p.lane + i / KILN_EIGHT * p.lanes) * KILN_EIGHT;
        const uint32_t col = (first < last ? first : last) + i % KILN_EIGHT;
        kiln_four_shift(values, kiln_glu_exactly(kiln_element_to_f32(gate[col]), args->bound, args->coefficients) *
                                    kiln_element_to_f32(up[col]));
    }
}

KILN_INLINE void kiln_silu_mul_four(const kiln_silu_mul_codes_args *args, float *exchange, kiln_codes_format format) {
    const kiln_codes_args *out = &args->out;
    const kiln_codes_place p = kiln_codes_place_of(out);
    if (p.beyond) return;
    const uint64_t row = kiln_four_row(out, p);
    const kiln_element *gate = (const kiln_element *)args->gate + row * (uint64_t)args->gate_stride;
    const kiln_element *up = (const kiln_element *)args->up + row * (uint64_t)args->up_stride;
    kiln_eight_bits gates[KILN_FOUR], ups[KILN_FOUR];
    float values[KILN_FOUR][KILN_EIGHT], beyond = 0.0f, greatest[KILN_FOUR];
    uint32_t cols[KILN_FOUR];
    kiln_four_columns(out, p, cols);
    KILN_UNROLL
    for (int i = 0; i < KILN_FOUR; i++) {
        gates[i] = kiln_eight_load(gate + cols[i], KILN_EIGHT, true);
        ups[i] = kiln_eight_load(up + cols[i], KILN_EIGHT, true);
    }
    KILN_UNROLL
    for (int i = 0; i < KILN_FOUR; i++) {
        float factors[KILN_EIGHT];
        kiln_eight_values(values[i], gates[i]);
        kiln_eight_values(factors, ups[i]);
#if defined(KILN_PART_f16)
        beyond = kiln_four_greatest(values[i], beyond);
#else
        beyond = kiln_eight_greatest(values[i], beyond);
#endif
        KILN_UNROLL
        for (int e = 0; e < KILN_EIGHT; e++)
            values[i][e] = kiln_glu_within(values[i][e], values[i][e]) * factors[e];
        if (format == KILN_CODES_NVFP4) /* registers are too few for the work on all eights at once */
            __builtin_amdgcn_sched_barrier(0);
    }
    if (beyond > args->bound) kiln_silu_mul_any(args, values, gate, up, p);
    float of_row = 0.0f;
    KILN_UNROLL
    for (int i = 0; i < KILN_FOUR; i++) {
        greatest[i] = kiln_four_greatest(values[i], format == KILN_CODES_NVFP4 ? 0.0f : of_row);
        of_row = __builtin_fmaxf(greatest[i], of_row);
    }
    of_row = kiln_row_greatest(of_row, out->shape.lanes_log2, exchange);
    if (format == KILN_CODES_NVFP4)
        kiln_nvfp4_four_put(out, p, values, greatest, of_row);
    else
        kiln_four_put(out, p, values, kiln_codes_row_factor(out, p, of_row), format);
}

#endif
