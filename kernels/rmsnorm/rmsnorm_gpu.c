/* rmsnorm: y = x / sqrt(mean of x^2 + eps) * weight over each row, in f32, with one rounding.
 *
 * Narrow rows take 1 to 32 threads each and reduce by shuffles alone; others take the block. A row is read twice, once
 * for the sum of its squares and once for the result; the second time it comes from a cache, which holds the rows that
 * are under way. So a row may be of any length, and nothing is kept.
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/rmsnorm_test. Bench: build/kiln bench rmsnorm */
#include "kernels/common/reduce.h"
#include "kernels/common/root.h"
#include "kernels/common/span.h"
#include "kernels/rmsnorm/rmsnorm_args.h"

KILN_INLINE float squares_of(kiln_span s, const kiln_element *x) {
    float sum = 0.0f, values[4];
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector held = kiln_vector_load(x + vector * KILN_VECTOR);
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&held, values);
            KILN_UNROLL
            for (int i = 0; i < 4; i++)
                sum = KILN_FMA(values[i], values[i], sum);
        }
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = kiln_element_to_f32(x[i]);
        sum = KILN_FMA(value, value, sum);
    }
    return sum;
}

KILN_INLINE void put(kiln_span s, kiln_element *y, const kiln_element *x, const kiln_element *weight, float scale) {
    float values[4], weights[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector held = kiln_vector_load(x + vector * KILN_VECTOR), factors = held;
        if (weight) factors = kiln_vector_load(weight + vector * KILN_VECTOR);
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            kiln_quad_take(&held, values);
            if (weight) kiln_quad_take(&factors, weights);
            KILN_UNROLL
            for (int i = 0; i < 4; i++)
                values[i] = values[i] * scale * weights[i];
            kiln_quad_give(&held, values);
        }
        kiln_vector_store(y + vector * KILN_VECTOR, held);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float factor = weight ? kiln_element_to_f32(weight[i]) : 1.0f;
        y[i] = kiln_element_from_f32(kiln_element_to_f32(x[i]) * scale * factor);
    }
}

KILN_ENTRY(rmsnorm, kiln_rmsnorm_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);

    /* A row beyond the last takes part, empty: reductions are of all threads. */
    float sum = kiln_reduce(squares_of(s, x), lanes_log2, exchange, KILN_REDUCE_SUM);
    float scale = kiln_rsqrt(KILN_FMA(sum, args.mean, args.eps));
    put(s, kiln_span_in(s, args.y, args.y_stride), x, (const kiln_element *)args.weight, scale);
}
