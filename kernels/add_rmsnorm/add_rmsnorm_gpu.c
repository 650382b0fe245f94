/* add_rmsnorm: sum = x + residual, rounded when it is stored; y = sum / sqrt(mean of sum^2 + eps) * weight over each
 * row, computed from the sum in f32 before that rounding, and rounded once.
 *
 * Rows are shared among threads as in rmsnorm; what is kept in registers is the sums, in f32. The elements that are
 * read twice are still unchanged the second time, since nothing of a row is written before, so outputs may replace
 * inputs.
 *
 * Floor: two reads and two writes of the tensor at memory bandwidth, 16 bytes an element of f32, 8 of 16 bits;
 * docs/kernel-report.md has the instruction counts and the time that they take.
 * Test: build/tests/ops/rmsnorm_test. Bench: build/kiln bench add_rmsnorm */
#include "kernels/add_rmsnorm/add_rmsnorm_args.h"
#include "kernels/common/kept.h"
#include "kernels/common/math/root.h"
#include "kernels/common/reduce/reduce.h"

KILN_INLINE void sums_of(float *sums, kiln_vector x, kiln_vector residual) {
    float addends[KILN_VECTOR];
    kiln_vector_values(sums, x);
    kiln_vector_values(addends, residual);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        sums[i] += addends[i];
}

KILN_INLINE float squares_of(kiln_span s, const kiln_element *x, const kiln_element *residual, kiln_kept kept) {
    float sum = 0.0f, values[KILN_VECTOR];
    KILN_FOR_KEPT(s, vector, k) {
        kiln_vector xs = {{0}}, residuals = {{0}};
        if (vector < s.whole) {
            xs = kiln_vector_load(x + vector * KILN_VECTOR);
            residuals = kiln_vector_load(residual + vector * KILN_VECTOR);
        }
        sums_of(kept[k], xs, residuals);
        sum = kiln_add_squares(sum, kept[k]);
    }
    KILN_LOOP
    KILN_FOR_BEYOND(s, vector) {
        sums_of(values, kiln_vector_load(x + vector * KILN_VECTOR), kiln_vector_load(residual + vector * KILN_VECTOR));
        sum = kiln_add_squares(sum, values);
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

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    kiln_kept kept;
    float squares = kiln_reduce(squares_of(s, x, residual, kept), lanes_log2, exchange, KILN_REDUCE_SUM);
    float scale = kiln_rsqrt(KILN_FMA(squares, args.mean, args.eps));

    KILN_FOR_KEPT(s, vector, k) {
        if (vector >= s.whole) break;
        const kiln_element *weights = weight ? weight + vector * KILN_VECTOR : 0;
        kiln_vector_store(sum + vector * KILN_VECTOR, kiln_vector_of(kept[k]));
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_weighted(kept[k], scale, weights));
    }
    float values[KILN_VECTOR];
    KILN_LOOP
    KILN_FOR_BEYOND(s, vector) {
        const kiln_element *weights = weight ? weight + vector * KILN_VECTOR : 0;
        sums_of(values, kiln_vector_load(x + vector * KILN_VECTOR), kiln_vector_load(residual + vector * KILN_VECTOR));
        kiln_vector_store(sum + vector * KILN_VECTOR, kiln_vector_of(values));
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_weighted(values, scale, weights));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = kiln_element_to_f32(x[i]) + kiln_element_to_f32(residual[i]);
        float factor = weight ? kiln_element_to_f32(weight[i]) : 1.0f;
        sum[i] = kiln_element_from_f32(value);
        y[i] = kiln_element_from_f32(value * scale * factor);
    }
}
