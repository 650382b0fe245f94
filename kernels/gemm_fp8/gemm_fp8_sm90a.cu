/* gemm_fp8 for sm_90a: gemm_fp8_wgmma_large, _medium and _small where the rows of a and b are 16-byte aligned, tiles of
 * 128 x 256, 128 x 128 and 128 x 64 of d (w8a8_sm90a.h); beside them the kernels of mma.sync for few rows
 * (w8a8_mma_rows.h) and the portable ones (gemm_fp8_gpu.c) for the rest.
 *
 * What wgmma adds up of e4m3 keeps 13 bits below the greatest, with an error toward 0 that grows with k (on an H100
 * 0.068 at k 4096 and 0.13 at 8192 where all products have one sign). So sums are taken over by f32 arithmetic after
 * every 128 of k, unless the call asks for fast accumulation and no scale is of a group.
 *
 * Floor: 2 m n k operations. Measured on an H100 (driver 580.159.04, 2026-11-26), us at 4096 and 8192 cubed, and
 * torch._scaled_mm in brackets: with fast accumulation 95.2 (95.0) and 722 (726), with scales of rows and columns 96.0
 * (93.3) and 723 (712). With sums taken over 116.4 (100.4) and 861 (756). With fast
 * accumulation power bounds it: the clock falls to 1.5 GHz, where products are nine tenths of the cycles. What was no
 * faster as prototypes where sums are taken over: warpgroups whose products alternate strictly (124 to 134 at 4096
 * cubed), the first factor in registers (116.2, and 118.3 with two temporaries of 64 columns), and a warpgroup a stage
 * ahead of the other (125). Two temporaries of 64 columns, waited for every two stages, did 114.6, but 169 with scales
 * of groups, where this does 133. A tile of 128 x 128 did 1245 and 1111 TFLOP/s. Test: build/tests/ops/w8a8_test.
 * Bench: build/kiln bench gemm_fp8 */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_products.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_fp8/gemm_fp8_portable.h"

#include "kernels/common/w8a8_mma_rows.h"
#include "kernels/common/w8a8_sm90a.h"
#include "kernels/common/w8a8_sm90a_rows.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_TUNED_ASSEMBLER(12.8.93)
KILN_SHAPE(gemm_fp8_wgmma_large, 128, 256, 128, 54800, 100)
KILN_STAGES(gemm_fp8_wgmma_large, 4)
KILN_CLUSTER(gemm_fp8_wgmma_large, 2)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_large, 240, 128x128x1, 128x128x1)
KILN_SHAPE(gemm_fp8_wgmma_medium, 128, 128, 128, 36544, 88)
KILN_STAGES(gemm_fp8_wgmma_medium, 6)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_medium, 240, 128x128x1, 128x128x1)
KILN_SHAPE(gemm_fp8_wgmma_small, 128, 64, 128, 27408, 44)
KILN_STAGES(gemm_fp8_wgmma_small, 8)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_small, 240, 128x128x1, 128x64x1)
KILN_SHAPE(gemm_fp8_mma_rows_8, 8, 16, 2048, 0, 100)
KILN_SHAPE(gemm_fp8_mma_rows_16, 16, 32, 1024, 0, 100)
KILN_SHAPE(gemm_fp8_wgmma_rows_1, 64, 64, 128, 16400, 100)
KILN_STAGES(gemm_fp8_wgmma_rows_1, 6)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_rows_1, 240, 128x64x1, 128x64x1)
KILN_SHAPE(gemm_fp8_wgmma_rows_2, 64, 64, 128, 16400, 100)
KILN_STAGES(gemm_fp8_wgmma_rows_2, 6)
KILN_CLUSTER(gemm_fp8_wgmma_rows_2, 2)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_rows_2, 240, 128x64x1, 128x64x1)
KILN_SHAPE(gemm_fp8_wgmma_rows_4, 64, 64, 128, 16400, 100)
KILN_STAGES(gemm_fp8_wgmma_rows_4, 6)
KILN_CLUSTER(gemm_fp8_wgmma_rows_4, 4)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_rows_4, 240, 128x64x1, 128x64x1)
KILN_PROGRAMMATIC(gemm_fp8_wgmma_large)
KILN_PROGRAMMATIC(gemm_fp8_wgmma_medium)
KILN_PROGRAMMATIC(gemm_fp8_wgmma_small)
KILN_PROGRAMMATIC(gemm_fp8_wgmma_rows_1)
KILN_PROGRAMMATIC(gemm_fp8_wgmma_rows_2)
KILN_PROGRAMMATIC(gemm_fp8_wgmma_rows_4)
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

ROWS_ENTRY(gemm_fp8_wgmma_rows_1, 1) {
    w8a8_wgmma_rows<group_unit, 64, 6, 1>(args);
}

ROWS_ENTRY(gemm_fp8_wgmma_rows_2, 2) {
    w8a8_wgmma_rows<group_unit, 64, 6, 2>(args);
}

ROWS_ENTRY(gemm_fp8_wgmma_rows_4, 4) {
    w8a8_wgmma_rows<group_unit, 64, 6, 4>(args);
}

KILN_ENTRY(gemm_fp8_mma_rows_8, kiln_w8a8_args) {
    KILN_SHARED few_rows<1, 1, 4>::sums sums;
    w8a8_mma_rows<unit, 1, 1, 4>(args, &sums);
}

KILN_ENTRY(gemm_fp8_mma_rows_16, kiln_w8a8_args) {
    KILN_SHARED few_rows<2, 2, 2>::sums sums;
    w8a8_mma_rows<unit, 2, 2, 2>(args, &sums);
}
