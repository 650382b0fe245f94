/* gemm for gfx942, f16 and bf16: gemm_mfma.h tells the tiles. */
#define MFMA_DIES 8
#include "kernels/gemm/gemm_mfma.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(gemm_mma_large, 256, 128, 32, 30720, 100)
KILN_SHAPE(gemm_mma_small, 64, 64, 32, 10240, 50)
KILN_SHAPE(gemm_mma_norm_16, 16, 16, 1024, 0, 100)
