/* add_gelu, host side. */
#include "kernels/add_gelu/add_gelu_args.h"
#include "kernels/common/host.h"

extern const kiln_bundle kiln__bundle_add_gelu;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/add_gelu/add_gelu.def"
};

/* The forms as t sigmoid(t P(t^2)); see kiln_gated. tanh and quick are so by definition. For erf, t P(t^2) is fitted to
 * ln(F / (1 - F)), F the normal distribution: below 1e-7 in the result, and 2e-4 of it where it goes to 0. */
static const struct {
    float bound;
    float coefficients[KILN_ADD_GELU_COEFFICIENTS];
} forms[] = {
    [KILN_GELU_ERF] = {5.8f,
                       {0x1.9884a4p+0f, 0x1.2995bap-4f, -0x1.b116eap-15f, -0x1.e7fb1ep-14f, 0x1.315dd2p-17f,
                        -0x1.9d7ad8p-22f, 0x1.495728p-27f, -0x1.1f9992p-33f, 0x1.a799f2p-41f}},
    [KILN_GELU_TANH] = {9.7f, {1.59576912f, 0.0713548163f}}, /* 2 sqrt(2 / pi), and 0.044715 times it */
    [KILN_GELU_QUICK] = {47.0f, {1.702f}},
};

KILN__HOST_SIDE kiln_status add_gelu(kiln_stream *stream, const kiln_add_gelu_params *params, unsigned part,
                                     const char *name,
                                     kiln_status (*again)(kiln_stream *, const kiln_add_gelu_params *, size_t)) {
    KILN__TRY(kiln__sizes_check(name, stream, params->rows, params->cols));
    KILN__REQUIRE((uint32_t)params->approx < sizeof forms / sizeof *forms,
                  "%s: approx is %d: must be erf (0), tanh (1) or quick (2)", name, params->approx);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!params->rows || !params->cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t rows = params->rows, cols = params->cols;
    int64_t y_stride = params->y_stride ? params->y_stride : cols;
    int64_t x_stride = params->x_stride ? params->x_stride : cols;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, rows, cols, y_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "x", params->x, rows, cols, x_stride, size_log2));
    if (params->bias) KILN__TRY(kiln__tensor_check(name, "bias", params->bias, 1, cols, cols, size_log2));
    KILN__TRY(kiln__in_place_check(name, "x", params->y, y_stride, params->x, x_stride));

    const kiln_module *module = kiln__operator_get(stream, KILN__OPERATOR_add_gelu, part);
    if (KILN__UNLIKELY(!module)) return again(stream, params, sizeof *params);
    kiln_add_gelu_args args = {.y = params->y,
                               .x = params->x,
                               .bias = params->bias,
                               .y_stride = y_stride,
                               .x_stride = x_stride,
                               .bound = forms[params->approx].bound};
    memcpy(args.coefficients, forms[params->approx].coefficients, sizeof args.coefficients);
    uint32_t wide = kiln__tensor_wide(params->y, rows, y_stride, size_log2) &
                    kiln__tensor_wide(params->x, rows, x_stride, size_log2) &
                    kiln__tensor_wide(params->bias, 1, cols, size_log2);
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise(name, rows, cols, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_add_gelu], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(add_gelu, part)
KILN__FLOAT_PARTS(FUNCTION)
