/* sample: a random column of each row of logits; choice.h says how it is chosen.
 *
 * A block processes a row. It reads the row once for the greatest elements of groups of its vectors, which tell which
 * elements the filters can keep: candidates_gpu.h. Where these are too many, or there are no filters, sums over the row
 * decide, each of them another reading from a cache: row_gpu.h.
 *
 * Floor: one read of the row at memory bandwidth. Measured of an earlier version (H100 80GB HBM3, driver 580.159.04,
 * 2026-11-26; bf16): [64, 128256] 19.4 us with top_k 50 and top_p 0.9, 14.7 us greedily, 54 us without filters, 446 us
 * with top_p 0.9 of nearly equal numbers; [64, 4096] 10.6 us with top_k and top_p. Sums that read element by element
 * took 93 us without filters, and 874 us. Since then weights are summed in 32 bits (units_gpu.h), a candidate is
 * compared by several threads, and groups are as few as a row has vectors: not measured.
 * Test: build/tests/ops/sample_test. Bench: build/kiln bench sample */
#include "kernels/common/late_args.h"
#include "kernels/sample/candidates_gpu.h"

KILN_ENTRY(sample, kiln_sample_args) {
    KILN_SHARED exchange shared;
    if (kiln_block() >= (uint64_t)args.rows) return; /* the whole block */
    int32_t col = sample_row(KILN_LATE_ARGS(kiln_sample_args, args), &shared, 1, kiln_block());
    if (kiln_thread() == 0) KILN_LATE_ARGS(kiln_sample_args, args)->y[kiln_block()] = col;
}
