/* softmax: y = exp(x - max x) / sum exp(x - max x) over each row, in f32, with one rounding.
 *
 * A block processes several short rows, or one chunk (32 KiB) of a long one. It reads them once, for the maximum: each
 * thread keeps the vectors that it has read in its own slots of dynamic shared memory for the two passes that follow,
 * sum and result. Short rows take 1 to 32 threads each and are reduced by shuffles alone; longer rows take the whole
 * block. The slots of one iteration are adjacent, free of bank conflicts, and the launch asks for as many as the
 * iterations need. A thread has one load in flight: the seven or eight blocks of a multiprocessor cover the latency.
 *
 * Long rows take two launches: KILN_SOFTMAX_PARTIAL writes the maximum and the sum of each chunk into the workspace,
 * and KILN_SOFTMAX_FINISH reads them from there (from the L2 cache). There is one entry point for all phases, since the
 * passes are most of its code and there are fifty images of it.
 *
 * In f32 the exponentials replace the elements in the slots. With 16-bit elements they are computed twice, since
 * keeping them in f32 would double the shared memory and halve the number of blocks that hide the memory's latency; the
 * second time the scale is a term of the exponent.
 *
 * A row of -inf has maximum 0 for the subtraction and sum 0, whose reciprocal is taken as 0, so that the result is
 * zeros. +inf gives inf - inf, and NaN gives NaN in the sum: the row is NaN. Neither needs a branch.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits; long rows
 * two reads and one write. docs/kernel-report.md has the instruction counts and the time that they take.
 * Test: build/tests/ops/softmax_test. Bench: build/kiln bench softmax */
#include "kernels/common/reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/softmax/softmax_args.h"

/* The loop over the vectors of a span: `vector` is the number of a vector, `slot` that of its slot. */
#define FOR_VECTORS(s)                                                                        \
    for (uint32_t vector = (s).first, slot = kiln_thread(); vector * KILN_VECTOR < (s).count; \
         vector += (s).lanes, slot += KILN_BLOCK)

/* Reads the span into the thread's slots, and finds its maximum. */
KILN_INLINE float hold(kiln_span s, kiln_vector *slots, const kiln_element *x) {
    float max = -KILN_INFINITY, values[KILN_VECTOR];
    KILN_LOOP
    FOR_VECTORS(s) {
        kiln_vector held;
        if (vector < s.whole) {
            slots[slot] = held = kiln_vector_load(x + vector * KILN_VECTOR);
        } else {
            kiln_vector_gather(&slots[slot], x + vector * KILN_VECTOR, s.count - vector * KILN_VECTOR,
                               KILN_ELEMENT_NEGATIVE_INFINITY);
            held = slots[slot];
        }
        kiln_vector_values(values, held);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            max = kiln_fast_max(values[i], max);
    }
    return max;
}

#if defined(KILN_PART_f32)
enum { EXPONENTIALS_STAY = 1 };

/* e^(x - max): 2 to the power of the product with log2 e, times 1 + e' ln 2, where e' is the product's rounding error,
 * or a finite number where that would be inf - inf. */
KILN_INLINE float exp_of(float x, float max) {
    float difference = x - max, power = difference * KILN_LOG2_E;
    float lost = KILN_FMA(difference, KILN_LOG2_E_REST, KILN_FMA(difference, KILN_LOG2_E, -power));
    float y = kiln_fast_exp2(power);
    return KILN_FMA(y * 0x1.62e43p-1f, kiln_fast_max(lost, -1.0f), y);
}

/* The factor that put takes from a row's sum, and the result from what the slots hold. */
KILN_INLINE float scale_of(float sum) {
    return sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
}
KILN_INLINE float result_of(float exponential, float max, float scale) {
    (void)max;
    return exponential * scale;
}
#else
enum { EXPONENTIALS_STAY = 0 };

/* In 16-bit results the rounding error of the product does not show. */
KILN_INLINE float exp_of(float x, float max) {
    return kiln_fast_exp2((x - max) * KILN_LOG2_E);
}

/* The scale as an exponent of 2; -inf for a sum of 0. */
KILN_INLINE float scale_of(float sum) {
    return sum == 0.0f ? -KILN_INFINITY : -kiln_fast_log2(sum);
}
KILN_INLINE float result_of(float x, float max, float scale) {
    return kiln_fast_exp2(KILN_FMA(x - max, KILN_LOG2_E, scale));
}
#endif

/* Sums the exponentials, and leaves those of f32 in the slots. */
KILN_INLINE float sum_of(kiln_span s, kiln_vector *slots, float max) {
    float sum = 0.0f, values[KILN_VECTOR];
    KILN_LOOP
    FOR_VECTORS(s) {
        kiln_vector_values(values, slots[slot]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++) {
            values[i] = exp_of(values[i], max);
            sum += values[i];
        }
        if (EXPONENTIALS_STAY) slots[slot] = kiln_vector_of(values);
    }
    return sum;
}

KILN_INLINE void put(kiln_span s, kiln_vector *slots, kiln_element *y, float max, float scale) {
    float values[KILN_VECTOR];
    KILN_LOOP
    FOR_VECTORS(s) {
        kiln_vector_values(values, slots[slot]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            values[i] = result_of(values[i], max, scale);
        kiln_vector out = kiln_vector_of(values);
        if (vector < s.whole) {
            kiln_vector_store(y + vector * KILN_VECTOR, out);
        } else {
            slots[slot] = out;
            kiln_vector_scatter(y + vector * KILN_VECTOR, &slots[slot], s.count - vector * KILN_VECTOR);
        }
    }
}

/* The thread's share of the maximum and of the sum over a row's partials. */
KILN_INLINE float max_of_partials(const kiln_softmax_partial *partials, uint32_t chunks) {
    float max = -KILN_INFINITY;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_BLOCK)
        max = kiln_max(partials[i].max, max);
    return max;
}

KILN_INLINE float sum_of_partials(const kiln_softmax_partial *partials, uint32_t chunks, float max) {
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_BLOCK)
        sum = KILN_FMA(partials[i].sum, kiln_exp(partials[i].max - max), sum);
    return sum;
}

KILN_ENTRY(softmax_rows, kiln_softmax_args) {
    KILN_DYNAMIC_SHARED(kiln_vector, slots);
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    kiln_softmax_partial *partials = args.partials + s.row * args.chunks;
    bool finish = args.phase == KILN_SOFTMAX_FINISH;

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    float max = hold(s, slots, kiln_span_of_input(s, args.x, args.x_stride));
    if (finish) max = max_of_partials(partials, args.chunks);
    max = kiln_reduce(max, lanes_log2, exchange, KILN_REDUCE_MAX);
    float origin = max == -KILN_INFINITY ? 0.0f : max;
    float sum = 0.0f;
    if (EXPONENTIALS_STAY || !finish) sum = sum_of(s, slots, origin);
    if (finish) sum = sum_of_partials(partials, args.chunks, origin);
    sum = kiln_reduce(sum, lanes_log2, exchange, KILN_REDUCE_SUM);

    if (args.phase != KILN_SOFTMAX_PARTIAL) {
        put(s, slots, kiln_span_in(s, args.y, args.y_stride), origin, scale_of(sum));
    } else if (kiln_thread() == 0) {
        partials[kiln_tile()].max = max;
        partials[kiln_tile()].sum = sum;
    }
}
