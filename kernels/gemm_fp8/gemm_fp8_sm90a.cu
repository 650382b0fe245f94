/* gemm_fp8 for sm_90a: gemm_fp8_wgmma_large, _medium and _small where the rows of a and b are 16-byte aligned, tiles of
 * 128 x 256, 128 x 128 and 128 x 64 of d (w8a8_sm90a.h); beside them kernels for few rows, of mma.sync up to 16
 * (w8a8_mma_rows.h) and of wgmma up to 64 (w8a8_sm90a_rows.h), and the portable ones (gemm_fp8_gpu.c) for the rest.
 *
 * What wgmma adds up of e4m3 keeps 13 bits below the greatest, with an error toward 0 that grows with k (on an H100
 * 0.068 at k 4096 and 0.13 at 8192 where all products have one sign). So sums are taken over by f32 arithmetic after
 * every 128 of k, unless the call asks for fast accumulation and no scale is of a group.
 *
 * Floor: 2 m n k operations. All figures are of an H100 (driver 580.159.04, 2026-11-26), in us, those in brackets of
 * torch._scaled_mm. Measured at 4096 and 8192 cubed: with fast accumulation 95.2 (95.0) and 722 (726), with scales of
 * rows and columns 96.0 (93.3) and 723 (712). Power bounds that: the clock falls to 1.5 GHz, where products are nine
 * tenths of the cycles.
 *
 * Sums that are taken over, the medium tile and 9 to 16 rows are not measured as they ship. Before, a warpgroup waited
 * for the products of 128 columns, and sums that are taken over measured 116.4 (100.4) and 861 (756). A prototype of
 * what is here, which spilled 48 registers, did 106.9 and 800 in a run in which what went before did 115 to 127 and 880
 * to 988; with scales of rows and columns 109 and 806; with scales of groups and blocks 118.8 and 890 (114.4 at 4096
 * cubed), where what went before did 133 to 142 and 1020 to 1073. What was no faster as prototypes there: warpgroups
 * whose products alternate strictly (124 to 134 at 4096 cubed), the first factor in registers (116.2), a warpgroup a
 * stage ahead of the other (125), and waiting for the last products after each stage (108.8, blocks 124) or each two
 * (105.8, blocks 129) instead of each four.
 *
 * A prototype of the medium tile in clusters of two did 1024 x 4096 x 4096 in 29.8 where blocks alone took 38.3, with
 * fast accumulation 28.7 and 36.0 (26.4), 512 x 8192 x 8192 in 51.9 and 60.6; at 4096 and 8192 cubed such a tile alone
 * did 1245 and 1111 TFLOP/s. 16 x 8192 x 8192 took wgmma_rows_2 30.3; mma_rows_16, which does it now, is not measured.
 * Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_fp8 */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_fp8/gemm_fp8_portable.h"

#include "kernels/common/matmul/w8a8_mma_rows.h"
#include "kernels/common/matmul/w8a8_sm90a.h"
#include "kernels/common/matmul/w8a8_sm90a_early.h"
#include "kernels/common/matmul/w8a8_sm90a_rows.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_TUNED_ASSEMBLER(12.8.93)
KILN_SHAPE(gemm_fp8_wgmma_large, 128, 256, 128, 54800, 100)
KILN_STAGES(gemm_fp8_wgmma_large, 4)
KILN_CLUSTER(gemm_fp8_wgmma_large, 2)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_large, 240, 128x128x1, 128x128x1)
KILN_SHAPE(gemm_fp8_wgmma_medium, 128, 128, 128, 36544, 92)
KILN_STAGES(gemm_fp8_wgmma_medium, 6)
KILN_CLUSTER(gemm_fp8_wgmma_medium, 2)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_medium, 240, 128x128x1, 128x64x1)
KILN_SHAPE(gemm_fp8_wgmma_small, 128, 64, 128, 27408, 44)
KILN_STAGES(gemm_fp8_wgmma_small, 8)
KILN_TENSOR_MAPS(gemm_fp8_wgmma_small, 240, 128x128x1, 128x64x1)
KILN_SHAPE(gemm_fp8_mma_rows_8, 8, 16, 2048, 0, 100)
KILN_SHAPE(gemm_fp8_mma_rows_16, 16, 16, 2048, 0, 100)
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
    enum : uint32_t { AT_ONCE = 4 };
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

MATMUL_ENTRY(gemm_fp8_wgmma_medium, kiln_w8a8_mapped_args, 2) {
    w8a8_wgmma<w8a8_shape<128, 6, 2>, group_unit>(args);
}

MATMUL_ENTRY(gemm_fp8_wgmma_small, kiln_w8a8_mapped_args, 1) {
    w8a8_wgmma<w8a8_shape<64, 8, 1>, group_unit>(args);
}

ROWS_ENTRY(gemm_fp8_wgmma_rows_1, kiln_w8a8_mapped_args, 1) {
    w8a8_wgmma_rows<group_unit, 64, 6, 1>(args);
}

ROWS_ENTRY(gemm_fp8_wgmma_rows_2, kiln_w8a8_mapped_args, 2) {
    w8a8_wgmma_rows<group_unit, 64, 6, 2>(args);
}

ROWS_ENTRY(gemm_fp8_wgmma_rows_4, kiln_w8a8_mapped_args, 4) {
    w8a8_wgmma_rows<group_unit, 64, 6, 4>(args);
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
    KILN_SHARED few_rows<2, 1, 4>::sums sums;
    w8a8_mma_rows<unit, 2, 1, 4>(args, &sums);
}
