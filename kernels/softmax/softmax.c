/* softmax, host side: short rows in one launch; long rows in one by clusters, or in two, with partial results in the
 * workspace. */
#include "kernels/common/held_host.h"
#include "kernels/softmax/softmax_args.h"
#include <kiln/ops/softmax.h>
#define KILN_HOST softmax
#include "kernels/common/operator.h"

#include "kernels/common/reduce/exp_sum_host.h"

static uint64_t partials_size(int64_t rows, int64_t cols, unsigned size_log2) {
    if (!rows || !kiln__is_long(cols, size_log2)) return 0;
    return (uint64_t)rows * kiln__chunks(rows, cols, size_log2) * sizeof(kiln_softmax_partial);
}

static kiln_status launch_long(kiln_stream *stream, const kiln_softmax_params *params, unsigned part,
                               kiln_softmax_args *args, const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    unsigned size_log2 = kiln__part_size_log2(part);
    kiln_launch_config config;
    const uint64_t chunks = kiln__chunks(rows, cols, size_log2);
    KILN__TRY(kiln__grid(name, chunks, (uint64_t)rows, &config));
    args->partials = params->workspace;
    args->chunks = (uint32_t)chunks;
    args->shape.tile = 1u << kiln__chunk_log2(rows, cols, size_log2);
    args->phase = KILN_SOFTMAX_PARTIAL;
    KILN__TRY(launch(stream, part, KERNEL_softmax_rows, &config, args, sizeof *args));
    args->phase = KILN_SOFTMAX_FINISH;
    return launch(stream, part, KERNEL_softmax_rows, &config, args, sizeof *args);
}

static kiln_status softmax(kiln_stream *stream, const kiln_softmax_params *params, unsigned part, const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln__tensor tensors[] = {kiln__tensor_of("y", params->y, params->y_stride),
                              kiln__tensor_of("x", params->x, params->x_stride)};
    uint32_t wide;
    KILN__TRY(kiln__tensors_check(name, tensors, 2, rows, cols, size_log2, &wide));
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[0], &tensors[1]));

    unsigned lanes_log2 = kiln__held_lanes_log2(rows, kiln__vectors(cols, size_log2));
    kiln_softmax_args args = {
        .y = params->y,
        .x = params->x,
        .shape = {.rows = rows, .cols = cols, .tile = (uint32_t)cols, .lanes_log2 = lanes_log2, .wide = wide},
        .y_stride = tensors[0].stride,
        .x_stride = tensors[1].stride,
        .chunks = 1,
        .phase = KILN_SOFTMAX_ROWS,
    };
    if (kiln__is_long(cols, size_log2)) {
        bool launched;
        const kiln_module *module;
        KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size,
                                        partials_size(rows, cols, size_log2)));
        KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_softmax, part, &kiln__bundle_softmax, &module));
        KILN__TRY(kiln__cluster_launch(stream, &module->kernels[KERNEL_softmax_cluster], size_log2, name, &args,
                                       sizeof args, &args.shape, &launched));
        return launched ? KILN_OK : launch_long(stream, params, part, &args, name);
    }
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(rows, lanes_log2), &config));
    return launch(stream, part, KERNEL_softmax_rows, &config, &args, sizeof args);
}

static kiln_status softmax_workspace_size(kiln_stream *stream, const kiln_softmax_params *params, unsigned part,
                                          const char *name, size_t *out_size) {
    KILN__TRY(kiln__sizes_check(name, stream, params->rows, params->cols));
    int64_t count;
    KILN__REQUIRE(!__builtin_mul_overflow(params->rows, params->cols, &count) && count <= INT64_MAX >> 3,
                  "%s: %lld rows of %lld elements are too large", name, (long long)params->rows,
                  (long long)params->cols);
    *out_size = partials_size(params->rows, params->cols, kiln__part_size_log2(part));
    return KILN_OK;
}
