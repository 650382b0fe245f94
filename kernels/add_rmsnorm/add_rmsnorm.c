/* add_rmsnorm, host side. */
#include "kernels/add_rmsnorm/add_rmsnorm_args.h"
#include "kernels/common/rms.h"
#include <kiln/ops/norm.h>
#define KILN_HOST add_rmsnorm
#include "kernels/common/operator.h"

enum { Y, SUM, X, RESIDUAL, WEIGHT, TENSORS };

/* The thread that writes an element's results has read that element of all inputs before. So an output may be an input,
 * if their rows coincide, but the two outputs must be different tensors. */
static kiln_status check_places(const char *name, const kiln__tensor *tensors) {
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[Y], &tensors[X]));
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[Y], &tensors[RESIDUAL]));
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[SUM], &tensors[X]));
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[SUM], &tensors[RESIDUAL]));
    KILN__REQUIRE(tensors[Y].data != tensors[SUM].data, "%s: y and sum are one tensor: must be two", name);
    return KILN_OK;
}

static kiln_status add_rmsnorm(kiln_stream *stream, const kiln_add_rmsnorm_params *params, unsigned part,
                               const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    float eps;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    KILN__TRY(kiln__eps_resolve(name, params->eps, &eps));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    kiln__tensor tensors[TENSORS] = {
        [Y] = kiln__tensor_of("y", params->y, params->y_stride),
        [SUM] = kiln__tensor_of("sum", params->sum, params->sum_stride),
        [X] = kiln__tensor_of("x", params->x, params->x_stride),
        [RESIDUAL] = kiln__tensor_of("residual", params->residual, params->residual_stride),
        [WEIGHT] = kiln__optional_row("weight", params->weight),
    };
    uint32_t wide;
    KILN__TRY(kiln__tensors_check(name, tensors, TENSORS, rows, cols, kiln__part_size_log2(part), &wide));
    KILN__TRY(check_places(name, tensors));
    kiln_add_rmsnorm_args args = {
        .y = params->y,
        .sum = params->sum,
        .x = params->x,
        .residual = params->residual,
        .weight = params->weight,
        .y_stride = tensors[Y].stride,
        .sum_stride = tensors[SUM].stride,
        .x_stride = tensors[X].stride,
        .residual_stride = tensors[RESIDUAL].stride,
        .mean = 1.0f / (float)cols,
        .eps = eps,
    };
    kiln_launch_config config;
    KILN__TRY(kiln__rms_rows(name, rows, cols, kiln__part_size_log2(part), wide, &args.shape, &config));
    return launch(stream, part, KERNEL_add_rmsnorm, &config, &args, sizeof args);
}
