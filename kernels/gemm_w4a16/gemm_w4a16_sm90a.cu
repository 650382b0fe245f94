/* gemm_w4a16 for sm_90a, f16 and bf16, of weights in the layout sm80_v1 (gemm_w4a16_layout.h): kernels for few rows by
 * mma.sync (gemm_w4a16_mma_rows.h) and for more by wgmma (gemm_w4a16_wgmma.h), beside the portable ones
 * (gemm_w4a16_gpu.c) for canonical weights.
 *
 * Test: build/tests/ops/gemm_w4a16_test. Bench: build/kiln bench gemm_w4a16 --set weight_layout=sm80_v1 */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_w4a16/gemm_w4a16_mma_rows.h"
#include "kernels/gemm_w4a16/gemm_w4a16_wgmma.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_TUNED_ASSEMBLER(12.8.93)
KILN_SHAPE(gemm_w4a16_wgmma_256, 256, 128, 64, 36880, 140)
KILN_STAGES(gemm_w4a16_wgmma_256, 6)
KILN_CLUSTER(gemm_w4a16_wgmma_256, 2)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_256, 176, 64x128x1, 128x8x1)
KILN_SHAPE(gemm_w4a16_wgmma_128, 128, 192, 64, 22544, 103)
KILN_STAGES(gemm_w4a16_wgmma_128, 10)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_128, 176, 64x128x1, 128x12x1)
KILN_SHAPE(gemm_w4a16_wgmma_128_256, 128, 256, 64, 24592, 88)
KILN_STAGES(gemm_w4a16_wgmma_128_256, 9)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_128_256, 176, 64x128x1, 128x16x1)
KILN_SHAPE(gemm_w4a16_wgmma_64, 64, 256, 64, 16400, 73)
KILN_STAGES(gemm_w4a16_wgmma_64, 13)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_64, 176, 64x64x1, 128x16x1)
KILN_SHAPE(gemm_w4a16_wgmma_32, 32, 256, 64, 12304, 45)
KILN_STAGES(gemm_w4a16_wgmma_32, 16)
KILN_TENSOR_MAPS(gemm_w4a16_wgmma_32, 176, 64x32x1, 128x16x1)
KILN_SHAPE(gemm_w4a16_mma_rows_8, 8, 32, 1024, 17408, 100)
KILN_STAGES(gemm_w4a16_mma_rows_8, 2)
KILN_SHAPE(gemm_w4a16_mma_rows_16, 16, 32, 1024, 17408, 100)
KILN_STAGES(gemm_w4a16_mma_rows_16, 2)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_256)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_128)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_128_256)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_64)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_32)
KILN_PROGRAMMATIC(gemm_w4a16_mma_rows_8)
KILN_PROGRAMMATIC(gemm_w4a16_mma_rows_16)
KILN_PROGRAMMATIC(gemm_w4a16_tiles)
KILN_PROGRAMMATIC(gemm_w4a16_rows)
KILN_PROGRAMMATIC(gemm_w4a16_join)
KILN_PROGRAMMATIC(gemm_w4a16_wgmma_join)
