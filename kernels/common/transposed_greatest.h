/* The greatest magnitudes of tiles turned in shared memory (transposed_gpu.h). The threads that share a line keep
 * its own in a slot, over all tiles that a block goes through. */
#ifndef KILN_KERNELS_COMMON_TRANSPOSED_GREATEST_H
#define KILN_KERNELS_COMMON_TRANSPOSED_GREATEST_H

#include "kernels/common/greatest_number.h"
#include "kernels/common/reduce.h"
#include "kernels/common/transposed_gpu.h"

enum {
    KILN_LINE_THREADS_LOG2 = KILN_BLOCK_LOG2 - KILN_TRANSPOSED_LINES_LOG2,
    KILN_LINE_THREADS = 1 << KILN_LINE_THREADS_LOG2,
    KILN_LINE_EACH = KILN_LINE / KILN_LINE_THREADS /* vectors */
};

typedef struct kiln_transposed_shared {
    kiln_vector tile[KILN_TRANSPOSED_VECTORS];
    float slots[KILN_TRANSPOSED_LINES];
} kiln_transposed_shared;

KILN_INLINE void kiln_transposed_clear(kiln_transposed_shared *shared) {
    if (kiln_thread() < KILN_TRANSPOSED_LINES) shared->slots[kiln_thread()] = 0.0f;
}

/* Adds the tile's magnitudes to the slots, of which NaN is none. Neighbouring lines begin with different vectors, in
 * other banks. */
KILN_INLINE void kiln_transposed_take(kiln_transposed_shared *shared) {
    const uint32_t line = kiln_thread() / KILN_LINE_THREADS, lane = kiln_thread() % KILN_LINE_THREADS;
    kiln_greatest_number own = kiln_greatest_number_none(true);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_LINE_EACH; i++) {
        const uint32_t vector = lane + (i + line) % KILN_LINE_EACH * KILN_LINE_THREADS;
        kiln_greatest_number_take(&own, shared->tile[kiln_transposed_place(line, vector)], true);
    }
    const float greatest =
        kiln_reduce(kiln_greatest_number_value(own), KILN_LINE_THREADS_LOG2, shared->slots, KILN_REDUCE_MAX);
    if (lane == 0) shared->slots[line] = kiln_max(greatest, shared->slots[line]);
}

/* The greatest magnitude of a row, or of all rows, after a barrier. */
KILN_INLINE float kiln_transposed_greatest(const kiln_transposed *t, const kiln_transposed_shared *shared, uint32_t row,
                                           bool all) {
    const uint32_t step = all ? 1 : 1u << t->rows_log2;
    float greatest = 0.0f;
    KILN_LOOP
    for (uint32_t line = all ? 0 : row; line < KILN_TRANSPOSED_LINES; line += step)
        greatest = kiln_max(shared->slots[line], greatest);
    return greatest;
}

#endif
