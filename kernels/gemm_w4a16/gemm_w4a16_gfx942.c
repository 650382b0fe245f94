/* gemm_w4a16 for gfx942, f16 and bf16: gemm_w4a16_mfma.h tells the tiles. */
#define MFMA_DIES 8
#include "kernels/gemm_w4a16/gemm_w4a16_mfma.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(gemm_w4a16_mma_large, 256, 128, 32, 30720, 100)
KILN_STAGES(gemm_w4a16_mma_large, 2)
KILN_SHAPE(gemm_w4a16_mma_small, 64, 64, 32, 10240, 50)
KILN_STAGES(gemm_w4a16_mma_small, 2)
KILN_SHAPE(gemm_w4a16_mma_few, 16, 16, 512, 0, 100)
