/* silu_mul, host side: without up, gate has both halves of each row. */
#include "kernels/common/gates.h"
#include "kernels/silu_mul/silu_mul_args.h"
#include <kiln/ops/elementwise.h>
#define KILN_HOST silu_mul
#include "kernels/common/operator.h"

/* Fields of the argument struct that are copied as they are. */
typedef struct activation {
    float bound;
    float coefficients[KILN_SILU_MUL_COEFFICIENTS];
} activation;

static const activation activations[] = {
    [KILN_GLU_SILU] = {KILN__GATE_SILU},
    [KILN_GLU_GELU_TANH] = {KILN__GATE_GELU_TANH},
};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

static kiln_status silu_mul(kiln_stream *stream, const kiln_silu_mul_params *params, unsigned part, const char *name) {
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    KILN__REQUIRE((uint32_t)params->activation < ACTIVATIONS, "%s: activation is %d: must be silu (0) or gelu_tanh (1)",
                  name, params->activation);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__REQUIRE(params->up || !params->up_stride, "%s: up_stride is %lld: must be 0 without up", name,
                  (long long)params->up_stride);
    KILN__TRY(kiln__size_check(name, "cols", cols, INT64_MAX >> 4));
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln__tensor y = kiln__tensor_of("y", params->y, params->y_stride),
                 gate = kiln__tensor_of("gate", params->gate, params->gate_stride);
    kiln__tensor up = kiln__tensor_of("up", params->up, params->up_stride);
    uint32_t y_wide, gate_wide, up_wide;
    KILN__TRY(kiln__tensors_check(name, &y, 1, rows, cols, size_log2, &y_wide));
    KILN__TRY(kiln__tensors_check(name, &gate, 1, rows, params->up ? cols : 2 * cols, size_log2, &gate_wide));
    if (!params->up) {
        up.data = (const char *)params->gate + ((size_t)cols << size_log2);
        up.stride = gate.stride;
    }
    KILN__TRY(kiln__tensors_check(name, &up, 1, rows, cols, size_log2, &up_wide));
    KILN__TRY(kiln__tensor_in_place_check(name, &y, &gate));
    KILN__TRY(kiln__tensor_in_place_check(name, &y, &up));
    kiln_silu_mul_args args = {
        .y = params->y,
        .gate = params->gate,
        .up = up.data,
        .y_stride = y.stride,
        .gate_stride = gate.stride,
        .up_stride = up.stride,
    };
    memcpy(&args.bound, &activations[params->activation], sizeof(activation));
    kiln_launch_config config;
    uint32_t wide = y_wide & gate_wide & up_wide;
    KILN__TRY(kiln__elementwise(name, rows, cols, size_log2, wide, &args.shape, &config));
    return launch(stream, part, KERNEL_silu_mul, &config, &args, sizeof args);
}
