/* gemm_fp8 for sm_89 and later: w8a8_sm80.h has its kernels. gemm_fp8_mma_large is tiles of 128 x 128 of d, 64 x 32 by
 * a warp (64 x 64, as of gemm_int8, would spill on sm_100), gemm_fp8_mma_small
 * of 64 x 128, 32 x 32 by a warp.
 *
 * Sums of matrix instructions are taken over by f32 arithmetic after every 128 of k, always: those of sm_89 keep 13
 * bits below the greatest of what they add, and an error of one sign where products have one.
 *
 * Floor: 2 m n k operations, or for few rows one read of b. Not measured.
 * Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_fp8 */
#include "kernels/arch/sm89.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_fp8/gemm_fp8_portable.h"

#include "kernels/common/matmul/w8a8_mma_rows.h"
#include "kernels/common/matmul/w8a8_sm80.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_TUNED_ASSEMBLER(12.4.131)
KILN_SHAPE(gemm_fp8_mma_large, 128, 128, 128, 33792, 100)
KILN_SHAPE(gemm_fp8_mma_small, 64, 128, 128, 25344, 70)
KILN_SHAPE(gemm_fp8_mma_rows_8, 8, 16, 2048, 0, 100)
KILN_SHAPE(gemm_fp8_mma_rows_16, 16, 16, 1024, 0, 100)

struct unit {
    typedef float sums;
    enum : bool { TWO_LEVEL = true };
    KILN_INLINE void mma(float *sums, const uint32_t *a, const uint32_t *b) { kiln_sm89_mma_e4m3(sums, a, b); }
    KILN_INLINE float first(void) { return 0.0f; }
    KILN_INLINE float value(float products) { return products; }
};

KILN_ENTRY(gemm_fp8_mma_large, kiln_w8a8_args) {
    w8a8_mma<unit, 128, 128, 64, 32>(args);
}

KILN_ENTRY(gemm_fp8_mma_small, kiln_w8a8_args) {
    w8a8_mma<unit, 64, 128, 32, 32>(args);
}

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 3) void

KILN_ENTRY(gemm_fp8_mma_rows_8, kiln_w8a8_args) {
    KILN_SHARED few_rows<1, 1, 4>::sums sums;
    w8a8_mma_rows<unit, 1, 1, 4>(args, &sums);
}

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 2) void

KILN_ENTRY(gemm_fp8_mma_rows_16, kiln_w8a8_args) {
    KILN_SHARED few_rows<2, 1, 2>::sums sums;
    w8a8_mma_rows<unit, 2, 1, 2>(args, &sums);
}
