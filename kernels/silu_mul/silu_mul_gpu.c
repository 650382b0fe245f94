/* silu_mul: y = activation(gate) * up, in f32, with one rounding.
 *
 * A block computes a tile of several rows, as in add_gelu: 1 to 256 threads share a row, each with up to four vectors
 * of 16 bytes. Without 16-byte alignment, and at a row's end, consecutive threads take consecutive elements.
 *
 * Both activations are t sigmoid(t P(t^2)), whose coefficients come with the arguments.
 *
 * Floor: two reads and one write of the tensor at memory bandwidth, 12 bytes an element of f32, 6 of 16 bits;
 * docs/kernel-report.md has the instruction counts and the time that they take.
 * Test: build/tests/ops/silu_mul_test. Bench: build/kiln bench silu_mul */
#include "kernels/common/span_row.h"
#include "kernels/common/values.h"
#include "kernels/silu_mul/silu_mul_args.h"

KILN_ENTRY(silu_mul, kiln_silu_mul_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const kiln_element *gate = kiln_row_of_input(&args.shape, s, args.gate, args.gate_stride);
    const kiln_element *up = kiln_row_of_input(&args.shape, s, args.up, args.up_stride);
    kiln_element *y = kiln_row_in(&args.shape, s, args.y, args.y_stride);

    float powers[KILN_SILU_MUL_COEFFICIENTS];
    kiln_powers_of(powers, args.coefficients, KILN_SILU_MUL_COEFFICIENTS);

    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        float values[KILN_VECTOR], factors[KILN_VECTOR];
        kiln_vector_values(values, kiln_vector_load(gate + vector * KILN_VECTOR));
        kiln_vector_values(factors, kiln_vector_load(up + vector * KILN_VECTOR));
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            values[i] = kiln_fast_gated(values[i], args.bound, powers, KILN_SILU_MUL_COEFFICIENTS) * factors[i];
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_vector_of(values));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = kiln_fast_gated(kiln_element_to_f32(gate[i]), args.bound, powers, KILN_SILU_MUL_COEFFICIENTS);
        y[i] = kiln_element_from_f32(value * kiln_element_to_f32(up[i]));
    }
}
