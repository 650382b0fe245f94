/* gemm_int8 for sm_80 and later: w8a8_sm80.h has its kernels. gemm_int8_mma_large is tiles of 128 x 256 of d, 64 x 64
 * by a warp, gemm_int8_mma_small of 64 x 128, 32 x 32 by a warp. Two stages of the large one fit sm_86, 89 and 120,
 * three the others.
 *
 * Where no scale is of a group, sums stay int32 to the end. Where one is, the products of a group begin with 1.5 * 2^23
 * as its bits, so that they are f32 numbers when they are done (they are below 2^22), and taking them over is a
 * subtraction and a multiplication with addition: converting them would be at a quarter of that rate, and the longest
 * part of all on sm_80.
 *
 * Floor: 2 m n k operations, or for few rows one read of b. Not measured.
 * Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_int8 */
#include "kernels/common/tuned.h"
#include "kernels/gemm_int8/gemm_int8_portable.h"

#include "kernels/common/matmul/w8a8_mma_rows.h"
#include "kernels/common/matmul/w8a8_sm80.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_int8_mma_large, 128, 256, 128, 50688, 100)
KILN_SHAPE(gemm_int8_mma_small, 64, 128, 128, 25344, 70)
KILN_SHAPE(gemm_int8_mma_rows_8, 8, 16, 2048, 0, 100)
KILN_SHAPE(gemm_int8_mma_rows_16, 16, 32, 1024, 0, 100)

struct unit {
    typedef int32_t sums;
    enum : bool { TWO_LEVEL = false };
    KILN_INLINE void mma(int32_t *sums, const uint32_t *a, const uint32_t *b) { kiln_sm80_mma_s8(sums, a, b); }
    KILN_INLINE int32_t first(void) { return 0x4b400000; }
    KILN_INLINE float value(int32_t products) { return kiln_float((uint32_t)products) - 0x1.8p23f; }
};

KILN_ENTRY(gemm_int8_mma_large, kiln_w8a8_args) {
    w8a8_mma<unit, 128, 256, 64, 64>(args);
}

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
