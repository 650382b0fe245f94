/* sample: a random column of each row of logits; choice.h says how it is chosen.
 *
 * A block processes a row. It reads the row once for the greatest elements of groups of its vectors, which tell which
 * elements the filters can keep: candidates_gpu.h. Where these are too many, or there are no filters, sums over the row
 * decide, each of them another reading from a cache: row_gpu.h.
 *
 * Floor: one read of the row at memory bandwidth. Measured (H200, driver 580.159.04, 2026-11-26; bf16, top_k 50, top_p
 * 0.9): 21.2 us for [64, 128256], 13.5 us for [64, 4096], 90.6 us for [1024, 131072]; a sum for each bit of a key took
 * 8143, 158 and 18204 us. A version before, in which each pass had a copy of its own: 18.5, 8.8 and 84 us, and without
 * filters 148 us for the first, not measured since.
 * Test: build/tests/ops/sample_test. Bench: build/kiln bench sample */
#include "kernels/common/late_args.h"
#include "kernels/sample/candidates_gpu.h"

KILN_ENTRY(sample, kiln_sample_args) {
    KILN_SHARED exchange shared;
    if (kiln_block() >= (uint64_t)args.rows) return; /* the whole block */
    int32_t col = sample_row(KILN_LATE_ARGS(kiln_sample_args, args), &shared, 1, kiln_block());
    if (kiln_thread() == 0) KILN_LATE_ARGS(kiln_sample_args, args)->y[kiln_block()] = col;
}
