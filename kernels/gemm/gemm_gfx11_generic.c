/* gemm for gfx11-generic, f16 and bf16: gemm_gfx11.h tells the tiles. */
#include "kernels/gemm/gemm_gfx11.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(gemm_mma_large, 128, 128, 32, 20480, 100)
KILN_SHAPE(gemm_mma_small, 64, 64, 32, 10240, 60)
KILN_SHAPE(gemm_mma_norm_16, 16, 16, 1024, 0, 100)
