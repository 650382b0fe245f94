/* The elements of an online softmax, one source for all backends: weights relative to an origin that moves, and sums
 * that keep their rounding errors. The includer (device.h, cpu.h) defines what math.h asks for. */
#ifndef KILN_KERNELS_COMMON_REDUCE_ONLINE_SOFTMAX_H
#define KILN_KERNELS_COMMON_REDUCE_ONLINE_SOFTMAX_H

#include "kernels/common/math/logarithm.h"

/* The origin of scores, from the greatest of them: 0 if there is none, so that -inf + inf does not occur. */
KILN_INLINE float kiln_online_origin(float max) {
    return max > -KILN_INFINITY ? max : 0.0f;
}

/* e^(x - origin) for x <= origin, corrected for the rounding error of the difference. If the origin is infinite,
 * infinite scores count as 1, and all others as 0. */
KILN_INLINE float kiln_online_weight(float x, float origin) {
    float difference = x - origin, taken = x - difference;
    float lost = (x - (difference + taken)) - (origin - taken);
    kiln_exp_reduction reduction = kiln_exp_reduce(-88.0f > difference ? -88.0f : difference);
    reduction.r += -88.0f > difference ? 0.0f : lost;
    float weight = kiln_exp_finish(reduction);
    return x == origin ? 1.0f : weight;
}

/* A sum is value + rest. */
typedef struct kiln_online_sum {
    float value;
    float rest;
} kiln_online_sum;

/* a + b: the values' sum and its exact rounding error (Knuth, "The Art of Computer Programming", vol. 2, 4.2.2, theorem
 * B), so that a and b may be exchanged. */
KILN_INLINE kiln_online_sum kiln_online_add(kiln_online_sum a, kiln_online_sum b) {
    float value = a.value + b.value, b_part = value - a.value, a_part = value - b_part;
    float error = (a.value - a_part) + (b.value - b_part);
    return (kiln_online_sum){value, (a.rest + b.rest) + error};
}

/* a times a weight, including the rounding error of the product. */
KILN_INLINE kiln_online_sum kiln_online_scaled(kiln_online_sum a, float weight) {
    float value = a.value * weight, error = KILN_FMA(a.value, weight, -value);
    return (kiln_online_sum){value, KILN_FMA(a.rest, weight, error)};
}

/* The logarithm of a sum of weights plus its origin; -inf for an empty sum. */
KILN_INLINE float kiln_online_lse(kiln_online_sum sum, float origin) {
    float total = sum.value + sum.rest, log_total = kiln_log(total);
    return total == 0.0f ? -KILN_INFINITY : origin + log_total;
}

#endif
