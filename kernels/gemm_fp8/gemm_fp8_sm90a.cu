/* gemm_fp8 for sm_90a: gemm_fp8_wgmma_large, _medium and _small where the rows of a and b are 16-byte aligned, tiles of
 * 128 x 256, 128 x 128 and 128 x 64 of d (w8a8_sm90a.h); beside them the kernels of mma.sync for few rows
 * (w8a8_mma_rows.h) and the portable ones (gemm_fp8_gpu.c) for the rest.
 *
 * What wgmma adds up of e4m3 keeps 13 bits below the greatest, with an error toward 0 that grows with k (on an H100
 * 0.068 at k 4096 and 0.13 at 8192 where all products have one sign). So sums are taken over by f32 arithmetic after
 * every 128 of k, unless the call asks for fast accumulation and no scale is of a group.
 *
 * Floor: 2 m n k operations. Measured on an H200 (driver 580.159.04, 2026-11-26) at 4096 and 8192 cubed: 1182 and 1256
 * TFLOP/s, 0.89 and 0.86 of torch._scaled_mm without fast accumulation, and with it 1356 and 1454, 0.94 and 0.97 of
 * torch's. Prototypes of the large tile on an H100 did 1348
 * and 1399 TFLOP/s with sums taken over as here, 1.02 and 0.98 of torch._scaled_mm without fast accumulation; and 1409
 * and 1499 with fast accumulation and clusters of two, 1.00 and 1.02 of torch's (1431 and 1494 without clusters, which
 * pay when the chip is hot). A tile of 128 x 128 did 1245 and 1111. What was slower there: 128 x 192 with all of its
 * products in one temporary, 1243 and 1410. Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_fp8 */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_products.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_fp8/gemm_fp8_portable.h"

#include "kernels/common/w8a8_mma_rows.h"
#include "kernels/common/w8a8_sm90a.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_TUNED_ASSEMBLER(12.8.93)
KILN_SHAPE(gemm_fp8_wgmma_large, 128, 256, 128, 50704, 100)
KILN_STAGES(gemm_fp8_wgmma_large, 4)
KILN_CLUSTER(gemm_fp8_wgmma_large, 2)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_large, 240, 128x128x1, 128x128x1)
KILN_SHAPE(gemm_fp8_wgmma_medium, 128, 128, 128, 33808, 88)
KILN_STAGES(gemm_fp8_wgmma_medium, 6)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_medium, 240, 128x128x1, 128x128x1)
KILN_SHAPE(gemm_fp8_wgmma_small, 128, 64, 128, 25360, 44)
KILN_STAGES(gemm_fp8_wgmma_small, 8)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_small, 240, 128x128x1, 128x64x1)
KILN_SHAPE(gemm_fp8_mma_rows_8, 8, 16, 2048, 0, 100)
KILN_SHAPE(gemm_fp8_mma_rows_16, 16, 32, 1024, 0, 100)
KILN_PROGRAMMATIC(gemm_fp8_wgmma_large)
KILN_PROGRAMMATIC(gemm_fp8_wgmma_medium)
KILN_PROGRAMMATIC(gemm_fp8_wgmma_small)
KILN_PROGRAMMATIC(gemm_fp8_mma_rows_8)
KILN_PROGRAMMATIC(gemm_fp8_mma_rows_16)
KILN_PROGRAMMATIC(gemm_fp8_tiles)
KILN_PROGRAMMATIC(gemm_fp8_rows)
KILN_PROGRAMMATIC(gemm_fp8_join)

struct unit {
    typedef float sums;
    enum : bool { TWO_LEVEL = true };
    KILN_INLINE void mma(float *sums, const uint32_t *a, const uint32_t *b) { kiln_sm89_mma_e4m3(sums, a, b); }
    KILN_INLINE float first(void) { return 0.0f; }
    KILN_INLINE float value(float products) { return products; }
};

struct group_unit {
    typedef float sums;
    KILN_INLINE bool whole(const kiln_w8a8_mapped_args &args) { return args.fast && !args.plain.grouped; }
    KILN_INLINE float value(float products) { return products; }
    template <uint32_t COLS> KILN_INLINE void multiply(float *sums, uint64_t a, uint64_t b, bool add) {
        if constexpr (COLS == 256)
            kiln_sm90a_wgmma_e4m3_n256(sums, a, b, add);
        else if constexpr (COLS == 128)
            kiln_sm90a_wgmma_e4m3_n128(sums, a, b, add);
        else
            kiln_sm90a_wgmma_e4m3_n64(sums, a, b, add);
    }
};

MATMUL_ENTRY(gemm_fp8_wgmma_large, kiln_w8a8_mapped_args, 2) {
    w8a8_wgmma<w8a8_shape<256, 4, 2>, group_unit>(args);
}

MATMUL_ENTRY(gemm_fp8_wgmma_medium, kiln_w8a8_mapped_args, 1) {
    w8a8_wgmma<w8a8_shape<128, 6, 1>, group_unit>(args);
}

MATMUL_ENTRY(gemm_fp8_wgmma_small, kiln_w8a8_mapped_args, 1) {
    w8a8_wgmma<w8a8_shape<64, 8, 1>, group_unit>(args);
}

KILN_ENTRY(gemm_fp8_mma_rows_8, kiln_w8a8_args) {
    KILN_SHARED few_rows<1, 1, 4>::sums sums;
    w8a8_mma_rows<unit, 1, 1, 4>(args, &sums);
}

KILN_ENTRY(gemm_fp8_mma_rows_16, kiln_w8a8_args) {
    KILN_SHARED few_rows<2, 2, 2>::sums sums;
    w8a8_mma_rows<unit, 2, 2, 2>(args, &sums);
}
