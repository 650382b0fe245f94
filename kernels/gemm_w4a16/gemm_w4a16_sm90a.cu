/* gemm_w4a16 for sm_90a, f16 and bf16, of weights in the layout sm80_v1 (gemm_w4a16_layout.h): kernels for few rows by
 * mma.sync (gemm_w4a16_mma_rows.h) and for more by wgmma (gemm_w4a16_wgmma.h), beside the portable ones
 * (gemm_w4a16_gpu.c) for canonical weights.
 *
 * Test: build/tests/ops/gemm_w4a16_test. Bench: build/kiln bench gemm_w4a16 --set weight_layout=sm80_v1 */
#include "kernels/arch/sm80.h"
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_w4a16/gemm_w4a16_layout.h"
#include "kernels/gemm_w4a16/gemm_w4a16_rows_args.h"
#include "kernels/gemm_w4a16/gemm_w4a16_shared_args.h"

/* The first two steps of a block's weights, a line of 128 bytes each lane, and of its scales and zeros what is copied
 * first, those of up to 128 groups of each row. */
KILN_SM90A void kiln_sm90a_early(const kiln_gemm_w4a16_rows_args &all) {
    enum : uint32_t { ROWS = 2 * KILN_W4A16_TILE_ROWS, STEP_BYTES = 2 * KILN_W4A16_TILE_BYTES, LINE = 128 };
    const kiln_gemm_w4a16_args &args = all.plain;
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32, warps = blockDim.x / 32;
    const uint64_t row_bytes = (uint64_t)args.k / KILN_W4A16_TILE_DEPTH * KILN_W4A16_TILE_BYTES; /* of 16 rows */
    const uint64_t cols = args.paired ? KILN_W4A16_TILE_ROWS : ROWS, apart = args.paired ? (uint64_t)args.n : cols / 2;
    const uint64_t first = kiln_tile() * cols, row = first + lane / 16 * apart,
                   rows = (uint64_t)args.n << !!args.paired;
    const uint64_t at = (warp + lane / 8 % 2 * warps) * (uint64_t)STEP_BYTES + lane % 8 * LINE;
    if (!all.early) return;
    if (row < rows && at < row_bytes) kiln_sm80_prefetch(args.weights + row / KILN_W4A16_TILE_ROWS * row_bytes + at);
    if (!all.panels) return;
    const uint64_t group_row = first + kiln_thread() / 2 % 16 + kiln_thread() / 32 % 2 * apart;
    const uint64_t group = kiln_thread() % 2 * (LINE / sizeof(kiln_element));
    const void *groups = kiln_thread() / (2 * ROWS) ? args.zeros : args.scales;
    if (kiln_thread() < 4 * ROWS && groups && group_row < rows && group < (uint64_t)args.scale_row_step)
        kiln_sm80_prefetch((const kiln_element *)groups + group_row * (uint64_t)args.scale_row_step + group);
}

/* Of each warp's tile the first two steps of weights. */
KILN_SM90A void kiln_sm90a_early(const kiln_gemm_w4a16_shared_args &all) {
    enum : uint32_t { ROWS = KILN_W4A16_TILE_ROWS, STEP_BYTES = 2 * KILN_W4A16_TILE_BYTES, LINE = 128 };
    const kiln_gemm_w4a16_args &args = all.plain;
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32, parts = blockDim.x / 32 / all.tiles;
    const uint64_t row_bytes = (uint64_t)args.k / KILN_W4A16_TILE_DEPTH * KILN_W4A16_TILE_BYTES; /* of 16 rows */
    const uint64_t cols = args.paired ? ROWS : 2 * ROWS, apart = args.paired ? (uint64_t)args.n : ROWS;
    const uint64_t row = (kiln_tile() / 2 * (uint64_t)all.tiles + warp % all.tiles) * cols + lane / 16 * apart;
    const uint64_t first = kiln_tile() % 2 * (uint64_t)args.split / KILN_W4A16_TILE_DEPTH * KILN_W4A16_TILE_BYTES;
    const uint64_t at = first + (warp / all.tiles + lane / 8 % 2 * parts) * (uint64_t)STEP_BYTES + lane % 8 * LINE;
    if (all.early && row < (uint64_t)args.n << !!args.paired && at < row_bytes)
        kiln_sm80_prefetch(args.weights + row / ROWS * row_bytes + at);
}

#include "kernels/gemm_w4a16/gemm_w4a16_mma_rows.h"
#include "kernels/gemm_w4a16/gemm_w4a16_mma_shared.h"
#include "kernels/gemm_w4a16/gemm_w4a16_wgmma.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_TUNED_ASSEMBLER(12.8.93)
KILN_SHAPE(gemm_w4a16_wgmma_256, 256, 128, 64, 36880, 140)
KILN_STAGES(gemm_w4a16_wgmma_256, 6)
KILN_CLUSTER(gemm_w4a16_wgmma_256, 2)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_256, 240, 64x128x1, 128x8x1)
KILN_SHAPE(gemm_w4a16_wgmma_128, 128, 192, 64, 22544, 103)
KILN_STAGES(gemm_w4a16_wgmma_128, 10)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_128, 240, 64x128x1, 128x12x1)
KILN_SHAPE(gemm_w4a16_wgmma_128_256, 128, 256, 64, 24592, 88)
KILN_STAGES(gemm_w4a16_wgmma_128_256, 9)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_128_256, 240, 64x128x1, 128x16x1)
KILN_SHAPE(gemm_w4a16_wgmma_64, 64, 256, 64, 16400, 73)
KILN_STAGES(gemm_w4a16_wgmma_64, 13)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_64, 240, 64x64x1, 128x16x1)
KILN_SHAPE(gemm_w4a16_wgmma_32, 32, 256, 64, 12304, 45)
KILN_STAGES(gemm_w4a16_wgmma_32, 16)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_32, 240, 64x32x1, 128x16x1)
KILN_SHAPE(gemm_w4a16_mma_rows_8, 8, 32, 32768, 17408, 100)
KILN_SHAPE(gemm_w4a16_mma_rows_16, 16, 32, 32768, 17408, 100)
KILN_SHAPE(gemm_w4a16_mma_shared_8, 8, 32, 512, 16384, 100)
KILN_SHAPE(gemm_w4a16_mma_shared_16, 16, 32, 512, 16384, 100)
KILN_CLUSTER(gemm_w4a16_mma_shared_8, 2)
KILN_CLUSTER(gemm_w4a16_mma_shared_16, 2)
KILN_SHAPE(gemm_w4a16_mma_norm_8, 8, 32, 8192, 17408, 100)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_256)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_128)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_128_256)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_64)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_32)
KILN_PROGRAMMATIC(gemm_w4a16_mma_rows_8)
KILN_PROGRAMMATIC(gemm_w4a16_mma_rows_16)
KILN_PROGRAMMATIC(gemm_w4a16_mma_norm_8)
KILN_PROGRAMMATIC(gemm_w4a16_mma_shared_8)
KILN_PROGRAMMATIC(gemm_w4a16_mma_shared_16)
KILN_PROGRAMMATIC(gemm_w4a16_tiles)
KILN_PROGRAMMATIC(gemm_w4a16_rows)
KILN_PROGRAMMATIC(gemm_w4a16_join)
KILN_PROGRAMMATIC(gemm_w4a16_fused_rows)
KILN_PROGRAMMATIC(gemm_w4a16_norm)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_join)
