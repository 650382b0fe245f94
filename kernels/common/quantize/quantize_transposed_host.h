/* What the host sides of quantize_fp8 and quantize_int8 share where x's columns are not adjacent. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_HOST_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_HOST_H

#include "kernels/common/quantize/quantize_host.h"
#include "kernels/common/quantize/quantize_transposed_args.h"
#include "kernels/common/quantize/transposed_host.h"

/* What args->whole says. */
static inline int64_t kiln__quantize_transposed_whole(const kiln__quantize_call *call, unsigned size_log2,
                                                      const kiln_quantize_transposed_args *args) {
    const kiln_quantize_args *q = &args->quantize;
    const bool usual = q->source == KILN_QUANTIZE_COMPUTED && !q->rows_log2 && q->smax == call->greatest;
    const bool whole = args->tiles == 1 && args->x.rows_log2 == kiln__transposed_rows_log2(size_log2) &&
                       call->cols % KILN_TRANSPOSED_COLS == 0 && args->x.wide && q->shape.wide;
    return usual && whole ? call->rows >> args->x.rows_log2 << args->x.rows_log2 : 0;
}

/* Gives the launch shared memory for a block's tiles. Of rows that is for all of them or, if two blocks would not have
 * room then, for one. */
static inline void kiln__quantize_transposed_hold(const kiln_device_info *device, kiln_quantize_transposed_args *args,
                                                  kiln_launch_config *config) {
    const uint32_t others = KILN_TRANSPOSED_ROWS * 2 * (uint32_t)sizeof(float); /* kiln_quantize_transposed_shared */
    const uint32_t bytes = (uint32_t)device->max_shared_bytes >> !args->down;
    const uint32_t room = bytes > others ? (bytes - others) / KILN_TRANSPOSED_BYTES : 0;
    args->held = args->tiles <= room ? args->tiles : args->down && room > 1 ? 2 : 1;
    args->mask = args->held == args->tiles ? UINT32_MAX : args->held - 1;
    if (bytes) config->dynamic_shared_bytes = args->held * KILN_TRANSPOSED_BYTES;
}

/* Whether clusters of blocks do a call, for which *args and *config become theirs: if the image has that kernel, for
 * rows of a computed scale each, of which each block has tiles and shared memory for them. A tile has fewer rows where
 * clusters would be few, or three blocks would have no room. */
static inline bool kiln__quantize_transposed_cluster(const kiln_kernel *cluster, unsigned size_log2,
                                                     kiln_quantize_transposed_args *args, kiln_launch_config *config) {
    enum { FEW_CLUSTERS = 32, LEAST_BYTES_LOG2 = 6, RESIDENT = 3, OTHERS = 4096 /* at most, of shared memory */ };
    const kiln_quantize_args *q = &args->quantize;
    if (cluster->info.absent || q->source != KILN_QUANTIZE_COMPUTED || q->rows_log2 || q->grouped) return false;
    const uint32_t most = (uint32_t)cluster->device->info.max_shared_bytes;
    const uint64_t rows = (uint64_t)args->x.rows, cols = (uint64_t)args->x.cols;
    uint32_t rows_log2 = kiln__transposed_rows_log2(size_log2);
    uint64_t across, bytes;
    for (;; rows_log2--) {
        const uint32_t cols_log2 = KILN_TRANSPOSED_BYTES_LOG2 - size_log2 - rows_log2;
        across = (cols + (1ull << cols_log2) - 1) >> cols_log2;
        bytes = (across + KILN_QUANTIZE_CLUSTER - 1) / KILN_QUANTIZE_CLUSTER * KILN_TRANSPOSED_BYTES + OTHERS;
        const bool good = rows >> rows_log2 >= FEW_CLUSTERS && bytes <= most / RESIDENT;
        if (good || rows_log2 + size_log2 <= LEAST_BYTES_LOG2) break;
    }
    if (across < KILN_QUANTIZE_CLUSTER || bytes > most) return false;
    args->x.rows_log2 = rows_log2;
    args->quantize.block_rows = 1u << rows_log2;
    const uint64_t blocks = (rows + (1ull << rows_log2) - 1) >> rows_log2;
    if (kiln__grid("", KILN_QUANTIZE_CLUSTER, blocks, config) != KILN_OK) return false;
    args->held = (uint32_t)((bytes - OTHERS) / KILN_TRANSPOSED_BYTES);
    config->dynamic_shared_bytes = args->held * KILN_TRANSPOSED_BYTES;
    return true;
}

/* Checks a call and prepares its arguments and its launch. An empty grid means that there is nothing to launch. */
static inline kiln_status kiln__quantize_transposed_prepare(const char *name, const kiln_device_info *device,
                                                            kiln__quantize_call *call, unsigned size_log2,
                                                            kiln_quantize_transposed_args *args,
                                                            kiln_launch_config *config) {
    kiln_quantize_args *q = &args->quantize;
    uint32_t wide;
    *config = (kiln_launch_config){0};
    *args = (kiln_quantize_transposed_args){.tiles = 1};
    KILN__TRY(kiln__quantize_begin(name, call, q));
    if (KILN__UNLIKELY(!call->rows || !call->cols)) return KILN_OK;
    KILN__TRY(kiln__transposed_check(name, call->x, call->rows, call->cols, call->x_stride, call->x_col_stride,
                                     size_log2, &args->x));
    KILN__TRY(kiln__quantize_codes_check(name, call, q, size_log2, &wide));
    q->shape = (kiln_shape){.rows = call->rows, .cols = call->cols, .wide = wide};

    const bool computed = q->source == KILN_QUANTIZE_COMPUTED, rows = computed && !q->rows_log2 && !q->grouped;
    uint64_t across = (uint64_t)kiln__quantize_groups(call->cols);
    args->down = computed && q->rows_log2;
    if (rows) {
        args->tiles = kiln__transposed_rows(&args->x, size_log2);
        across = 1;
    }
    if (args->down) args->tiles = (uint32_t)KILN_QUANTIZE_GROUP >> args->x.rows_log2;
    args->whole = kiln__quantize_transposed_whole(call, size_log2, args);
    q->block_rows = args->down ? KILN_QUANTIZE_GROUP : 1u << args->x.rows_log2;
    KILN__TRY(kiln__grid(name, across, ((uint64_t)call->rows + q->block_rows - 1) / q->block_rows, config));
    kiln__quantize_transposed_hold(device, args, config);
    return KILN_OK;
}

#endif
