/* gemm_f32 for sm_90a: tiles by wgmma of TF32 (gemm_wgmma.h), for calls that allow it and rows of a and b that are
 * 16-byte aligned; beside them the portable kernels (gemm_gpu.c) for the rest. The tensor copies round to TF32, nearest
 * even, so that this takes no instruction.
 *
 * Not measured, and no prototype: the rates are half of those of f16, as the matrix units' are.
 * Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm_f32 compute=tf32 */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm/gemm_portable.h"

KILN_TUNED_PARTS(f32)
KILN_TUNED_ASSEMBLER(12.8.93)
KILN_SHAPE(gemm_wgmma_large, 128, 256, 32, 49168, 50)
KILN_STAGES(gemm_wgmma_large, 4)
KILN_CLUSTER(gemm_wgmma_large, 2)
KILN_TENSOR_MAPS(gemm_wgmma_large, 240, 32x128x1, 32x128x1)
KILN_SHAPE(gemm_wgmma_medium, 128, 128, 32, 32784, 47)
KILN_STAGES(gemm_wgmma_medium, 6)
KILN_CLUSTER(gemm_wgmma_medium, 2)
KILN_TENSOR_MAPS(gemm_wgmma_medium, 240, 32x128x1, 32x64x1)
KILN_SHAPE(gemm_wgmma_small, 128, 64, 32, 24592, 26)
KILN_STAGES(gemm_wgmma_small, 8)
KILN_TENSOR_MAPS(gemm_wgmma_small, 240, 32x128x1, 32x64x1)
KILN_SHAPE(gemm_ffma, 128, 128, 16, 16384, 100)
KILN_STAGES(gemm_ffma, 2)
KILN_PROGRAMMATIC(gemm_wgmma_large)
KILN_PROGRAMMATIC(gemm_wgmma_medium)
KILN_PROGRAMMATIC(gemm_wgmma_small)
KILN_PROGRAMMATIC(gemm_ffma)
KILN_PROGRAMMATIC(gemm_tiles)
KILN_PROGRAMMATIC(gemm_rows)
KILN_PROGRAMMATIC(gemm_join)
KILN_PROGRAMMATIC(gemm_rows_fused)
KILN_PROGRAMMATIC(gemm_norm)
KILN_PROGRAMMATIC(gemm_gate)

struct unit {
    template <uint32_t COLS> KILN_INLINE void multiply(float *sums, uint64_t a, uint64_t b, bool add) {
        if constexpr (COLS == 256)
            kiln_sm90a_wgmma_tf32_n256(sums, a, b, add);
        else if constexpr (COLS == 128)
            kiln_sm90a_wgmma_tf32_n128(sums, a, b, add);
        else
            kiln_sm90a_wgmma_tf32_n64(sums, a, b, add);
    }
};

#include "kernels/gemm/gemm_ffma.h"
#include "kernels/gemm/gemm_wgmma.h"
