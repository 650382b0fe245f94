/* gemm_w4a16 for gfx12-generic, f16 and bf16: gemm_w4a16_gfx12.h tells the tiles. */
#include "kernels/gemm_w4a16/gemm_w4a16_gfx12.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(gemm_w4a16_mma_large, 128, 128, 32, 20480, 100)
KILN_STAGES(gemm_w4a16_mma_large, 2)
KILN_SHAPE(gemm_w4a16_mma_small, 64, 64, 32, 10240, 60)
KILN_STAGES(gemm_w4a16_mma_small, 2)
KILN_SHAPE(gemm_w4a16_mma_few, 16, 16, 1024, 0, 100)
