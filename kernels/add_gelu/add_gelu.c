/* add_gelu, host side. */
#include "kernels/add_gelu/add_gelu_args.h"
#include "kernels/common/gates.h"
#include "kernels/common/host.h"

extern const kiln_bundle kiln__bundle_add_gelu;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/add_gelu/add_gelu.def"
};

/* The end of the argument struct, copied as it is; each on a cache line of its own. */
typedef struct form {
    _Alignas(64) float bound;
    float coefficients[KILN_ADD_GELU_COEFFICIENTS];
} form;

static const form forms[] = {
    [KILN_GELU_ERF] = {KILN__GATE_GELU_ERF},
    [KILN_GELU_TANH] = {KILN__GATE_GELU_TANH},
    [KILN_GELU_QUICK] = {KILN__GATE_GELU_QUICK},
};
enum { FORMS = sizeof forms / sizeof *forms };

/* All but the shape. */
static inline void set_arguments(kiln_add_gelu_args *args, const kiln_add_gelu_params *params, int64_t y_stride,
                                 int64_t x_stride) {
    args->y = params->y;
    args->x = params->x;
    args->bias = params->bias;
    args->y_stride = y_stride;
    args->x_stride = x_stride;
    memcpy((char *)args + offsetof(kiln_add_gelu_args, bound), &forms[(uint32_t)params->approx],
           sizeof *args - offsetof(kiln_add_gelu_args, bound));
}

/* Every call that is not ordinary, wrong ones and the first one, which loads, among them. */
static kiln_status __attribute__((noinline)) add_gelu_any(kiln_stream *stream, const kiln_add_gelu_params *params,
                                                          size_t params_size, unsigned part, const char *name) {
    kiln_add_gelu_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__sizes_check(name, stream, params->rows, params->cols));
    KILN__REQUIRE((uint32_t)params->approx < FORMS, "%s: approx is %d: must be erf (0), tanh (1) or quick (2)", name,
                  params->approx);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!params->rows || !params->cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t rows = params->rows, cols = params->cols;
    int64_t y_stride = params->y_stride ? params->y_stride : cols;
    int64_t x_stride = params->x_stride ? params->x_stride : cols;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, rows, cols, y_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "x", params->x, rows, cols, x_stride, size_log2));
    if (params->bias) KILN__TRY(kiln__tensor_check(name, "bias", params->bias, 1, cols, cols, size_log2));
    KILN__TRY(kiln__in_place_check(name, "y", params->y, y_stride, "x", params->x, x_stride));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_add_gelu, part, &kiln__bundle_add_gelu, &module));
    kiln_add_gelu_args args = {0};
    set_arguments(&args, params, y_stride, x_stride);
    uint32_t wide = kiln__rows_wide((uintptr_t)params->y | (uintptr_t)params->x | (uintptr_t)params->bias, rows,
                                    y_stride | x_stride, size_log2);
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise(name, rows, cols, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_add_gelu], &config, &args, sizeof args);
}

KILN__HOST_SIDE kiln_status add_gelu(kiln_stream *stream, const kiln_add_gelu_params *params, size_t params_size,
                                     unsigned part, const char *name) {
    if (KILN__UNLIKELY(!kiln__is_current(stream, params, params_size, sizeof *params)))
        return add_gelu_any(stream, params, params_size, part, name);
    const unsigned size_log2 = kiln__part_size_log2(part);
    int64_t cols = params->cols;
    int64_t stride = params->x_stride ? params->x_stride : cols;
    uintptr_t addresses = (uintptr_t)params->y | (uintptr_t)params->x | (uintptr_t)params->bias;
    bool ordinary = kiln__both_set(params->y, params->x) && params->y_stride == params->x_stride &&
                    kiln__is_ordinary(params->rows, cols, stride, addresses, size_log2, KILN__TILE_VECTORS) &&
                    kiln__option(&params->approx) < FORMS;
    if (KILN__UNLIKELY(!ordinary)) return add_gelu_any(stream, params, params_size, part, name);

    const kiln_module *module = kiln__operator_get(stream, KILN__OPERATOR_add_gelu, part);
    if (KILN__UNLIKELY(!module)) return add_gelu_any(stream, params, params_size, part, name);
    kiln_add_gelu_args args;
    kiln_launch_config config;
    set_arguments(&args, params, stride, stride);
    kiln__ordinary_elementwise(params->rows, cols, size_log2, &args.shape, &config);
    return kiln__operator_launch(stream, &module->kernels[KERNEL_add_gelu], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(add_gelu, part)
KILN__FLOAT_PARTS(FUNCTION)
