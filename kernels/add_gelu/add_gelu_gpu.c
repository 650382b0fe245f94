/* add_gelu: y = gelu(x + bias), in f32, with one rounding.
 *
 * A block computes a tile of several rows. 1 to 256 threads share a row, and each takes up to four vectors of 16 bytes,
 * so that short rows leave no thread idle and enough blocks of long rows are in flight to cover the memory's latency.
 * Without 16-byte alignment, and at a row's end, consecutive threads take consecutive elements.
 *
 * All forms of GELU are t sigmoid(t P(t^2)), whose coefficients come with the arguments: one code path, no branch.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits; bias comes
 * from the caches. docs/kernel-report.md has the instruction counts and the time that they take.
 * Test: build/tests/ops/add_gelu_test. Bench: build/kiln bench add_gelu */
#include "kernels/add_gelu/add_gelu_args.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"

KILN_ENTRY(add_gelu, kiln_add_gelu_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    const kiln_element *bias = args.bias ? (const kiln_element *)args.bias + s.start : 0;
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);

    float powers[KILN_ADD_GELU_COEFFICIENTS];
    kiln_powers_of(powers, args.coefficients, KILN_ADD_GELU_COEFFICIENTS);

    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector in = kiln_vector_load(x + vector * KILN_VECTOR), add = {{0}};
        float values[KILN_VECTOR], addends[KILN_VECTOR];
        if (bias) add = kiln_vector_load(bias + vector * KILN_VECTOR);
        kiln_vector_values(values, in);
        kiln_vector_values(addends, add);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            values[i] = kiln_fast_gated(values[i] + addends[i], args.bound, powers, KILN_ADD_GELU_COEFFICIENTS);
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_vector_of(values));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float addend = bias ? kiln_element_to_f32(bias[i]) : 0.0f;
        float t = kiln_element_to_f32(x[i]) + addend;
        y[i] = kiln_element_from_f32(kiln_fast_gated(t, args.bound, powers, KILN_ADD_GELU_COEFFICIENTS));
    }
}
