/* softmax: y = exp(x - max x) / sum exp(x - max x) over each row, in f32, with one rounding.
 *
 * A block processes several short rows, one row, or a chunk of a long row. 1 to 256 threads share a row. Each reads up
 * to four vectors, all before it uses the first, and takes each exponential once, against the greatest element of its
 * own (exp_sum.h); the threads of the row meet once, by shuffles and one barrier, and each multiplies its exponentials
 * by a factor that brings them to the row's maximum and divides by the sum. What a row has beyond the 16 KiB that a
 * block holds so, and elements that are not read in vectors, are read again, from a cache.
 *
 * A few long rows take two launches: KILN_SOFTMAX_PARTIAL writes the maximum and the sum of each chunk into the
 * workspace, and KILN_SOFTMAX_FINISH reads them from there (from the L2 cache). There is one entry point for all
 * phases, since the passes are most of its code and there are fifty images of it.
 *
 * A row of -inf has sum 0, whose reciprocal is taken as 0, so that the result is zeros. A row with +inf has the sum
 * +inf, which counts as NaN, and with NaN it is NaN: the row is NaN.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits; long rows
 * two reads and one write. Measured (H100 80GB HBM3, driver 580.159.04, 2026-11-26; bf16, [16384, 4096], a copy of
 * it 90.2 us): 90.8 us with four vectors for each of 128 threads, 106 us with two for each of 256; vectors in shared
 * memory, read one after the other, took 98.6 us. [64, 4096] takes 2.8 us instead of 3.6. [1024, 131072] takes 271 us,
 * which a launch of its two phases for each 256 rows at a time made 298 us. docs/kernel-report.md has the instruction
 * counts.
 * Test: build/tests/ops/softmax_test. Bench: build/kiln bench softmax */
#include "kernels/common/reduce/exp_sum.h"
#include "kernels/common/span_row.h"
#include "kernels/softmax/softmax_args.h"

/* The exponentials of the vectors that can be held, against the greatest of these, and their sum. */
KILN_INLINE kiln_exp_sum take(float exponentials[KILN_HELD][KILN_VECTOR], kiln_span s, const kiln_element *x) {
    kiln_exp_sum total = {-KILN_INFINITY, 0.0f};
    kiln_vector held[KILN_HELD];
    kiln_hold(held, s, x);
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        kiln_vector_values(exponentials[k], held[k]);
        total.max = kiln_greatest_value(exponentials[k], total.max);
    }
    float origin = kiln_exp_origin(total.max);
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        total.sum = kiln_add_exponentials(total.sum, exponentials[k], origin);
    }
    return total;
}

KILN_INLINE float scale_of(float sum) {
    float reciprocal = sum == KILN_INFINITY ? __builtin_nanf("") : kiln_reciprocal(sum);
    return sum == 0.0f ? 0.0f : reciprocal;
}

KILN_INLINE void put(kiln_element *y, const float *exponentials, float factor) {
    float results[KILN_VECTOR];
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        results[i] = exponentials[i] * factor;
    kiln_vector_store(y, kiln_vector_of(results));
}

/* Writes the elements that are read again. */
KILN_INLINE void put_rest(kiln_span s, kiln_element *y, const kiln_element *x, float origin, float scale) {
    float values[KILN_VECTOR];
    KILN_LOOP
    KILN_FOR_UNHELD(s, vector) {
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        kiln_add_exponentials(0.0f, values, origin);
        put(y + vector * KILN_VECTOR, values, scale);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    y[i] = kiln_element_from_f32(kiln_exp_from(kiln_element_to_f32(x[i]), origin) * scale);
}

KILN_ENTRY(softmax_rows, kiln_softmax_args) {
    KILN_SHARED kiln_exp_sum exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_row_of_input(&args.shape, s, args.x, args.x_stride);
    kiln_exp_sum *partials = (kiln_exp_sum *)(void *)args.partials + s.row * args.chunks;

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    float exponentials[KILN_HELD][KILN_VECTOR];
    kiln_exp_sum own = take(exponentials, s, x);
    float taken = own.max; /* what the exponentials are relative to */
    if (args.phase == KILN_SOFTMAX_FINISH)
        own = kiln_exp_sum_of_parts(partials, args.chunks);
    else
        own = kiln_exp_sum_unheld(own, s, x);
    kiln_exp_sum row = kiln_exp_sum_row(own, lanes_log2, exchange);
    if (args.phase == KILN_SOFTMAX_PARTIAL) {
        if (kiln_thread() == 0) partials[kiln_tile()] = row;
        return;
    }

    kiln_element *y = kiln_row_in(&args.shape, s, args.y, args.y_stride);
    float origin = kiln_exp_origin(row.max), scale = scale_of(row.sum);
    float factor = scale * kiln_exp_from(taken, origin);
    KILN_FOR_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        put(y + vector * KILN_VECTOR, exponentials[k], factor);
    }
    put_rest(s, y, x, origin, scale);
}
