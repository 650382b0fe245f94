/* add_rmsnorm, host side. */
#include "kernels/add_rmsnorm/add_rmsnorm_args.h"
#include "kernels/common/rms.h"

extern const kiln_bundle kiln__bundle_add_rmsnorm;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/add_rmsnorm/add_rmsnorm.def"
};

/* Each element is read, in all inputs, before its results are written, by the same thread: an output may be an input
 * where their rows lie on each other, and the outputs may not be one tensor. */
static kiln_status check_places(const char *name, const kiln_add_rmsnorm_args *args) {
    KILN__TRY(kiln__in_place_check(name, "y", args->y, args->y_stride, "x", args->x, args->x_stride));
    KILN__TRY(
        kiln__in_place_check(name, "y", args->y, args->y_stride, "residual", args->residual, args->residual_stride));
    KILN__TRY(kiln__in_place_check(name, "sum", args->sum, args->sum_stride, "x", args->x, args->x_stride));
    KILN__TRY(kiln__in_place_check(name, "sum", args->sum, args->sum_stride, "residual", args->residual,
                                   args->residual_stride));
    KILN__REQUIRE(args->y != args->sum, "%s: y and sum are one tensor: must be two", name);
    return KILN_OK;
}

KILN__HOST_SIDE kiln_status add_rmsnorm(kiln_stream *stream, const kiln_add_rmsnorm_params *params, size_t params_size,
                                        unsigned part, const char *name) {
    kiln_add_rmsnorm_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t rows = params->rows, cols = params->cols;
    float eps;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    KILN__TRY(kiln__eps_resolve(name, params->eps, &eps));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln_add_rmsnorm_args args = {
        .y = params->y,
        .sum = params->sum,
        .x = params->x,
        .residual = params->residual,
        .weight = params->weight,
        .y_stride = params->y_stride ? params->y_stride : cols,
        .sum_stride = params->sum_stride ? params->sum_stride : cols,
        .x_stride = params->x_stride ? params->x_stride : cols,
        .residual_stride = params->residual_stride ? params->residual_stride : cols,
        .mean = 1.0f / (float)cols,
        .eps = eps,
    };
    KILN__TRY(kiln__tensor_check(name, "y", args.y, rows, cols, args.y_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "sum", args.sum, rows, cols, args.sum_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "x", args.x, rows, cols, args.x_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "residual", args.residual, rows, cols, args.residual_stride, size_log2));
    if (args.weight) KILN__TRY(kiln__tensor_check(name, "weight", args.weight, 1, cols, cols, size_log2));
    KILN__TRY(check_places(name, &args));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_add_rmsnorm, part, &kiln__bundle_add_rmsnorm, &module));
    uintptr_t addresses =
        (uintptr_t)args.y | (uintptr_t)args.sum | (uintptr_t)args.x | (uintptr_t)args.residual | (uintptr_t)args.weight;
    int64_t strides = args.y_stride | args.sum_stride | args.x_stride | args.residual_stride;
    uint32_t wide = kiln__rows_wide(addresses, rows, strides, size_log2);
    kiln_launch_config config;
    KILN__TRY(kiln__rms_rows(name, rows, cols, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_add_rmsnorm], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(add_rmsnorm, part)
KILN__FLOAT_PARTS(FUNCTION)
