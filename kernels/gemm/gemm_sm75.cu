/* gemm_f16 for sm_75, and its text for later chips whose drivers read no later one: tiles by mma.sync m16n8k8
 * (gemm_mma_tiles.h) and the kernels for few rows (gemm_mma_rows.h, gemm_mma_fused.h) where the rows of a and b are
 * 16-byte aligned, beside the portable kernels (gemm_gpu.c) for the rest. bf16 stays with those: sm_75 has no products
 * of it, and as f16 its numbers would overflow.
 *
 * A product of a warp takes 8 cycles of its scheduler's matrix unit, and 64 x 64 of d by a warp read 4 KiB of shared
 * memory for 64 of them: 32 bytes a cycle of a multiprocessor that reads 64. Of the small tile there is room for two
 * blocks. Not measured. Simulated, 256 x 256 x 512: 203280 instructions of a warp by large tiles and 302208 by small
 * ones, 1653760 by the portable kernel.
 *
 * Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm */
#include "kernels/common/tuned.h"
#include "kernels/gemm/gemm_mma_fused.h"

KILN_TUNED_PARTS(f16)
KILN_SHAPE(gemm_mma_large, 128, 256, 32, 24576, 100)
KILN_STAGES(gemm_mma_large, 2)
KILN_SHAPE(gemm_mma_small, 64, 128, 32, 12288, 70)
KILN_STAGES(gemm_mma_small, 2)
KILN_SHAPE(gemm_mma_rows_8, 8, 16, 1024, 0, 100)
KILN_SHAPE(gemm_mma_rows_16, 16, 16, 512, 0, 100)
KILN_SHAPE(gemm_mma_gated_8, 8, 16, 1024, 0, 100)
KILN_SHAPE(gemm_mma_gated_16, 16, 16, 512, 0, 100)

KILN_INLINE void load_fragment(uint32_t *words, uint32_t shared) {
    kiln_sm80_ldmatrix_x4(words, shared);
}

#include "kernels/gemm/gemm_mma_tiles.h"
