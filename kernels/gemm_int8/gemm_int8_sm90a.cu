/* gemm_int8 for sm_90a: gemm_int8_wgmma_large, _medium and _small where the rows of a and b are 16-byte aligned, tiles
 * of 128 x 256, 128 x 128 and 128 x 64 of d (w8a8_sm90a.h); beside them kernels for few rows, of mma.sync up to 16
 * (w8a8_mma_rows.h) and of wgmma up to 64 (w8a8_sm90a_rows.h), and the portable ones (gemm_int8_gpu.c) for the rest.
 *
 * Where no scale is of a group, wgmma adds up the products of all of k in int32. Where one is, those of a group are
 * converted, scaled and added to the sums in f32; a warpgroup waits for the last ones after each stage, since the
 * assembler has no registers for more.
 *
 * Floor: 2 m n k operations. Measured on an H100 (driver 580.159.04, 2026-11-26) at 4096 and 8192 cubed, scales of rows
 * and columns: 91.3 and 678 us, 1505 and 1621 TOPS, 1.73 and 1.68 times torch._int_mm, which has no scales. Scales of
 * groups, the medium tile in clusters of two and 9 to 16 rows are not measured as they ship; gemm_fp8_sm90a.cu
 * says what prototypes of them did with e4m3. Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_int8 */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_int8/gemm_int8_portable.h"

#include "kernels/common/matmul/w8a8_mma_rows.h"
#include "kernels/common/matmul/w8a8_sm90a.h"
#include "kernels/common/matmul/w8a8_sm90a_early.h"
#include "kernels/common/matmul/w8a8_sm90a_rows.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_int8_wgmma_large, 128, 256, 128, 54800, 100)
KILN_STAGES(gemm_int8_wgmma_large, 4)
KILN_CLUSTER(gemm_int8_wgmma_large, 2)
KILN_TENSOR_MAPS(gemm_int8_wgmma_large, 240, 128x128x1, 128x128x1)
KILN_SHAPE(gemm_int8_wgmma_medium, 128, 128, 128, 36544, 92)
KILN_STAGES(gemm_int8_wgmma_medium, 6)
KILN_CLUSTER(gemm_int8_wgmma_medium, 2)
KILN_TENSOR_MAPS(gemm_int8_wgmma_medium, 240, 128x128x1, 128x64x1)
KILN_SHAPE(gemm_int8_wgmma_small, 128, 64, 128, 27408, 44)
KILN_STAGES(gemm_int8_wgmma_small, 8)
KILN_TENSOR_MAPS(gemm_int8_wgmma_small, 240, 128x128x1, 128x64x1)
KILN_SHAPE(gemm_int8_mma_rows_8, 8, 16, 2048, 0, 100)
KILN_SHAPE(gemm_int8_mma_rows_16, 16, 16, 2048, 0, 100)
KILN_SHAPE(gemm_int8_wgmma_rows_1, 64, 64, 128, 16400, 100)
KILN_STAGES(gemm_int8_wgmma_rows_1, 6)
KILN_TENSOR_MAPS(gemm_int8_wgmma_rows_1, 240, 128x64x1, 128x64x1)
KILN_SHAPE(gemm_int8_wgmma_rows_2, 64, 64, 128, 16400, 100)
KILN_STAGES(gemm_int8_wgmma_rows_2, 6)
KILN_CLUSTER(gemm_int8_wgmma_rows_2, 2)
KILN_TENSOR_MAPS(gemm_int8_wgmma_rows_2, 240, 128x64x1, 128x64x1)
KILN_SHAPE(gemm_int8_wgmma_rows_4, 64, 64, 128, 16400, 100)
KILN_STAGES(gemm_int8_wgmma_rows_4, 6)
KILN_CLUSTER(gemm_int8_wgmma_rows_4, 4)
KILN_TENSOR_MAPS(gemm_int8_wgmma_rows_4, 240, 128x64x1, 128x64x1)
KILN_PROGRAMMATIC(gemm_int8_wgmma_large)
KILN_PROGRAMMATIC(gemm_int8_wgmma_medium)
KILN_PROGRAMMATIC(gemm_int8_wgmma_small)
KILN_PROGRAMMATIC(gemm_int8_wgmma_rows_1)
KILN_PROGRAMMATIC(gemm_int8_wgmma_rows_2)
KILN_PROGRAMMATIC(gemm_int8_wgmma_rows_4)
KILN_PROGRAMMATIC(gemm_int8_mma_rows_8)
KILN_PROGRAMMATIC(gemm_int8_mma_rows_16)
KILN_PROGRAMMATIC(gemm_int8_tiles)
KILN_PROGRAMMATIC(gemm_int8_rows)
KILN_PROGRAMMATIC(gemm_int8_join)

struct unit {
    typedef int32_t sums;
    enum : bool { TWO_LEVEL = false };
    KILN_INLINE void mma(int32_t *sums, const uint32_t *a, const uint32_t *b) { kiln_sm80_mma_s8(sums, a, b); }
    KILN_INLINE int32_t first(void) { return 0; }
    KILN_INLINE float value(int32_t products) { return (float)products; }
};

struct group_unit {
    typedef int32_t sums;
    enum : uint32_t { AT_ONCE = 1 };
    KILN_INLINE bool whole(const kiln_w8a8_mapped_args &args) { return !args.plain.grouped; }
    KILN_INLINE float value(int32_t products) { return (float)products; }
    template <uint32_t COLS> KILN_INLINE void multiply(int32_t *sums, uint64_t a, uint64_t b, bool add) {
        if constexpr (COLS == 256)
            kiln_sm90a_wgmma_s8_n256(sums, a, b, add);
        else if constexpr (COLS == 128)
            kiln_sm90a_wgmma_s8_n128(sums, a, b, add);
        else
            kiln_sm90a_wgmma_s8_n64(sums, a, b, add);
    }
};

MATMUL_ENTRY(gemm_int8_wgmma_large, kiln_w8a8_mapped_args, 2) {
    w8a8_wgmma<w8a8_shape<256, 4, 2>, group_unit>(args);
}

MATMUL_ENTRY(gemm_int8_wgmma_medium, kiln_w8a8_mapped_args, 2) {
    w8a8_wgmma<w8a8_shape<128, 6, 2>, group_unit>(args);
}

MATMUL_ENTRY(gemm_int8_wgmma_small, kiln_w8a8_mapped_args, 1) {
    w8a8_wgmma<w8a8_shape<64, 8, 1>, group_unit>(args);
}

ROWS_ENTRY(gemm_int8_wgmma_rows_1, kiln_w8a8_mapped_args, 1) {
    w8a8_wgmma_rows<group_unit, 64, 6, 1>(args);
}

ROWS_ENTRY(gemm_int8_wgmma_rows_2, kiln_w8a8_mapped_args, 2) {
    w8a8_wgmma_rows<group_unit, 64, 6, 2>(args);
}

ROWS_ENTRY(gemm_int8_wgmma_rows_4, kiln_w8a8_mapped_args, 4) {
    w8a8_wgmma_rows<group_unit, 64, 6, 4>(args);
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
    KILN_SHARED few_rows<2, 1, 4>::sums sums;
    w8a8_mma_rows<unit, 2, 1, 4>(args, &sums);
}
