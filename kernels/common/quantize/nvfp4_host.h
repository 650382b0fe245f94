/* What the host sides of operators on NVFP4 share: how many scales there are. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_HOST_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_HOST_H

#include "kernels/common/host.h"

enum {
    KILN__NVFP4_BLOCK_LOG2 = 4,
    KILN__NVFP4_BLOCK_BYTES = 8,
    KILN__NVFP4_TILE_ROWS = 128,
    KILN__NVFP4_TILE_COLS = 4
};

/* The sizes of a tensor and of its scales, under the names that the operators give them. */
typedef struct kiln__nvfp4_sizes {
    int64_t rows, cols, scale_rows, scale_cols, global_rows;
    int32_t scale_layout;
} kiln__nvfp4_sizes;

/* Checks what empty tensors must satisfy too. */
static inline kiln_status kiln__nvfp4_limits_check(const char *name, const kiln__nvfp4_sizes *sizes) {
    KILN__TRY(kiln__size_check(name, "rows", sizes->rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "cols", sizes->cols, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "scale_rows", sizes->scale_rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "scale_cols", sizes->scale_cols, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "global_rows", sizes->global_rows, INT64_MAX));
    KILN__REQUIRE(sizes->scale_layout == KILN_SCALES_LINEAR || sizes->scale_layout == KILN_SCALES_128X4,
                  "%s: scale_layout is %d: must be linear (0) or 128x4 (1)", name, sizes->scale_layout);
    return KILN_OK;
}

/* Checks how many scales there are. rows and cols are positive. */
static inline kiln_status kiln__nvfp4_scales_check(const char *name, const kiln__nvfp4_sizes *sizes) {
    const int64_t blocks = (sizes->cols + (1 << KILN__NVFP4_BLOCK_LOG2) - 1) >> KILN__NVFP4_BLOCK_LOG2;
    KILN__REQUIRE(sizes->scale_rows >= sizes->rows, "%s: scale_rows is %lld: must be at least rows, %lld", name,
                  (long long)sizes->scale_rows, (long long)sizes->rows);
    KILN__REQUIRE(sizes->scale_cols >= blocks, "%s: scale_cols is %lld: must be at least cols / 16 rounded up, %lld",
                  name, (long long)sizes->scale_cols, (long long)blocks);
    KILN__TRY(kiln__size_check(name, "global_rows", sizes->global_rows, sizes->rows));
    KILN__REQUIRE(sizes->global_rows == 1 || sizes->global_rows == sizes->rows,
                  "%s: global_rows is %lld: must be 1 or rows, %lld", name, (long long)sizes->global_rows,
                  (long long)sizes->rows);
    if (sizes->scale_layout == KILN_SCALES_LINEAR) return KILN_OK;
    KILN__REQUIRE(sizes->scale_rows % KILN__NVFP4_TILE_ROWS == 0,
                  "%s: scale_rows is %lld: must be a multiple of 128 in 128x4", name, (long long)sizes->scale_rows);
    KILN__REQUIRE(sizes->scale_cols % KILN__NVFP4_TILE_COLS == 0,
                  "%s: scale_cols is %lld: must be a multiple of 4 in 128x4", name, (long long)sizes->scale_cols);
    return KILN_OK;
}

#endif
