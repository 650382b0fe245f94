/* Where causal_conv1d finds what came before a token: one source for all backends. The includer (device.h, cpu.h)
 * defines KILN_INLINE. */
#ifndef KILN_KERNELS_CAUSAL_CONV1D_PLACE_H
#define KILN_KERNELS_CAUSAL_CONV1D_PLACE_H

#include "kernels/causal_conv1d/causal_conv1d_args.h"
#include "kernels/common/varlen.h"

/* The element of a tensor at which a row begins; without a tensor the row is zeros. */
typedef struct kiln_conv_place {
    const void *tensor;
    uint64_t element;
} kiln_conv_place;

/* The number of a sequence's state; one that is out of range has no state. */
KILN_INLINE uint64_t kiln_conv_state(const kiln_causal_conv1d_args *args, uint32_t sequence) {
    return args->state_indices ? (uint64_t)args->state_indices[sequence] : sequence;
}

/* A row of a sequence's state. */
KILN_INLINE uint64_t kiln_conv_state_row(const kiln_causal_conv1d_args *args, uint64_t state, uint32_t row) {
    return (state * args->history + row) * (uint64_t)args->shape.cols;
}

/* The input a number of tokens before a place of a sequence: from x, from the initial state, or zeros. */
KILN_INLINE kiln_conv_place kiln_conv_before(const kiln_causal_conv1d_args *args, kiln_varlen_sequence sequence,
                                             uint32_t place, uint32_t before) {
    kiln_conv_place found = {args->x, 0};
    if (before <= place) {
        found.element = (uint64_t)(sequence.begin + place - before) * (uint64_t)args->x_stride;
        return found;
    }
    uint64_t state = args->initial_states ? kiln_conv_state(args, sequence.number) : 0;
    found.tensor = args->initial_states && state < (uint64_t)args->states ? args->initial_states : 0;
    found.element = kiln_conv_state_row(args, state, args->history + place - before);
    return found;
}

#endif
