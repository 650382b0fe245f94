/* log_softmax: y = x - lse with lse = log sum exp(x) over each row, in f32, with one rounding.
 *
 * A block processes several short rows, one row, or a chunk of a long row. 1 to 256 threads share a row. Each reads up
 * to four vectors, all before it uses the first, and keeps them; it sums the exponentials against the greatest element
 * of its own (exp_sum.h), and the threads of the row meet once, by shuffles and one barrier. What a row has beyond the
 * 16 KiB that a block holds so, and elements that are not read in vectors, are read again, from a cache. If y is not
 * wanted there is no second pass.
 *
 * A few long rows take two launches: KILN_LOG_SOFTMAX_PARTIAL writes the maximum and the sum of each chunk into the
 * workspace, and KILN_LOG_SOFTMAX_FINISH reads them from there.
 *
 * The origin of a sum is the maximum if that is finite, else 0: +inf makes the sum and lse infinite, NaN makes both
 * NaN, and the sum of a row of -inf is 0. y is x - origin - log(sum), which loses less than x - lse, or, of what is
 * held, less the thread's own origin already, that minus the rest; a sum of 0 counts as 1, and an infinite one as NaN.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits. Measured
 * (H100 80GB HBM3, driver 580.159.04, 2026-11-26; bf16, [16384, 4096], a copy of it 90.2 us): 91.4 us; before, vector
 * after vector with a sum that was rescaled, 94.5 us, and in f32 180 us instead of 240. [64, 4096] takes 2.9 us.
 * Test: build/tests/ops/log_softmax_test. Bench: build/kiln bench log_softmax */
#include "kernels/common/device.h"
#include "kernels/common/math/logarithm.h"
#include "kernels/common/math/two.h"
#include "kernels/common/reduce/exp_sum.h"
#include "kernels/common/span_row.h"
#include "kernels/log_softmax/log_softmax_args.h"

#if defined(__GFX9__) && defined(KILN_PART_bf16)
#include "kernels/arch/gfx9.h"

/* As kiln_greatest_value, in half the instructions. With NaN it is any of them: the sum is NaN then, and so are all
 * results. */
KILN_INLINE float greatest_of(const float *values, float max) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i += 2)
        max = kiln_gfx9_greatest(max, values[i], values[i + 1]);
    return max;
}
#else
KILN_INLINE float greatest_of(const float *values, float max) {
    return kiln_greatest_value(values, max);
}
#endif

/* The values of the vectors that can be held, less the origin of the sum of their exponentials. */
KILN_INLINE kiln_exp_sum take(float held[KILN_HELD][KILN_VECTOR], kiln_span s, const kiln_element *x) {
    kiln_exp_sum total = {-KILN_INFINITY, 0.0f};
    kiln_vector vectors[KILN_HELD];
    kiln_hold(vectors, s, x);
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        kiln_vector_values(held[k], vectors[k]);
        total.max = greatest_of(held[k], total.max);
    }
    float origin = kiln_exp_origin(total.max);
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++) {
            held[k][i] -= origin;
            total.sum += kiln_exp_from(held[k][i], 0.0f);
        }
    }
    return total;
}

/* Values less what remains to be subtracted. */
KILN_INLINE void put_values(kiln_element *y, const float *values, float rest) {
    float results[KILN_VECTOR];
    KILN_UNROLL
#if defined(__HIP__) /* two at a time where the device can */
    for (int i = 0; i < KILN_VECTOR; i += 2) {
        const kiln_two two = kiln_two_of(values[i], values[i + 1]) - rest;
        results[i] = two.x;
        results[i + 1] = two.y;
    }
#else
    for (int i = 0; i < KILN_VECTOR; i++)
        results[i] = values[i] - rest;
#endif
    kiln_vector_store(y, kiln_vector_of(results));
}

KILN_INLINE void put_vector(kiln_element *y, kiln_vector x, float origin, float log_sum) {
    float values[KILN_VECTOR];
    kiln_vector_values(values, x);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] -= origin;
    put_values(y, values, log_sum);
}

/* own: the origin that is subtracted from held. */
KILN_INLINE void put(kiln_span s, kiln_element *y, const kiln_element *x, const float held[KILN_HELD][KILN_VECTOR],
                     float own, float origin, float log_sum) {
    const float rest = origin - own + log_sum;
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        put_values(y + vector * KILN_VECTOR, held[k], rest);
    }
    KILN_LOOP
    KILN_FOR_UNHELD(s, vector)
    put_vector(y + vector * KILN_VECTOR, kiln_vector_load(x + vector * KILN_VECTOR), origin, log_sum);
    KILN_LOOP
    KILN_FOR_REST(s, i)
    y[i] = kiln_element_from_f32(kiln_element_to_f32(x[i]) - origin - log_sum);
}

/* What y is less than x by, besides the origin; the thread that is `first` of a row writes its lse. */
KILN_INLINE float finish(float *lse, kiln_exp_sum row, float origin, bool first) {
    float sum = row.sum;
    float log_sum = sum < KILN_INFINITY && sum > 0.0f ? kiln_log(sum) : sum == 0.0f ? -KILN_INFINITY : sum;
    if (first) *lse = origin + log_sum;
    if (sum == 0.0f) log_sum = 0.0f;
    return sum == KILN_INFINITY ? __builtin_nanf("") : log_sum;
}

KILN_ENTRY(log_softmax, kiln_log_softmax_args) {
    KILN_SHARED kiln_exp_sum exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_row_of_input(&args.shape, s, args.x, args.x_stride);
    kiln_exp_sum *partials = (kiln_exp_sum *)(void *)args.partials + s.row * args.chunks;

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    float held[KILN_HELD][KILN_VECTOR];
    kiln_exp_sum own = take(held, s, x);
    const float own_origin = kiln_exp_origin(own.max);
    if (args.phase == KILN_LOG_SOFTMAX_FINISH)
        own = kiln_exp_sum_of_parts(partials, args.chunks);
    else
        own = kiln_exp_sum_unheld(own, s, x);
    kiln_exp_sum row = kiln_exp_sum_row(own, lanes_log2, exchange);
    if (s.row >= (uint64_t)args.shape.rows) return;

    bool first = (kiln_thread() & (s.lanes - 1)) == 0;
    if (args.phase == KILN_LOG_SOFTMAX_PARTIAL) {
        if (first) partials[kiln_tile()] = row;
        return;
    }
    float origin = kiln_exp_origin(row.max), log_sum = finish(args.lse + s.row, row, origin, first && kiln_tile() == 0);
    if (!args.y) return;
    put(s, kiln_row_in(&args.shape, s, args.y, args.y_stride), x, held, own_origin, origin, log_sum);
}
