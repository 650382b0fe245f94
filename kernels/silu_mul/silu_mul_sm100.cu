/* silu_mul for sm_100 and later, in 16 bits: silu_mul_gpu.c, whose vectors are computed as pairs of f32. Not measured.
 */
#include "kernels/arch/sm80.h"
#include "kernels/common/math/packed.h"
#include "kernels/common/span.h"
#include "kernels/common/tuned.h"
#include "kernels/silu_mul/silu_mul_args.h"

/* What kiln_fast_gated computes with. */
typedef struct gate {
    float bound;
    kiln_packed powers[KILN_SILU_MUL_COEFFICIENTS];
} gate;

/* kiln_fast_gated of two elements. Below -bound the result is that of -bound, a magnitude of less than 1e-32, instead
 * of -0. */
KILN_INLINE void gate_two(float *t, const gate &g) {
    float limited[2], arguments[2];
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        t[i] = kiln_sm80_greater_or_nan_f32(t[i], -g.bound);
        limited[i] = kiln_sm80_lesser_or_nan_f32(t[i], g.bound);
    }
    const kiln_packed c = kiln_pack(limited[0], limited[1]);
    const kiln_packed p = kiln_packed_fma(kiln_packed_mul(c, c), g.powers[1], g.powers[0]);
    kiln_unpack(arguments, kiln_packed_mul(c, p));
    KILN_UNROLL
    for (int i = 0; i < 2; i++)
        t[i] *= kiln_fast_reciprocal(1.0f + kiln_fast_exp2(arguments[i]));
}

KILN_ENTRY(silu_mul, kiln_silu_mul_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const kiln_element *gate_row = kiln_span_of_input(s, args.gate, args.gate_stride);
    const kiln_element *up = kiln_span_of_input(s, args.up, args.up_stride);
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);
    gate g = {args.bound, {}};
    KILN_UNROLL
    for (int i = 0; i < KILN_SILU_MUL_COEFFICIENTS; i++) {
        const float power = args.coefficients[i] * -KILN_LOG2_E;
        g.powers[i] = kiln_pack(power, power);
    }
    uint64_t at = (uint64_t)s.first * KILN_VECTOR;
    KILN_LOOP
    for (uint32_t vector = s.first; vector < s.whole; vector += s.lanes, at += s.lanes * KILN_VECTOR) {
        float values[KILN_VECTOR], factors[KILN_VECTOR];
        kiln_vector_values(values, kiln_vector_load(gate_row + at));
        kiln_vector_values(factors, kiln_vector_load(up + at));
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i += 2) {
            gate_two(values + i, g);
            values[i] *= factors[i];
            values[i + 1] *= factors[i + 1];
        }
        kiln_vector_store(y + at, kiln_vector_of(values));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float pair[2] = {kiln_element_to_f32(gate_row[i]), 0.0f};
        gate_two(pair, g);
        y[i] = kiln_element_from_f32(pair[0] * kiln_element_to_f32(up[i]));
    }
}

KILN_TUNED_PARTS(f16 bf16)
