/* gemm_w4a16 for sm_80 and later, f16 and bf16, of weights in the layout sm80_v1 (gemm_w4a16_layout.h): kernels for few
 * rows (gemm_w4a16_mma_rows.h) and for more (gemm_w4a16_mma_tiles.h), beside the portable ones (gemm_w4a16_gpu.c) for
 * canonical weights.
 *
 * Floor: 2 m n k operations. Measured on an H200 (driver 580.159.04, 2026-11-26), which has kernels of its own now
 * (gemm_w4a16_sm90a.cu): 64 rows of 8192 x 8192 in bf16 72.3 us, 4096 rows 2601 us, 0.26 of cuBLAS.
 *
 * Test: build/tests/ops/gemm_w4a16_test. Bench: build/kiln bench gemm_w4a16 --set weight_layout=sm80_v1 */
#include "kernels/common/tuned.h"
#include "kernels/gemm_w4a16/gemm_w4a16_mma_tiles.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(gemm_w4a16_mma_128, 128, 128, 64, 20480, 100)
KILN_SHAPE(gemm_w4a16_mma_64, 64, 64, 64, 10240, 60)
KILN_SHAPE(gemm_w4a16_mma_rows_8, 8, 32, 8192, 17408, 100)
KILN_SHAPE(gemm_w4a16_mma_rows_16, 16, 32, 1024, 0, 100)
KILN_SHAPE(gemm_w4a16_mma_norm_8, 8, 32, 8192, 17408, 100)
