/* gemm_int8 for sm_75, and its text for later chips whose drivers read no later one: the kernels of
 * gemm_int8_sm80.cu (w8a8_sm80.h) by mma.sync m8n8k16. A stage of 64 x 128 codes and their scales is 24.75 KiB, of
 * which sm_75 has room for two; of no larger tile has it, so that there is no large kernel.
 *
 * Floor: 2 m n k operations, or for few rows one read of b. Not measured. Simulated, 256 x 256 x 512 with a scale for
 * each tensor: 217088 instructions of a warp, 558208 by the portable kernel.
 * Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_int8 */
#include "kernels/arch/sm75.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_int8/gemm_int8_portable.h"

#include "kernels/common/matmul/w8a8_mma_rows.h"
#include "kernels/common/matmul/w8a8_sm80.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_int8_mma_small, 64, 128, 128, 25344, 70)
KILN_STAGES(gemm_int8_mma_small, 2)
KILN_SHAPE(gemm_int8_mma_rows_8, 8, 16, 2048, 0, 100)
KILN_SHAPE(gemm_int8_mma_rows_16, 16, 32, 1024, 0, 100)

struct unit {
    typedef int32_t sums;
    enum : bool { TWO_LEVEL = false };
    KILN_INLINE void mma(int32_t *sums, const uint32_t *a, const uint32_t *b) { kiln_sm75_mma_s8(sums, a, b); }
    KILN_INLINE int32_t first(void) { return 0x4b400000; }
    KILN_INLINE float value(int32_t products) { return kiln_float((uint32_t)products) - 0x1.8p23f; }
};

KILN_ENTRY(gemm_int8_mma_small, kiln_w8a8_args) {
    w8a8_mma<unit, 64, 128, 32, 32>(args);
}

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 3) void

KILN_ENTRY(gemm_int8_mma_rows_8, kiln_w8a8_args) {
    KILN_SHARED few_rows<1, 1, 4>::sums sums;
    w8a8_mma_rows<unit, 1, 1, 4>(args, &sums);
}

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 2) void

KILN_ENTRY(gemm_int8_mma_rows_16, kiln_w8a8_args) {
    KILN_SHARED few_rows<2, 2, 2>::sums sums;
    w8a8_mma_rows<unit, 2, 2, 2>(args, &sums);
}
