/* The states of softmax_update, one source for all backends. */
#ifndef KILN_KERNELS_SOFTMAX_UPDATE_STATE_H
#define KILN_KERNELS_SOFTMAX_UPDATE_STATE_H

#include "kernels/common/reduce/online_softmax.h"
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

/* Merges the states of a row with that of a block of scores, in a loop, for the size of the images. max: the greatest
 * of the three. */
KILN_INLINE void kiln_state_put(const kiln_softmax_update_args *args, uint64_t row, kiln_online_state before,
                                kiln_online_state other, kiln_online_state block, float max) {
    int64_t rows = args->shape.rows;
    float origin = kiln_online_origin(max), scale = 0.0f, *sums = args->states + rows;
    kiln_online_sum sum = {0.0f, 0.0f};
    KILN_LOOP
    for (uint32_t i = 0; i < 3; i++) {
        kiln_online_state state = i == 0 ? before : i == 1 ? other : block;
        float weight = kiln_online_weight(state.max, origin);
        if (i == 0) scale = weight;
        sum = kiln_online_add(sum, kiln_online_scaled(state.sum, weight));
    }
    args->states[row] = max;
    sums[row] = sum.value;
    sums[rows + (int64_t)row] = sum.rest;
    if (args->scale) args->scale[row] = scale;
    if (args->lse) args->lse[row] = kiln_online_lse(sum, origin);
}

#endif
