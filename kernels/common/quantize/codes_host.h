/* What the host sides of operators that quantise their own result share: the checks of their outputs, and the launch
 * over the result's rows. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_HOST_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_HOST_H

#include "kernels/common/quantize/codes_args.h"
#include "kernels/common/quantize/codes_held.h"
#include "kernels/common/quantize/nvfp4_host.h"
#include "kernels/common/quantize/quantize_host.h"

/* The fields of a call's params that describe its codes, under the names that all such operators give them. Fields of
 * other formats are 0. */
typedef struct kiln__codes_call {
    void *codes, *scales;
    float *global_scale;
    int64_t rows, cols, scale_rows, scale_cols, codes_stride;
    int32_t scale_layout;
    float smax, static_scale;
    float greatest; /* the code's greatest number; 0: NVFP4 */
} kiln__codes_call;

/* Such that the columns of the threads that share a row stay within 32 bits. */
enum { KILN__CODES_COLS_MAX = INT32_MAX - (1 << 13) + 1 };

/* Checks what empty results must satisfy too. */
static inline kiln_status kiln__codes_limits_check(const char *name, const kiln__codes_call *call) {
    const bool nvfp4 = call->greatest == 0;
    const float least = nvfp4 ? 0x1p-116f : 0x1p-126f;
    KILN__TRY(kiln__size_check(name, "rows", call->rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "cols", call->cols, KILN__CODES_COLS_MAX));
    KILN__REQUIRE(call->static_scale == 0 || (call->static_scale >= least && call->static_scale <= 0x1.fffffep127f),
                  "%s: static_scale is %g: must be 0 or a finite number of at least %g", name,
                  (double)call->static_scale, (double)least);
    if (nvfp4) {
        const kiln__nvfp4_sizes sizes = {.rows = call->rows,
                                         .cols = call->cols,
                                         .scale_rows = call->scale_rows,
                                         .scale_cols = call->scale_cols,
                                         .scale_layout = call->scale_layout};
        KILN__TRY(kiln__size_check(name, "scale_cols", call->scale_cols, KILN__CODES_COLS_MAX >> 4));
        return kiln__nvfp4_limits_check(name, &sizes);
    }
    KILN__TRY(kiln__size_check(name, "scale_cols", call->scale_cols, INT64_MAX));
    KILN__REQUIRE(call->smax == 0 || (call->smax >= 1 && call->smax <= call->greatest),
                  "%s: smax is %g: must be 0 or from 1 to %g", name, (double)call->smax, (double)call->greatest);
    return KILN_OK;
}

static inline kiln_status kiln__codes_8_check(const char *name, const kiln__codes_call *call, kiln_codes_args *args) {
    const int64_t groups = kiln__quantize_groups(call->cols), scale_cols = call->scale_cols ? call->scale_cols : 1;
    KILN__TRY(kiln__size_check(name, "scale_cols", scale_cols, groups));
    KILN__REQUIRE(scale_cols == 1 || scale_cols == groups,
                  "%s: scale_cols is %lld: must be 1 or %lld (for every 128 columns)", name, (long long)scale_cols,
                  (long long)groups);
    KILN__REQUIRE(scale_cols == 1 || call->static_scale == 0, "%s: scale_cols is %lld: must be 1 with a static_scale",
                  name, (long long)scale_cols);
    args->codes_stride = call->codes_stride ? call->codes_stride : call->cols;
    KILN__TRY(kiln__tensor_check(name, "codes", call->codes, call->rows, call->cols, args->codes_stride, 0));
    if (call->scales)
        KILN__TRY(kiln__tensor_check(name, "scales", call->scales, call->rows, scale_cols, scale_cols, 2));
    args->smax = call->smax == 0 ? call->greatest : call->smax;
    args->scale_cols = scale_cols;
    args->grouped = scale_cols > 1;
    args->eights = ((uint32_t)call->cols + KILN_EIGHT - 1) / KILN_EIGHT;
    args->shape.rows = call->rows;
    return KILN_OK;
}

