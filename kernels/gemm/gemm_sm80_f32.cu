/* gemm_f32 for sm_80 and later: tiles by mma.sync m16n8k8 of TF32 (gemm_mma_tiles.h), for calls that allow it and rows
 * of a and b that are 16-byte aligned; tiles by f32 multiply-adds (gemm_ffma.h) for those that do not; beside the
 * portable kernels (gemm_gpu.c) for the rest.
 *
 * Matrix units take the upper 19 bits of a word as they are, so that fragments are rounded to them as they are read
 * from shared memory: half away from zero, 8 conversions for every 16 products of a warp in the large tile.
 *
 * Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm_f32 compute=tf32 */
#include "kernels/arch/sm80.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm/gemm_portable.h"

KILN_TUNED_PARTS(f32)
KILN_SHAPE(gemm_mma_large, 128, 256, 32, 49152, 50)
KILN_SHAPE(gemm_mma_small, 64, 128, 32, 24576, 35)
KILN_SHAPE(gemm_ffma, 128, 128, 16, 16384, 100)
KILN_STAGES(gemm_ffma, 2)

KILN_INLINE void load_fragment(uint32_t *words, uint32_t shared) {
    kiln_sm80_ldmatrix_x4(words, shared);
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        words[i] = kiln_sm80_cvt_rna_tf32(words[i]);
}

KILN_INLINE void mma(float *sums, const uint32_t *a, const uint32_t *b) {
    kiln_sm80_mma_tf32(sums, a, b);
}

#include "kernels/gemm/gemm_ffma.h"
#include "kernels/gemm/gemm_mma_tiles.h"
