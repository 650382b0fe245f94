/* gemm for sm_90a, f16 and bf16: tiles by wgmma (gemm_wgmma.h) and the kernels for few rows (gemm_mma_rows.h,
 * gemm_mma_fused.h, gemm_wgmma_rows.h) where the rows of a and b are 16-byte aligned; beside them the portable ones
 * (gemm_gpu.c) for the rest.
 *
 * Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm/gemm_mma_fused.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_TUNED_ASSEMBLER(12.8.93)
KILN_SHAPE(gemm_wgmma_large, 128, 256, 64, 53280, 100)
KILN_STAGES(gemm_wgmma_large, 4)
KILN_CLUSTER(gemm_wgmma_large, 2)
KILN_TENSOR_MAPS(gemm_wgmma_large, 240, 64x128x1, 64x128x1)
KILN_SHAPE(gemm_wgmma_large_224, 128, 224, 64, 45072, 98)
KILN_STAGES(gemm_wgmma_large_224, 5)
KILN_CLUSTER(gemm_wgmma_large_224, 2)
KILN_TENSOR_MAPS(gemm_wgmma_large_224, 240, 64x128x1, 64x112x1)
KILN_SHAPE(gemm_wgmma_large_192, 128, 192, 64, 44272, 98)
KILN_STAGES(gemm_wgmma_large_192, 5)
KILN_CLUSTER(gemm_wgmma_large_192, 2)
KILN_TENSOR_MAPS(gemm_wgmma_large_192, 240, 64x128x1, 64x96x1)
KILN_SHAPE(gemm_wgmma_medium, 128, 128, 64, 35520, 95)
KILN_STAGES(gemm_wgmma_medium, 6)
KILN_CLUSTER(gemm_wgmma_medium, 2)
KILN_TENSOR_MAPS(gemm_wgmma_medium, 240, 64x128x1, 64x64x1)
KILN_SHAPE(gemm_wgmma_small, 128, 64, 64, 26640, 52)
KILN_STAGES(gemm_wgmma_small, 8)
KILN_TENSOR_MAPS(gemm_wgmma_small, 240, 64x128x1, 64x64x1)
KILN_SHAPE(gemm_wgmma_small_2, 128, 64, 64, 26640, 70)
KILN_STAGES(gemm_wgmma_small_2, 8)
KILN_CLUSTER(gemm_wgmma_small_2, 2)
KILN_TENSOR_MAPS(gemm_wgmma_small_2, 240, 64x128x1, 64x32x1)
KILN_SHAPE(gemm_wgmma_small_80, 128, 80, 64, 28992, 75)
KILN_STAGES(gemm_wgmma_small_80, 7)
KILN_CLUSTER(gemm_wgmma_small_80, 2)
KILN_TENSOR_MAPS(gemm_wgmma_small_80, 240, 64x128x1, 64x40x1)
KILN_SHAPE(gemm_mma_rows_8, 8, 16, 1024, 0, 100)
KILN_SHAPE(gemm_mma_rows_16, 16, 16, 512, 0, 100)
KILN_SHAPE(gemm_mma_gated_8, 8, 16, 1024, 0, 100)
KILN_SHAPE(gemm_mma_gated_16, 16, 16, 512, 0, 100)
KILN_SHAPE(gemm_mma_norm_8, 8, 16, 1024, 0, 100)
KILN_SHAPE(gemm_mma_norm_16, 16, 16, 512, 0, 100)
KILN_SHAPE(gemm_wgmma_rows_1, 64, 64, 64, 16400, 100)
KILN_STAGES(gemm_wgmma_rows_1, 6)
KILN_TENSOR_MAPS(gemm_wgmma_rows_1, 240, 64x64x1, 64x64x1)
KILN_SHAPE(gemm_wgmma_rows_2, 64, 64, 64, 16400, 100)
KILN_STAGES(gemm_wgmma_rows_2, 6)
KILN_CLUSTER(gemm_wgmma_rows_2, 2)
KILN_TENSOR_MAPS(gemm_wgmma_rows_2, 240, 64x64x1, 64x64x1)
KILN_SHAPE(gemm_wgmma_rows_4, 64, 64, 64, 16400, 100)
KILN_STAGES(gemm_wgmma_rows_4, 6)
KILN_CLUSTER(gemm_wgmma_rows_4, 4)
KILN_TENSOR_MAPS(gemm_wgmma_rows_4, 240, 64x64x1, 64x64x1)
KILN_PROGRAMMATIC(gemm_wgmma_large)
KILN_PROGRAMMATIC(gemm_wgmma_large_224)
KILN_PROGRAMMATIC(gemm_wgmma_large_192)
KILN_PROGRAMMATIC(gemm_wgmma_medium)
KILN_PROGRAMMATIC(gemm_wgmma_small)
KILN_PROGRAMMATIC(gemm_wgmma_small_2)
KILN_PROGRAMMATIC(gemm_wgmma_small_80)
KILN_PROGRAMMATIC(gemm_wgmma_rows_1)
KILN_PROGRAMMATIC(gemm_wgmma_rows_2)
KILN_PROGRAMMATIC(gemm_wgmma_rows_4)
KILN_PROGRAMMATIC(gemm_mma_rows_8)
KILN_PROGRAMMATIC(gemm_mma_rows_16)
KILN_PROGRAMMATIC(gemm_mma_gated_8)
KILN_PROGRAMMATIC(gemm_mma_gated_16)
KILN_PROGRAMMATIC(gemm_mma_norm_8)
KILN_PROGRAMMATIC(gemm_mma_norm_16)
KILN_PROGRAMMATIC(gemm_tiles)
KILN_PROGRAMMATIC(gemm_rows)
KILN_PROGRAMMATIC(gemm_join)
KILN_PROGRAMMATIC(gemm_rows_fused)
KILN_PROGRAMMATIC(gemm_norm)
KILN_PROGRAMMATIC(gemm_gate)
KILN_PROGRAMMATIC(gemm_wgmma_join)

#ifdef KILN_PART_bf16
#define MULTIPLY(n)      kiln_sm90a_wgmma_bf16_n##n<0>(sums, a, b, add)
#define MULTIPLY_WIDE(n) kiln_sm90a_wgmma_bf16_n##n(sums, a, b, add)
#else
#define MULTIPLY(n)      kiln_sm90a_wgmma_f16_n##n<0>(sums, a, b, add)
#define MULTIPLY_WIDE(n) kiln_sm90a_wgmma_f16_n##n(sums, a, b, add)
#endif

struct unit {
    template <uint32_t COLS> KILN_INLINE void multiply(float *sums, uint64_t a, uint64_t b, bool add) {
        if constexpr (COLS == 256)
            MULTIPLY(256);
        else if constexpr (COLS == 224)
            MULTIPLY_WIDE(224);
        else if constexpr (COLS == 192)
            MULTIPLY_WIDE(192);
        else if constexpr (COLS == 128)
            MULTIPLY(128);
        else if constexpr (COLS == 80)
            MULTIPLY_WIDE(80);
        else
            MULTIPLY(64);
    }
};

#include "kernels/gemm/gemm_wgmma.h"

MATMUL_ENTRY(gemm_wgmma_large_224, kiln_gemm_mapped_args, 2) {
    gemm_wgmma<224, 5, 2, false>(args);
}

MATMUL_ENTRY(gemm_wgmma_large_192, kiln_gemm_mapped_args, 2) {
    gemm_wgmma<192, 5, 2, true>(args);
}

MATMUL_ENTRY(gemm_wgmma_small_2, kiln_gemm_mapped_args, 2) {
    gemm_wgmma<64, 8, 2, true, 2>(args);
}

MATMUL_ENTRY(gemm_wgmma_small_80, kiln_gemm_mapped_args, 2) {
    gemm_wgmma<80, 7, 2, true, 2>(args);
}

#include "kernels/gemm/gemm_wgmma_join.h"
#include "kernels/gemm/gemm_wgmma_rows.h"
