/* log_softmax: y = x - lse with lse = log sum exp(x) over each row, in f32, with one rounding.
 *
 * A block processes several short rows, or one chunk (32 KiB) of a long one, in two passes: the sum, and the results,
 * whose elements come from a cache. Each thread sums exp(x - origin) with its own greatest element so far as the
 * origin, and rescales the sum when a greater one comes, which costs one more exponential for each vector. The sums of
 * the threads are then brought to the greatest origin. Short rows take 1 to 32 threads each and are reduced by shuffles
 * alone; longer rows take the whole block. If y is not wanted there is no second pass.
 *
 * Long rows take two launches: KILN_LOG_SOFTMAX_PARTIAL writes the origin and the sum of each chunk into the workspace,
 * and KILN_LOG_SOFTMAX_FINISH reads them from there.
 *
 * The origin is the maximum if that is finite, else 0, so that inf - inf does not occur: +inf makes the sum and lse
 * infinite, NaN makes both NaN, and the sum of a row of -inf is 0. y is x - origin - log(sum), which loses less than x
 * - lse; a sum of 0 counts as 1, and an infinite one as NaN.
 *
 * Floor: one read and one write of the tensor at memory bandwidth, 8 bytes an element of f32, 4 of 16 bits. Not
 * measured. Test: build/tests/ops/log_softmax_test. Bench: build/kiln bench log_softmax */
#include "kernels/common/reduce.h"

#include "kernels/common/logarithm.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/log_softmax/log_softmax_args.h"

/* The sum of exp(x - origin) over a set of elements. */
typedef struct total {
    float max; /* of the elements */
    float sum;
} total;

KILN_INLINE float origin_of(float max) {
    return max < KILN_INFINITY && max > -KILN_INFINITY ? max : 0.0f;
}

/* e^(x - origin). In f32 the rounding error e of the product p with log2 e is put back: 2^(p + e) = 2^p (1 + e ln 2).
 */
KILN_INLINE float exp_of(float x, float origin) {
    float difference = x - origin, power = difference * KILN_LOG2_E;
    float y = kiln_fast_exp2(power);
#if defined(KILN_PART_f32)
    float lost = KILN_FMA(difference, KILN_LOG2_E_REST, KILN_FMA(difference, KILN_LOG2_E, -power));
    y = power > -126.0f && power < 128.0f ? KILN_FMA(y * 0x1.62e43p-1f, lost, y) : y;
#endif
    return y;
}

/* The sum as it is with another origin: nothing, infinity and NaN stay what they are. */
KILN_INLINE float moved(float sum, float max, float origin) {
    return sum > 0.0f && sum < KILN_INFINITY ? sum * exp_of(origin_of(max), origin) : sum;
}

KILN_INLINE total add(total t, const float *values, int count) {
    float max = t.max;
    KILN_UNROLL
    for (int i = 0; i < count; i++)
        max = kiln_fast_max(values[i], max);
    float origin = origin_of(max), sum = 0.0f;
    KILN_UNROLL
    for (int i = 0; i < count; i++)
        sum += exp_of(values[i], origin);
    t.sum = (max == t.max ? t.sum : moved(t.sum, t.max, origin)) + sum;
    t.max = max;
    return t;
}

KILN_INLINE total total_of(kiln_span s, const kiln_element *x) {
    total t = {-KILN_INFINITY, 0.0f};
    float values[KILN_VECTOR];
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        t = add(t, values, KILN_VECTOR);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        values[0] = kiln_element_to_f32(x[i]);
        t = add(t, values, 1);
    }
    return t;
}

/* The same over the thread's share of a row's partial results. The origin of a chunk with an infinite sum is 0, not its
 * maximum. */
KILN_INLINE total total_of_partials(const kiln_log_softmax_partial *partials, uint32_t chunks) {
    total t = {-KILN_INFINITY, 0.0f};
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < chunks; i += KILN_BLOCK) {
        kiln_log_softmax_partial partial = partials[i];
        if (partial.sum == 0.0f) continue;
        float max = kiln_fast_max(partial.origin, t.max), origin = origin_of(max);
        t.sum = moved(t.sum, t.max, origin) + moved(partial.sum, partial.origin, origin);
        t.max = max;
    }
    return t;
}

KILN_INLINE void put(kiln_span s, kiln_element *y, const kiln_element *x, float origin, float log_sum) {
    float values[KILN_VECTOR];
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            values[i] = values[i] - origin - log_sum;
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_vector_of(values));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    y[i] = kiln_element_from_f32(kiln_element_to_f32(x[i]) - origin - log_sum);
}

KILN_ENTRY(log_softmax, kiln_log_softmax_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_span s = kiln_span_of(&args.shape);
    uint32_t lanes_log2 = args.shape.lanes_log2;
    if (s.row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    kiln_log_softmax_partial *partials = args.partials + s.row * args.chunks;

    /* Rows beyond the last take part with no elements: a reduction needs all threads. */
    total t = args.phase == KILN_LOG_SOFTMAX_FINISH ? total_of_partials(partials, args.chunks) : total_of(s, x);
    float origin = origin_of(kiln_reduce(t.max, lanes_log2, exchange, KILN_REDUCE_MAX));
    float sum = kiln_reduce(moved(t.sum, t.max, origin), lanes_log2, exchange, KILN_REDUCE_SUM);
    if (s.row >= (uint64_t)args.shape.rows) return;

    bool first = (kiln_thread() & (s.lanes - 1)) == 0;
    if (args.phase == KILN_LOG_SOFTMAX_PARTIAL) {
        if (first) partials[kiln_tile()] = (kiln_log_softmax_partial){origin, sum};
        return;
    }
    float log_sum = sum < KILN_INFINITY && sum > 0.0f ? kiln_log(sum) : sum == 0.0f ? -KILN_INFINITY : sum;
    if (first && kiln_tile() == 0) args.lse[s.row] = origin + log_sum;
    if (!args.y) return;
    if (sum == 0.0f) log_sum = 0.0f;
    if (sum == KILN_INFINITY) log_sum = __builtin_nanf("");
    put(s, kiln_span_in(s, args.y, args.y_stride), x, origin, log_sum);
}
