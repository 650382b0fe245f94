/* rmsnorm: y = x / sqrt(mean of x^2 + eps) * weight over each row, in f32, with one rounding.
 *
 * Short rows take 1 to 32 threads each and are reduced by shuffles alone; longer rows take the whole block. Each thread
 * keeps the first elements that it reads in registers (kept.h). The rest of a longer row, and elements that are not
 * read in vectors, are read twice, the second time from a cache: a row may have any length.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits;
 * docs/kernel-report.md has the instruction counts and the time that they take.
 * Test: build/tests/ops/rmsnorm_test. Bench: build/kiln bench rmsnorm */
#include "kernels/common/kept.h"
#include "kernels/common/reduce.h"
#include "kernels/common/root.h"
#include "kernels/rmsnorm/rmsnorm_args.h"

KILN_INLINE float squares_of(kiln_span s, const kiln_element *x, kiln_kept kept) {
    float sum = 0.0f, values[KILN_VECTOR];
    KILN_FOR_KEPT(s, vector, k) {
        kiln_vector held = {{0}};
        if (vector < s.whole) held = kiln_vector_load(x + vector * KILN_VECTOR);
        kiln_vector_values(kept[k], held);
    }
    KILN_FOR_KEPT(s, unused, k)
    sum = kiln_add_squares(sum, kept[k]);
    KILN_LOOP
    KILN_FOR_BEYOND(s, vector) {
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

KILN_INLINE void put(kiln_span s, kiln_element *y, const kiln_element *x, kiln_kept kept, const kiln_element *weight,
                     float scale) {
    float values[KILN_VECTOR];
    KILN_FOR_KEPT(s, vector, k) {
        if (vector >= s.whole) break;
        const kiln_element *weights = weight ? weight + vector * KILN_VECTOR : 0;
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_weighted(kept[k], scale, weights));
    }
    KILN_LOOP
    KILN_FOR_BEYOND(s, vector) {
        const kiln_element *weights = weight ? weight + vector * KILN_VECTOR : 0;
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_weighted(values, scale, weights));
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

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    kiln_kept kept;
    float sum = kiln_reduce(squares_of(s, x, kept), lanes_log2, exchange, KILN_REDUCE_SUM);
    float scale = kiln_rsqrt(KILN_FMA(sum, args.mean, args.eps));
    put(s, kiln_span_in(s, args.y, args.y_stride), x, kept, (const kiln_element *)args.weight, scale);
}
