/* log_softmax, host side: short rows in one launch; long rows in one by clusters, or in two, with partial results in
 * the workspace. The two take all rows at once: for 16 MiB of rows at a time, which a cache could keep between them,
 * [1024, 131072] in bf16 took 376 us instead of 275 (H100 80GB HBM3, driver 580.159.04, 2026-11-26). */
#include "kernels/common/held_host.h"
#include "kernels/log_softmax/log_softmax_args.h"
#include <kiln/ops/softmax.h>
#define KILN_HOST log_softmax
#include "kernels/common/operator.h"

#include "kernels/common/reduce/exp_sum_host.h"

static uint64_t partials_size(int64_t rows, int64_t cols, unsigned size_log2) {
    if (!rows || !kiln__is_long(cols, size_log2)) return 0;
    return (uint64_t)rows * kiln__chunks(rows, cols, size_log2) * sizeof(kiln_log_softmax_partial);
}

static kiln_status check_sizes(const char *name, const kiln_log_softmax_params *params) {
    KILN__TRY(kiln__size_check(name, "rows", params->rows, INT32_MAX));
    return kiln__size_check(name, "cols", params->cols, INT32_MAX);
}

/* Long rows that no cluster holds. If y is not wanted, one block for each row finishes it, and reads none. */
static kiln_status launch_long(kiln_stream *stream, const kiln_log_softmax_params *params, unsigned part,
                               kiln_log_softmax_args *args, const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    unsigned size_log2 = kiln__part_size_log2(part);
    kiln_launch_config config;
    const uint64_t chunks = kiln__chunks(rows, cols, size_log2);
    KILN__TRY(kiln__grid(name, chunks, (uint64_t)rows, &config));
    args->partials = params->workspace;
    args->chunks = (uint32_t)chunks;
    args->shape.tile = 1u << kiln__chunk_log2(rows, cols, size_log2);
    args->phase = KILN_LOG_SOFTMAX_PARTIAL;
    KILN__TRY(launch(stream, part, KERNEL_log_softmax, &config, args, sizeof *args));
    args->phase = KILN_LOG_SOFTMAX_FINISH;
    if (!params->y) config.grid[0] = 1;
    return launch(stream, part, KERNEL_log_softmax, &config, args, sizeof *args);
}

static kiln_status log_softmax(kiln_stream *stream, const kiln_log_softmax_params *params, unsigned part,
                               const char *name) {
    KILN__TRY(check_sizes(name, params));
    int64_t rows = params->rows, cols = params->cols;
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln__tensor tensors[] = {kiln__tensor_of("x", params->x, params->x_stride),
                              kiln__tensor_of("y", params->y, params->y_stride)};
    uint32_t wide;
    KILN__TRY(kiln__tensors_check(name, tensors, params->y ? 2 : 1, rows, cols, size_log2, &wide));
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[1], &tensors[0]));
    KILN__TRY(kiln__tensor_check(name, "lse", params->lse, 1, rows, rows, 2));
    unsigned lanes_log2 = kiln__held_lanes_log2(rows, kiln__vectors(cols, size_log2));
    kiln_log_softmax_args args = {
        .y = params->y,
        .lse = params->lse,
        .x = params->x,
        .shape = {.rows = rows, .cols = cols, .tile = (uint32_t)cols, .lanes_log2 = lanes_log2, .wide = wide},
        .y_stride = tensors[1].stride,
        .x_stride = tensors[0].stride,
        .chunks = 1,
        .phase = KILN_LOG_SOFTMAX_ROWS,
    };
    if (kiln__is_long(cols, size_log2)) {
        bool launched;
        const kiln_module *module;
        KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size,
                                        partials_size(rows, cols, size_log2)));
        KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_log_softmax, part, &kiln__bundle_log_softmax, &module));
        KILN__TRY(kiln__cluster_launch(stream, &module->kernels[KERNEL_log_softmax_cluster], size_log2, name, &args,
                                       sizeof args, &args.shape, &launched));
        return launched ? KILN_OK : launch_long(stream, params, part, &args, name);
    }
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(rows, lanes_log2), &config));
    return launch(stream, part, KERNEL_log_softmax, &config, &args, sizeof args);
}

static kiln_status log_softmax_workspace_size(kiln_stream *stream, const kiln_log_softmax_params *params, unsigned part,
                                              const char *name, size_t *out_size) {
    (void)stream;
    KILN__TRY(check_sizes(name, params));
    *out_size = partials_size(params->rows, params->cols, kiln__part_size_log2(part));
    return KILN_OK;
}
