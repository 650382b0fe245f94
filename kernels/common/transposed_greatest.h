/* The greatest magnitudes of tiles turned in shared memory (transposed_gpu.h). The threads that share 128 columns of a
 * row keep theirs in a slot, over all tiles that a block goes through. */
#ifndef KILN_KERNELS_COMMON_TRANSPOSED_GREATEST_H
#define KILN_KERNELS_COMMON_TRANSPOSED_GREATEST_H

#include "kernels/common/greatest_number.h"
#include "kernels/common/reduce.h"
#include "kernels/common/transposed_gpu.h"

enum {
    KILN_TRANSPOSED_LANES_LOG2 = KILN_TRANSPOSED_COLS_LOG2 - KILN_VECTOR_LOG2, /* threads that share a slot */
    KILN_TRANSPOSED_SLOTS = KILN_TRANSPOSED_VECTORS >> KILN_TRANSPOSED_LANES_LOG2
};

typedef struct kiln_transposed_shared {
    kiln_vector tile[KILN_TRANSPOSED_VECTORS];
    float slots[KILN_TRANSPOSED_SLOTS];
} kiln_transposed_shared;

KILN_INLINE void kiln_transposed_clear(kiln_transposed_shared *shared) {
    if (kiln_thread() < KILN_TRANSPOSED_SLOTS) shared->slots[kiln_thread()] = 0.0f;
}

/* Adds the tile's magnitudes to the slots, of which NaN is none. */
KILN_INLINE void kiln_transposed_take(const kiln_transposed *t, kiln_transposed_shared *shared) {
    const uint32_t row_log2 = kiln_transposed_row_log2(t);
    KILN_LOOP
    for (uint32_t n = kiln_thread(); n < KILN_TRANSPOSED_VECTORS; n += KILN_BLOCK) {
        const uint32_t place = kiln_transposed_place(t, n >> row_log2, n & ((1u << row_log2) - 1));
        kiln_greatest_number own = kiln_greatest_number_none(true);
        kiln_greatest_number_take(&own, shared->tile[place], true);
        const float greatest =
            kiln_reduce(kiln_greatest_number_value(own), KILN_TRANSPOSED_LANES_LOG2, shared->slots, KILN_REDUCE_MAX);
        float *slot = &shared->slots[n >> KILN_TRANSPOSED_LANES_LOG2];
        if (n % (1u << KILN_TRANSPOSED_LANES_LOG2) == 0) *slot = kiln_max(greatest, *slot);
    }
}

/* The greatest magnitude of a row, or of all rows, after a barrier. */
KILN_INLINE float kiln_transposed_greatest(const kiln_transposed *t, const kiln_transposed_shared *shared, uint32_t row,
                                           bool all) {
    const uint32_t each = KILN_TRANSPOSED_SLOTS >> t->rows_log2, first = all ? 0 : row * each;
    const uint32_t count = all ? KILN_TRANSPOSED_SLOTS : each;
    float greatest = 0.0f;
    KILN_LOOP
    for (uint32_t i = 0; i < count; i++)
        greatest = kiln_max(shared->slots[first + i], greatest);
    return greatest;
}

#endif
