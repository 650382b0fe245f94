/* rmsnorm, host side. */
#include "kernels/common/held_host.h"
#include "kernels/common/rms.h"
#include "kernels/rmsnorm/rmsnorm_args.h"
#include <kiln/ops/norm.h>
#define KILN_HOST rmsnorm
#include "kernels/common/operator.h"

static kiln_status rmsnorm(kiln_stream *stream, const kiln_rmsnorm_params *params, unsigned part, const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    float eps;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    KILN__TRY(kiln__eps_resolve(name, params->eps, &eps));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    kiln__tensor tensors[] = {kiln__tensor_of("y", params->y, params->y_stride),
                              kiln__tensor_of("x", params->x, params->x_stride),
                              kiln__optional_row("weight", params->weight)};
    uint32_t wide;
    KILN__TRY(kiln__tensors_check(name, tensors, 3, rows, cols, kiln__part_size_log2(part), &wide));
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[0], &tensors[1]));
    kiln_rmsnorm_args args = {
        .y = params->y,
        .x = params->x,
        .weight = params->weight,
        .y_stride = tensors[0].stride,
        .x_stride = tensors[1].stride,
        .mean = 1.0f / (float)cols,
        .eps = eps,
    };
    unsigned lanes_log2 = kiln__held_lanes_log2(rows, kiln__vectors(cols, kiln__part_size_log2(part)));
    args.shape =
        (kiln_shape){.rows = rows, .cols = cols, .tile = (uint32_t)cols, .lanes_log2 = lanes_log2, .wide = wide};
    kiln_launch_config config;
    KILN__TRY(kiln__size_check(name, "cols", cols, UINT32_MAX - KILN_BLOCK * KILN_VECTOR_BYTES));
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(rows, lanes_log2), &config));
    return launch(stream, part, KERNEL_rmsnorm, &config, &args, sizeof args);
}
