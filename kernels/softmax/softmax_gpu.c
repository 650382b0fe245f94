/* softmax: y = exp(x - max x) / sum exp(x - max x) over each row, in f32, with one rounding.
 *
 * A block does some short rows, or one chunk (32 KiB) of a long one. It reads them once, for the maximum: each thread
 * keeps the vectors that it read in slots of its own of the dynamic shared memory for the two passes that follow, sum
 * and result. Narrow rows take 1 to 32 threads each and reduce by shuffles alone; others take the block. Slots of one
 * round lie side by side, free of bank conflicts, and the launch asks for those of the rounds needed. A thread has one
 * load in flight: the blocks of a multiprocessor, seven or eight, cover the latency.
 *
 * Long rows are launched twice: KILN_SOFTMAX_PARTIAL writes the maximum and the sum of each chunk into the workspace,
 * KILN_SOFTMAX_FINISH takes them from there (from the L2 cache). One entry point does all: the passes are most of its
 * code, and there are fifty images of it.
 *
 * The exponentials of f32 replace the elements in the slots. Those of 16 bits are computed twice instead of being kept
 * in f32, which would double the shared memory and halve the blocks that hide the memory's latency; the second time the
 * scale is a term of the power.
 *
 * A row of -inf has maximum 0 for the subtraction and sum 0, whose reciprocal is taken as 0: zeros. +inf gives inf -
 * inf and NaN gives NaN in the sum: the row is NaN. No branch looks for them.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits; long rows
 * two reads and one write. docs/kernel-report.md has the instructions counted, and their time beside it.
 * Test: build/tests/ops/softmax_test. Bench: build/kiln bench softmax */
#include "kernels/common/reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/softmax/softmax_args.h"

/* The loop over a span: vector is the number of a vector, slot its slot. */
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

/* e^(x - max): 2 to the product with log2 e, times 1 + ln 2 e', e' what the product lost in rounding; in its place a
 * number where it is inf - inf. */
KILN_INLINE float exp_of(float x, float max) {
    float difference = x - max, power = difference * KILN_LOG2_E;
    float lost = KILN_FMA(difference, KILN_LOG2_E_REST, KILN_FMA(difference, KILN_LOG2_E, -power));
    float y = kiln_fast_exp2(power);
    return KILN_FMA(y * 0x1.62e43p-1f, kiln_fast_max(lost, -1.0f), y);
}

/* What put takes of a row's sum, and the result from what the slots have. */
KILN_INLINE float scale_of(float sum) {
    return sum == 0.0f ? 0.0f : kiln_reciprocal(sum);
}
KILN_INLINE float result_of(float exponential, float max, float scale) {
    (void)max;
    return exponential * scale;
}
#else
enum { EXPONENTIALS_STAY = 0 };

/* 16 bits of a result do not show what the product loses. */
KILN_INLINE float exp_of(float x, float max) {
    return kiln_fast_exp2((x - max) * KILN_LOG2_E);
}

/* The scale as a power of 2, -inf for the sum 0. */
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

    /* A row beyond the last takes part, empty: reductions are of all threads. */
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