static inline kiln_status kiln__codes_nvfp4_check(const char *name, const kiln__codes_call *call,
                                                  kiln_codes_args *args) {
    const kiln__nvfp4_sizes sizes = {.rows = call->rows,
                                     .cols = call->cols,
                                     .scale_rows = call->scale_rows,
                                     .scale_cols = call->scale_cols,
                                     .global_rows = call->rows,
                                     .scale_layout = call->scale_layout};
    const int64_t code_cols = KILN__NVFP4_BLOCK_BYTES * call->scale_cols;
    KILN__TRY(kiln__nvfp4_scales_check(name, &sizes));
    args->codes_stride = call->codes_stride ? call->codes_stride : code_cols;
    KILN__TRY(kiln__tensor_check(name, "codes", call->codes, call->rows, code_cols, args->codes_stride, 0));
    KILN__TRY(
        kiln__tensor_check(name, "scales", call->scales, call->scale_rows, call->scale_cols, call->scale_cols, 0));
    if (call->global_scale)
        KILN__TRY(kiln__tensor_check(name, "global_scale", call->global_scale, 1, call->rows, call->rows, 2));
    args->scale_cols = call->scale_cols;
    args->swizzled = call->scale_layout == KILN_SCALES_128X4;
    args->eights = 2 * (uint32_t)call->scale_cols;
    args->shape.rows = call->scale_rows;
    return KILN_OK;
}

/* Divides rows among blocks, in which so many threads, as a logarithm, share one. */
static inline kiln_status kiln__codes_divide(const char *name, unsigned lanes_log2, kiln_codes_args *args,
                                             kiln_launch_config *config) {
    args->shape.lanes_log2 = lanes_log2;
    args->rounds = ((args->eights - 1) >> lanes_log2) + 1;
    return kiln__grid(name, 1, kiln__blocks(args->shape.rows, lanes_log2), config);
}

/* Checks the codes and scales of a result that is not empty, and prepares the arguments and the launch. wide: whether
 * the rows of all other tensors are aligned. */
static inline kiln_status kiln__codes_prepare(const char *name, const kiln__codes_call *call, uint32_t wide,
                                              kiln_codes_args *args, kiln_launch_config *config) {
    const bool nvfp4 = call->greatest == 0;
    *args = (kiln_codes_args){
        .codes = call->codes,
        .scales = call->scales,
        .global_scale = call->global_scale,
        .rows = call->rows,
        .static_scale = call->static_scale,
    };
    KILN__TRY(nvfp4 ? kiln__codes_nvfp4_check(name, call, args) : kiln__codes_8_check(name, call, args));
    const uintptr_t places = (uintptr_t)call->codes | (call->rows > 1 ? (uintptr_t)args->codes_stride : 0);
    const int64_t groups = kiln__quantize_groups(call->cols);
    const unsigned lanes_log2 = groups == 1   ? KILN_EIGHTS_GROUP_LOG2
                                : groups <= 4 ? KILN_SUBGROUP_LOG2
                                              : KILN_BLOCK_LOG2;
    args->shape.cols = call->cols;
    args->shape.tile = (uint32_t)call->cols;
    args->shape.wide = wide && places % (nvfp4 ? KILN_EIGHT / 2 : KILN_EIGHT) == 0;
    return kiln__codes_divide(name, lanes_log2, args, config);
}

/* Gives the launch shared memory for a thread's eights: at most a quarter of what a block can have on the device, so
 * that several blocks are resident. */
static inline void kiln__codes_keep(const kiln_device_info *device, kiln_codes_args *args, kiln_launch_config *config) {
    const uint32_t bytes = KILN_BLOCK * KILN_EIGHT * (uint32_t)sizeof(float);
    const uint32_t most = (uint32_t)device->max_shared_bytes / 4 / bytes;
    args->kept = args->rounds < most ? args->rounds : most;
    config->dynamic_shared_bytes = args->kept * bytes;
}

/* Whether the kernels that codes_held.h is for can do a call, if they are enough for its columns: rows of whole,
 * aligned eights with codes that are aligned by blocks, and no huge scale. */
static inline bool kiln__codes_held(const kiln_codes_args *args) {
    const uintptr_t places = (uintptr_t)args->codes | (args->rows > 1 ? (uintptr_t)args->codes_stride : 0);
    return args->shape.wide && places % KILN__NVFP4_BLOCK_BYTES == 0 && args->shape.cols % (2 * KILN_EIGHT) == 0 &&
           args->static_scale <= KILN_CODES_HELD_SCALE;
}

#endif
