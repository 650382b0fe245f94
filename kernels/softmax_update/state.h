/* The states of softmax_update, one source for all backends. */
#ifndef KILN_KERNELS_SOFTMAX_UPDATE_STATE_H
#define KILN_KERNELS_SOFTMAX_UPDATE_STATE_H

#include "kernels/common/online_softmax.h"
#include "kernels/softmax_update/softmax_update_args.h"

typedef struct kiln_online_state {
    float max;
    kiln_online_sum sum;
} kiln_online_state;

/* The state of a row; an empty one if there are no states. */
KILN_INLINE kiln_online_state kiln_state_of(const float *states, uint64_t row, int64_t rows) {
    if (!states) return (kiln_online_state){-KILN_INFINITY, {0.0f, 0.0f}};
    const float *sums = states + rows;
    return (kiln_online_state){states[row], {sums[row], sums[rows + (int64_t)row]}};
}

/* Adds the sum of a block of scores to the state of a row. The sum's origin is that of the greatest score. */
KILN_INLINE void kiln_state_put(const kiln_softmax_update_args *args, uint64_t row, kiln_online_state before,
                                kiln_online_state other, kiln_online_sum block, float max) {
    int64_t rows = args->shape.rows;
    float origin = kiln_online_origin(max), *sums = args->states + rows;
    float scale = kiln_online_weight(before.max, origin), other_scale = kiln_online_weight(other.max, origin);
    kiln_online_sum sum =
        kiln_online_add(kiln_online_scaled(before.sum, scale), kiln_online_scaled(other.sum, other_scale));
    sum = kiln_online_add(sum, block);
    args->states[row] = max;
    sums[row] = sum.value;
    sums[rows + (int64_t)row] = sum.rest;
    if (args->scale) args->scale[row] = scale;
    if (args->lse) args->lse[row] = kiln_online_lse(sum, origin);
}

#endif
