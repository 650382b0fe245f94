/* add_rmsnorm: sum = x + residual, rounded to the part where it is stored; y = sum / sqrt(mean of sum^2 + eps) * weight
 * over each row, of the sum in f32 before that rounding, and itself with one rounding.
 *
 * Rows are shared and read as in rmsnorm: twice, the second time from a cache. What the second reading finds is still
 * the inputs, since nothing of a row is written before; so the sum of it is the same, and outputs may replace inputs.
 *
 * Floor: two reads and two writes of the tensor at memory bandwidth.
 * Test: build/tests/ops/rmsnorm_test. Bench: build/kiln bench add_rmsnorm */
#include "kernels/add_rmsnorm/add_rmsnorm_args.h"
#include "kernels/common/reduce.h"
#include "kernels/common/root.h"
#include "kernels/common/span.h"

/* Takes a quad of x and of residual, and gives their sums. */
KILN_INLINE void take_sums(kiln_vector *x, kiln_vector *residual, float *sums) {
    float addends[4];
    kiln_quad_take(x, sums);
    kiln_quad_take(residual, addends);
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        sums[i] += addends[i];
}

KILN_INLINE float squares_of(kiln_span s, const kiln_element *x, const kiln_element *residual) {
    float sum = 0.0f, values[4];
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector xs = kiln_vector_load(x + vector * KILN_VECTOR);
        kiln_vector residuals = kiln_vector_load(residual + vector * KILN_VECTOR);
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            take_sums(&xs, &residuals, values);
            KILN_UNROLL
            for (int i = 0; i < 4; i++)
                sum = KILN_FMA(values[i], values[i], sum);
        }
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = kiln_element_to_f32(x[i]) + kiln_element_to_f32(residual[i]);
        sum = KILN_FMA(value, value, sum);
    }
    return sum;
}

KILN_ENTRY(add_rmsnorm, kiln_add_rmsnorm_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    const kiln_element *residual = kiln_span_of_input(s, args.residual, args.residual_stride);
    const kiln_element *weight = (const kiln_element *)args.weight;
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride), *sum = kiln_span_in(s, args.sum, args.sum_stride);

    /* A row beyond the last takes part, empty: reductions are of all threads. */
    float squares = kiln_reduce(squares_of(s, x, residual), lanes_log2, exchange, KILN_REDUCE_SUM);
    float scale = kiln_rsqrt(KILN_FMA(squares, args.mean, args.eps));

    float values[4], weights[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector xs = kiln_vector_load(x + vector * KILN_VECTOR), factors = xs;
        kiln_vector residuals = kiln_vector_load(residual + vector * KILN_VECTOR), sums = xs;
        if (weight) factors = kiln_vector_load(weight + vector * KILN_VECTOR);
        KILN_LOOP
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            take_sums(&xs, &residuals, values);
            kiln_quad_give(&sums, values);
            if (weight) kiln_quad_take(&factors, weights);
            KILN_UNROLL
            for (int i = 0; i < 4; i++)
                values[i] = values[i] * scale * weights[i];
            kiln_quad_give(&xs, values);
        }
        kiln_vector_store(sum + vector * KILN_VECTOR, sums);
        kiln_vector_store(y + vector * KILN_VECTOR, xs);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = kiln_element_to_f32(x[i]) + kiln_element_to_f32(residual[i]);
        float factor = weight ? kiln_element_to_f32(weight[i]) : 1.0f;
        sum[i] = kiln_element_from_f32(value);
        y[i] = kiln_element_from_f32(value * scale * factor);
    }
}
