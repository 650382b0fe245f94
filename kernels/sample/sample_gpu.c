/* sample: a random column of each row of logits; choice.h says how it is chosen.
 *
 * A block processes a row, or each of its subgroups one of many short rows: subgroup_gpu.h. A block reads the row once
 * for the greatest elements of groups of its vectors, which tell which elements the filters can keep: candidates_gpu.h.
 * Where these are too many, or there are no filters, sums over the row decide, each of them another reading from a
 * cache: row_gpu.h.
 *
 * Floor: one read of the row at memory bandwidth. Measured of an earlier version (H100 80GB HBM3, driver 580.159.04,
 * 2026-11-26; bf16): [64, 128256] 19.4 us with top_k 50 and top_p 0.9, 14.7 us greedily, 54 us without filters, 446 us
 * with top_p 0.9 of nearly equal numbers; [64, 4096] 10.6 us with top_k and top_p. Sums that read element by element
 * took 93 us without filters, and 874 us. Since then weights are summed in 32 bits (units_gpu.h), a candidate is
 * compared by several threads, and groups are as few as a row has vectors: sample_sm90a.cu has what was measured then.
 * Of 16 bits instructions take longer than 0.6 of the memory's time on sm_80, sm_90a, sm_100, gfx9 and gfx10.1 (0.6 to
 * 1.7; predicted): without filters each element takes a power of 2 and its weight as an integer, and two readings.
 * Test: build/tests/ops/sample_test. Bench: build/kiln bench sample */
#include "kernels/common/late_args.h"
#include "kernels/sample/subgroup_gpu.h"

/* The first of the rows that are left. */
KILN_INLINE uint64_t row_of(const kiln_sample_args *args, uint32_t left) {
    uint32_t first = 0;
    KILN_LOOP
    while (!(left >> first & 1))
        first++;
    return kiln_block() * args->each + first;
}

KILN_ENTRY(sample, kiln_sample_args) {
    KILN_SHARED union {
        exchange block;
        few subgroups[KILN_SUBGROUPS];
    } shared;
    KILN_SHARED uint32_t left; /* a bit for each of the rows that the block chooses from */
    if (kiln_block() * args.each >= (uint64_t)args.rows) return; /* the whole block */
    if (kiln_thread() == 0) left = args.each == 1;
    kiln_barrier();
    if (args.each > 1) {
        uint64_t number = kiln_block() * KILN_SUBGROUPS + subgroup();
        if (number < (uint64_t)args.rows) {
            uint32_t col = sample_short(KILN_LATE_ARGS(kiln_sample_args, args), &shared.subgroups[subgroup()], number);
            if (lane() == 0 && col == KILN_NOWHERE) kiln_shared_add(&left, 1u << subgroup());
            if (lane() == 0) KILN_LATE_ARGS(kiln_sample_args, args)->y[number] = (int32_t)col;
        }
        kiln_barrier();
    }
    KILN_LOOP
    while (left) {
        const kiln_sample_args *late = KILN_LATE_ARGS(kiln_sample_args, args);
        int32_t col = sample_row(late, &shared.block, row_of(late, left));
        late = KILN_LATE_ARGS(kiln_sample_args, args);
        if (anew(kiln_thread()) == 0) {
            late->y[row_of(late, left)] = col;
            left &= left - 1;
        }
        kiln_barrier();
    }
}
