/* rmsnorm: y = x / sqrt(mean of x^2 + eps) * weight over each row, in f32, with one rounding.
 *
 * 1 to 256 threads share a row. Each reads up to four vectors and their weights, all before it uses the first, and
 * keeps them in registers as they were read; the threads of the row meet once, by shuffles and one barrier. What a row
 * has beyond the 16 KiB that a block holds so, and elements that are not read in vectors, are read twice, the second
 * time from a cache: a row may have any length.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits;
 * docs/kernel-report.md has the instruction counts. Measured (H100 80GB HBM3, driver 580.159.04, 2026-11-26; bf16,
 * [16384, 4096], a copy of it 90.2 us): 91.1 us; before, with one vector in registers, 92.1 us. [16384, 8192] takes 180
 * us instead of 201, [64, 4096] 2.8 us instead of 3.3.
 * Test: build/tests/ops/rmsnorm_test. Bench: build/kiln bench rmsnorm */
#include "kernels/common/held.h"
#include "kernels/common/kept.h"
#include "kernels/common/math/root.h"
#include "kernels/common/reduce/row_reduce.h"
#include "kernels/rmsnorm/rmsnorm_args.h"

KILN_INLINE float squares_of(kiln_span s, const kiln_element *x, const kiln_vector *held) {
    float sum = 0.0f, values[KILN_VECTOR];
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        kiln_vector_values(values, held[k]);
        sum = kiln_add_squares(sum, values);
    }
    KILN_LOOP
    KILN_FOR_UNHELD(s, vector) {
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        sum = kiln_add_squares(sum, values);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float value = kiln_element_to_f32(x[i]);
        sum = KILN_FMA(value, value, sum);
    }
    return sum;
}

KILN_INLINE void put(kiln_element *y, kiln_vector x, bool weighted, kiln_vector weight, float scale) {
    float values[KILN_VECTOR], weights[KILN_VECTOR];
    kiln_vector_values(values, x);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] *= scale;
    if (weighted) {
        kiln_vector_values(weights, weight);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            values[i] *= weights[i];
    }
    kiln_vector_store(y, kiln_vector_of(values));
}

KILN_ENTRY(rmsnorm, kiln_rmsnorm_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    const kiln_element *weight = (const kiln_element *)args.weight;

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    kiln_vector held[KILN_HELD], weights[KILN_HELD];
    kiln_hold(held, s, x);
    if (weight) kiln_hold(weights, s, weight);
    float sum = kiln_row_reduce(squares_of(s, x, held), lanes_log2, exchange, KILN_REDUCE_SUM);
    float scale = kiln_rsqrt(KILN_FMA(sum, args.mean, args.eps));

    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        put(y + vector * KILN_VECTOR, held[k], weight != 0, weights[k], scale);
    }
    KILN_LOOP
    KILN_FOR_UNHELD(s, vector) {
        if (weight) weights[0] = kiln_vector_load(weight + vector * KILN_VECTOR);
        put(y + vector * KILN_VECTOR, kiln_vector_load(x + vector * KILN_VECTOR), weight != 0, weights[0], scale);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float factor = weight ? kiln_element_to_f32(weight[i]) : 1.0f;
        y[i] = kiln_element_from_f32(kiln_element_to_f32(x[i]) * scale * factor);
    }
}
