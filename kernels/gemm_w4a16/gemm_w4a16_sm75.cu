/* gemm_w4a16_f16 for sm_75, of weights in the layout sm80_v1 (gemm_w4a16_layout.h): the kernels of
 * gemm_w4a16_sm80.cu by mma.sync m16n8k8, with two stages of shared memory. bf16 has the portable ones alone, for
 * canonical weights: sm_75 has no products of it.
 *
 * Floor: 2 m n k operations, or for few rows one read of the weights. Not measured. Simulated: 256 x 256 x 512 446656
 * instructions of a warp (of canonical weights by the portable kernel 1897472), 8 x 256 x 1024 56448 (271552).
 * Test: build/tests/ops/gemm_w4a16_test. Bench: build/kiln bench gemm_w4a16 --set weight_layout=sm80_v1 */
#include "kernels/common/tuned.h"
#include "kernels/gemm_w4a16/gemm_w4a16_mma_tiles.h"

KILN_TUNED_PARTS(f16)
KILN_SHAPE(gemm_w4a16_mma_128, 128, 128, 64, 20480, 100)
KILN_STAGES(gemm_w4a16_mma_128, 2)
KILN_SHAPE(gemm_w4a16_mma_64, 64, 64, 64, 10240, 60)
KILN_STAGES(gemm_w4a16_mma_64, 2)
KILN_SHAPE(gemm_w4a16_mma_rows_8, 8, 32, 1024, 0, 100)
KILN_SHAPE(gemm_w4a16_mma_rows_16, 16, 32, 1024, 0, 100)
