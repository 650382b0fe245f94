/* gemm_int8 for gfx1100: gemm_int8_gfx11.h tells the unit, gemm_int8_amd.h the tiles. */
#include "kernels/gemm_int8/gemm_int8_gfx11.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_int8_mma_large, 128, 128, 128, 43008, 100)
KILN_STAGES(gemm_int8_mma_large, 1)
KILN_SHAPE(gemm_int8_mma_small, 64, 64, 128, 21504, 50)
KILN_STAGES(gemm_int8_mma_small, 1)
KILN_SHAPE(gemm_int8_mma_rows_16, 16, 16, 128, 0, 100)
