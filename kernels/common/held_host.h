/* How rows are divided among threads and blocks, for host sides of kernels that hold them in registers (held.h). */
#ifndef KILN_KERNELS_COMMON_HELD_HOST_H
#define KILN_KERNELS_COMMON_HELD_HOST_H

#include "kernels/common/host.h"

/* How many threads, as a logarithm, share a row: up to four vectors for each, fewer where few rows would leave most of
 * a device idle. */
static inline unsigned kiln__held_lanes_log2(int64_t rows, uint64_t vectors) {
    return kiln__lanes_log2_of(vectors, kiln__thread_vectors_log2(rows, vectors));
}

/* The elements, as a logarithm, of a chunk of a long row, which a block holds: 16 KiB of them, or down to 1024 where
 * few rows would take few blocks. */
static inline unsigned kiln__chunk_log2(int64_t rows, int64_t cols, unsigned size_log2) {
    enum { MOST_BYTES_LOG2 = 14, LEAST_LOG2 = 10, BLOCKS = 128 };
    unsigned log2 = MOST_BYTES_LOG2 - size_log2;
    while (log2 > LEAST_LOG2 && rows < BLOCKS && (uint64_t)rows * ((uint64_t)cols >> log2) < BLOCKS)
        log2--;
    return log2;
}

static inline uint64_t kiln__chunks(int64_t rows, int64_t cols, unsigned size_log2) {
    unsigned log2 = kiln__chunk_log2(rows, cols, size_log2);
    return ((uint64_t)cols + (1u << log2) - 1) >> log2;
}

/* Whether a row has more than 32 KiB, and is therefore divided. */
static inline bool kiln__is_long(int64_t cols, unsigned size_log2) {
    enum { SHORT_BYTES = 1 << 15 };
    return cols > SHORT_BYTES >> size_log2;
}

#endif
