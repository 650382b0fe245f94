/* add_gelu, host side. */
#include "kernels/add_gelu/add_gelu_args.h"
#include "kernels/common/gates.h"
#include <kiln/ops/elementwise.h>
#define KILN_HOST add_gelu
#include "kernels/common/operator.h"

/* The last fields of the argument struct, copied as they are, but that no last coefficient is 0, whose product with the
 * infinite square of a great t would be NaN. */
typedef struct form {
    float bound;
    float coefficients[KILN_ADD_GELU_COEFFICIENTS];
} form;

static const form forms[] = {
    [KILN_GELU_ERF] = {KILN__GATE_GELU_ERF},
    [KILN_GELU_TANH] = {KILN__GATE_GELU_TANH},
    [KILN_GELU_QUICK] = {KILN__GATE_GELU_QUICK},
};
enum { FORMS = sizeof forms / sizeof *forms };

static kiln_status add_gelu(kiln_stream *stream, const kiln_add_gelu_params *params, unsigned part, const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    KILN__REQUIRE((uint32_t)params->approx < FORMS, "%s: approx is %d: must be erf (0), tanh (1) or quick (2)", name,
                  params->approx);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    kiln__tensor tensors[] = {kiln__tensor_of("y", params->y, params->y_stride),
                              kiln__tensor_of("x", params->x, params->x_stride),
                              kiln__optional_row("bias", params->bias)};
    uint32_t wide;
    KILN__TRY(kiln__tensors_check(name, tensors, 3, rows, cols, kiln__part_size_log2(part), &wide));
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[0], &tensors[1]));
    kiln_add_gelu_args args = {
        .y = params->y,
        .x = params->x,
        .bias = params->bias,
        .y_stride = tensors[0].stride,
        .x_stride = tensors[1].stride,
    };
    memcpy(&args.bound, &forms[params->approx], sizeof(form));
    if (params->approx != KILN_GELU_ERF) args.coefficients[KILN_ADD_GELU_COEFFICIENTS - 1] = 0x1p-126f;
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise_pairs(name, rows, cols, kiln__part_size_log2(part), wide, &args.shape, &config));
    return launch(stream, part, KERNEL_add_gelu, &config, &args, sizeof args);
}
