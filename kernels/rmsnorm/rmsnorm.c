/* rmsnorm, host side. */
#include "kernels/common/rms.h"
#include "kernels/rmsnorm/rmsnorm_args.h"

extern const kiln_bundle kiln__bundle_rmsnorm;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/rmsnorm/rmsnorm.def"
};

KILN__HOST_SIDE kiln_status rmsnorm(kiln_stream *stream, const kiln_rmsnorm_params *params, size_t params_size,
                                    unsigned part, const char *name) {
    kiln_rmsnorm_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t rows = params->rows, cols = params->cols;
    float eps;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    KILN__TRY(kiln__eps_resolve(name, params->eps, &eps));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t y_stride = params->y_stride ? params->y_stride : cols;
    int64_t x_stride = params->x_stride ? params->x_stride : cols;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, rows, cols, y_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "x", params->x, rows, cols, x_stride, size_log2));
    if (params->weight) KILN__TRY(kiln__tensor_check(name, "weight", params->weight, 1, cols, cols, size_log2));
    KILN__TRY(kiln__in_place_check(name, "y", params->y, y_stride, "x", params->x, x_stride));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_rmsnorm, part, &kiln__bundle_rmsnorm, &module));
    kiln_rmsnorm_args args = {
        .y = params->y,
        .x = params->x,
        .weight = params->weight,
        .y_stride = y_stride,
        .x_stride = x_stride,
        .mean = 1.0f / (float)cols,
        .eps = eps,
    };
    uint32_t wide = kiln__rows_wide((uintptr_t)params->y | (uintptr_t)params->x | (uintptr_t)params->weight, rows,
                                    y_stride | x_stride, size_log2);
    kiln_launch_config config;
    KILN__TRY(kiln__rms_rows(name, rows, cols, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_rmsnorm], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(rmsnorm, part)
KILN__FLOAT_PARTS(FUNCTION)
