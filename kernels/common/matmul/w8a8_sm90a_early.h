/* What gemm_fp8 and gemm_int8 of few rows by mma.sync (w8a8_mma_rows.h) do on sm_90a before they wait for the preceding
 * kernel: a block prefetches what its warps load first of its rows of b, a line for each thread, and their scales. This
 * is for the entries after it. */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_EARLY_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_EARLY_H

#include "kernels/arch/sm80.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/matmul/w8a8_scales.h"

/* The host side says in `stages`, which few rows do not have, how many blocks may begin before the preceding kernel has
 * ended. */
KILN_SM90A void kiln_sm90a_early(const kiln_w8a8_args &args) {
    enum : uint32_t { ROWS = 16, LINE = 128, LINES = KILN_BLOCK / ROWS };
    const uint32_t row = kiln_tile() * ROWS + kiln_thread() / LINES, at = kiln_thread() % LINES * LINE;
    if (kiln_tile() >= args.stages) return;
    if (row < (uint32_t)args.n && at < (uint32_t)args.k)
        kiln_sm80_prefetch(args.b + row * (uint64_t)args.b_stride + at);
    if (kiln_thread() == 0 && !args.grouped)
        kiln_sm80_prefetch(args.b_scales.values + (row >> args.b_scales.rows_log2) * (uint64_t)args.b_scales.cols);
}

#endif
