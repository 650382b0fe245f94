/* add_gelu: y = gelu(x + bias), in f32, with one rounding.
 *
 * A block does a tile of some rows: a row has 1 to 256 threads, each with up to four vectors of 16 bytes, so that
 * narrow rows leave no thread idle and the blocks of wide ones cover the memory's latency. Without 16-byte alignment,
 * and at a row's end, threads go by elements, side by side.
 *
 * All forms of GELU are t sigmoid(t P(t^2)), whose coefficients come with the arguments: one code path, no branch.
 *
 * Floor: one read and one write of the tensor at memory bandwidth; bias comes from the caches.
 * Test: build/tests/ops/add_gelu_test. Bench: build/kiln bench add_gelu */
#include "kernels/add_gelu/add_gelu_args.h"
#include "kernels/common/span.h"

KILN_INLINE float gelu(const kiln_add_gelu_args *args, float t) {
    return kiln_gated(t, args->bound, args->coefficients, KILN_ADD_GELU_COEFFICIENTS);
}

KILN_ENTRY(add_gelu, kiln_add_gelu_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    const kiln_element *bias = args.bias ? (const kiln_element *)args.bias + s.start : 0;
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);

    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector in = kiln_vector_load(x + vector * KILN_VECTOR), add = {{0}};
        float values[4], addends[4];
        if (bias) add = kiln_vector_load(bias + vector * KILN_VECTOR);
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&in, values);
            kiln_quad_take(&add, addends);
            KILN_UNROLL
            for (int i = 0; i < 4; i++)
                values[i] = gelu(&args, values[i] + addends[i]);
            kiln_quad_give(&in, values);
        }
        kiln_vector_store(y + vector * KILN_VECTOR, in);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float addend = bias ? kiln_element_to_f32(bias[i]) : 0.0f;
        y[i] = kiln_element_from_f32(gelu(&args, kiln_element_to_f32(x[i]) + addend));
    }
}
