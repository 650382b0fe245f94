/* The greatest magnitudes of tiles turned in shared memory (transposed_gpu.h). The threads that share a line take its
 * own of all tiles that a block goes through, and then find the greatest among them. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_GREATEST_H
#define KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_GREATEST_H

#include "kernels/common/device.h"
#include "kernels/common/quantize/transposed_gpu.h"
#include "kernels/common/reduce/greatest_magnitude.h"
#include "kernels/common/reduce/row_reduce.h"

enum {
    KILN_LINE_THREADS_LOG2 = KILN_BLOCK_LOG2 - KILN_TRANSPOSED_LINES_LOG2,
    KILN_LINE_THREADS = 1 << KILN_LINE_THREADS_LOG2,
    KILN_LINE_EACH = KILN_LINE / KILN_LINE_THREADS /* vectors */
};

/* The first of a thread's vectors of its line, of which number i is that one ^ i * KILN_LINE_THREADS. Of neighbouring
 * lines, which are read at the same time, it is in different banks. */
KILN_INLINE uint32_t kiln_transposed_own(uint32_t line) {
    return kiln_thread() % KILN_LINE_THREADS ^ (KILN_LINE_THREADS < 8 ? line % 2 * KILN_LINE_THREADS : 0);
}

/* Takes the magnitudes of a thread's vectors of a tile, of which NaN is none. */
KILN_INLINE void kiln_transposed_take(const kiln_transposed *t, const kiln_vector *tile, kiln_greatest_magnitude *own) {
    const uint32_t line = kiln_thread() / KILN_LINE_THREADS;
    const uint32_t place = kiln_transposed_place(t, line, kiln_transposed_own(line));
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_LINE_EACH; i++)
        kiln_greatest_magnitude_take(own, tile[place ^ i * KILN_LINE_THREADS]);
}

/* Stores the greatest magnitude of each line. The caller has a barrier behind it. */
KILN_INLINE void kiln_transposed_tell(kiln_greatest_magnitude own, float *of_lines) {
    const float greatest =
        kiln_subgroup_reduce(kiln_greatest_magnitude_value(own), KILN_LINE_THREADS_LOG2, KILN_REDUCE_MAX);
    if (kiln_thread() % KILN_LINE_THREADS == 0) of_lines[kiln_thread() / KILN_LINE_THREADS] = greatest;
}

/* The greatest magnitude of a row, or of all rows. */
KILN_INLINE float kiln_transposed_greatest(const kiln_transposed *t, const float *of_lines, uint32_t row, bool all) {
    const uint32_t step = all ? 1 : 1u << t->rows_log2;
    float greatest = 0.0f;
    KILN_LOOP
    for (uint32_t line = all ? 0 : row; line < KILN_TRANSPOSED_LINES; line += step)
        greatest = kiln_max(of_lines[line], greatest);
    return greatest;
}

#endif
