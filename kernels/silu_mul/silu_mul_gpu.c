/* silu_mul: y = activation(gate) * up, in f32, with one rounding.
 *
 * A block does a tile of some rows, as in add_gelu: a row has 1 to 256 threads, each with up to four vectors of
 * 16 bytes. Without 16-byte alignment, and at a row's end, threads go by elements, side by side.
 *
 * Both activations are t sigmoid(t P(t^2)), whose coefficients come with the arguments.
 *
 * Floor: two reads and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/silu_mul_test. Bench: build/kiln bench silu_mul */
#include "kernels/common/span.h"
#include "kernels/silu_mul/silu_mul_args.h"

KILN_INLINE float activation(const kiln_silu_mul_args *args, float gate) {
    return kiln_gated(gate, args->bound, args->coefficients, KILN_SILU_MUL_COEFFICIENTS);
}

KILN_ENTRY(silu_mul, kiln_silu_mul_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const kiln_element *gate = kiln_span_of_input(s, args.gate, args.gate_stride);
    const kiln_element *up = kiln_span_of_input(s, args.up, args.up_stride);
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);

    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector gates = kiln_vector_load(gate + vector * KILN_VECTOR);
        kiln_vector ups = kiln_vector_load(up + vector * KILN_VECTOR);
        float values[4], factors[4];
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&gates, values);
            kiln_quad_take(&ups, factors);
            KILN_UNROLL
            for (int i = 0; i < 4; i++)
                values[i] = activation(&args, values[i]) * factors[i];
            kiln_quad_give(&gates, values);
        }
        kiln_vector_store(y + vector * KILN_VECTOR, gates);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = activation(&args, kiln_element_to_f32(gate[i]));
        y[i] = kiln_element_from_f32(value * kiln_element_to_f32(up[i]));
    }
}
