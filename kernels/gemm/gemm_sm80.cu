/* gemm for sm_80 and later, f16 and bf16: tiles by mma.sync m16n8k16 (gemm_mma_tiles.h) and the kernels for few rows
 * (gemm_mma_rows.h, gemm_mma_fused.h) where the rows of a and b are 16-byte aligned, beside the portable kernels
 * (gemm_gpu.c) for the rest.
 *
 * Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm */
#include "kernels/common/tuned.h"
#include "kernels/gemm/gemm_mma_fused.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(gemm_mma_large, 128, 256, 64, 49152, 100)
KILN_SHAPE(gemm_mma_small, 64, 128, 64, 24576, 70)
KILN_SHAPE(gemm_mma_rows_8, 8, 16, 1024, 0, 100)
KILN_SHAPE(gemm_mma_rows_16, 16, 16, 512, 0, 100)
KILN_SHAPE(gemm_mma_gated_8, 8, 16, 1024, 0, 100)
KILN_SHAPE(gemm_mma_gated_16, 16, 16, 512, 0, 100)
KILN_SHAPE(gemm_mma_norm_8, 8, 16, 1024, 0, 100)
KILN_SHAPE(gemm_mma_norm_16, 16, 16, 512, 0, 100)

KILN_INLINE void load_fragment(uint32_t *words, uint32_t shared) {
    kiln_sm80_ldmatrix_x4(words, shared);
}

#include "kernels/gemm/gemm_mma_tiles.h"
