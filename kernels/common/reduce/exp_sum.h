/* The maximum of a row and the sum of its exponentials relative to it, of which softmax and log_softmax are made: of a
 * thread's elements, of the threads that share a row, and of parts of it.
 *
 * Each thread takes the exponentials against the greatest of its own elements, so that they are taken once, before the
 * threads meet, and brings its sum to the row's maximum then. What they are relative to, the origin, is the maximum if
 * that is finite, else 0, so that inf - inf does not occur: +inf makes the sum infinite, NaN makes it NaN, and the sum
 * of nothing but -inf is 0. */
#ifndef KILN_KERNELS_COMMON_REDUCE_EXP_SUM_H
#define KILN_KERNELS_COMMON_REDUCE_EXP_SUM_H

#include "kernels/common/device.h"
#include "kernels/common/held.h"
#include "kernels/common/reduce/row_reduce.h"

typedef struct kiln_exp_sum {
    float max;
    float sum; /* of e^(x - origin) */
} kiln_exp_sum;

KILN_INLINE float kiln_exp_origin(float max) {
    return max < KILN_INFINITY && max > -KILN_INFINITY ? max : 0.0f;
}

/* e^(x - origin). In f32 the rounding error e of the product p with log2 e is put back: 2^(p + e) = 2^p (1 + e ln 2).
 */
KILN_INLINE float kiln_exp_from(float x, float origin) {
    float difference = x - origin, power = difference * KILN_LOG2_E;
    float y = kiln_fast_exp2(power);
#if defined(KILN_PART_f32)
    float lost = KILN_FMA(difference, KILN_LOG2_E_REST, KILN_FMA(difference, KILN_LOG2_E, -power));
    y = power > -126.0f && power < 128.0f ? KILN_FMA(y * 0x1.62e43p-1f, lost, y) : y;
#endif
    return y;
}

/* The greatest of max and a vector's values, none of which counts if it is NaN. */
KILN_INLINE float kiln_greatest_value(const float *values, float max) {
    KILN_UNROLL
#if defined(__HIP__) && defined(KILN_PART_f16) /* two at a time: their conversion has made NaN quiet */
    for (int i = 0; i < KILN_VECTOR; i += 2)
        max = __builtin_fmaxf(__builtin_fmaxf(max, values[i]), values[i + 1]);
#else
    for (int i = 0; i < KILN_VECTOR; i++)
        max = kiln_fast_max(values[i], max);
#endif
    return max;
}

/* Replaces a vector's values by their exponentials, and returns sum plus these. */
KILN_INLINE float kiln_add_exponentials(float sum, float *values, float origin) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++) {
        values[i] = kiln_exp_from(values[i], origin);
        sum += values[i];
    }
    return sum;
}

/* The sum as it is with the origin of a maximum that is not less. */
KILN_INLINE float kiln_exp_sum_moved(kiln_exp_sum total, float max) {
    return total.sum * kiln_exp_from(total.max, kiln_exp_origin(max));
}

KILN_INLINE kiln_exp_sum kiln_exp_sum_join(kiln_exp_sum a, kiln_exp_sum b) {
    kiln_exp_sum total = {kiln_fast_max(a.max, b.max), 0.0f};
    total.sum = kiln_exp_sum_moved(a, total.max) + kiln_exp_sum_moved(b, total.max);
    return total;
}

/* The sum with one element more. */
KILN_INLINE kiln_exp_sum kiln_exp_sum_with(kiln_exp_sum total, float value) {
    kiln_exp_sum one = {kiln_fast_max(value, -KILN_INFINITY), 0.0f};
    one.sum = kiln_exp_from(value, kiln_exp_origin(one.max));
    return kiln_exp_sum_join(total, one);
}

/* The sum with that of the span's elements that are not held. */
KILN_INLINE kiln_exp_sum kiln_exp_sum_unheld(kiln_exp_sum total, kiln_span s, const kiln_element *x) {
    float values[KILN_VECTOR];
    KILN_LOOP
    KILN_FOR_UNHELD(s, vector) {
        kiln_vector_values(values, kiln_vector_load(x + vector * KILN_VECTOR));
        kiln_exp_sum part = {kiln_greatest_value(values, -KILN_INFINITY), 0.0f};
        part.sum = kiln_add_exponentials(0.0f, values, kiln_exp_origin(part.max));
        total = kiln_exp_sum_join(total, part);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    total = kiln_exp_sum_with(total, kiln_element_to_f32(x[i]));
    return total;
}

/* The thread's share of the sum over a row's parts. */
KILN_INLINE kiln_exp_sum kiln_exp_sum_of_parts(const kiln_exp_sum *parts, uint32_t count) {
    kiln_exp_sum total = {-KILN_INFINITY, 0.0f};
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < count; i += KILN_BLOCK)
        total = kiln_exp_sum_join(total, parts[i]);
    return total;
}

KILN_INLINE kiln_exp_sum kiln_exp_sum_subgroup(kiln_exp_sum total, uint32_t lanes_log2) {
    float max = total.max;
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_SUBGROUP_LOG2; i++)
        if (i < lanes_log2) max = kiln_fast_max(max, kiln_of_other_half(max, i));
    total.sum = kiln_subgroup_reduce(kiln_exp_sum_moved(total, max), lanes_log2, KILN_REDUCE_SUM);
    total.max = max;
    return total;
}

KILN_INLINE kiln_exp_sum kiln_exp_sum_row_of(kiln_exp_sum total, uint32_t lanes_log2,
                                             kiln_exp_sum exchange[KILN_SUBGROUPS]) {
    total = kiln_exp_sum_subgroup(total, lanes_log2);
    if (lanes_log2 <= KILN_SUBGROUP_LOG2) return total;
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = total;
    kiln_barrier();
    return kiln_exp_sum_subgroup(exchange[kiln_row_subgroup(lanes_log2)], kiln_row_subgroups_log2(lanes_log2));
}

/* Over the 1 << lanes_log2 threads that share a row; all threads of the block take part. exchange is shared memory. */
KILN_INLINE kiln_exp_sum kiln_exp_sum_row(kiln_exp_sum total, uint32_t lanes_log2,
                                          kiln_exp_sum exchange[KILN_SUBGROUPS]) {
    if (KILN_ROW_OF_BLOCK && lanes_log2 == KILN_BLOCK_LOG2)
        return kiln_exp_sum_row_of(total, KILN_BLOCK_LOG2, exchange);
    return kiln_exp_sum_row_of(total, lanes_log2, exchange);
}

#endif
