/* silu_mul, host side: without up, gate has both halves of each row. */
#include "kernels/common/gates.h"
#include "kernels/common/host.h"
#include "kernels/silu_mul/silu_mul_args.h"

extern const kiln_bundle kiln__bundle_silu_mul;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/silu_mul/silu_mul.def"
};

/* The end of the argument struct, copied as it is. */
typedef struct activation {
    float bound;
    float coefficients[KILN_SILU_MUL_COEFFICIENTS];
    uint32_t padding;
} activation;

static const activation activations[] = {
    [KILN_GLU_SILU] = {KILN__GATE_SILU, 0},
    [KILN_GLU_GELU_TANH] = {KILN__GATE_GELU_TANH, 0},
};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

/* All but the shape. */
static inline void set_arguments(kiln_silu_mul_args *args, const kiln_silu_mul_params *params, const void *up,
                                 int64_t y_stride, int64_t gate_stride, int64_t up_stride) {
    args->y = params->y;
    args->gate = params->gate;
    args->up = up;
    args->y_stride = y_stride;
    args->gate_stride = gate_stride;
    args->up_stride = up_stride;
    memcpy((char *)args + offsetof(kiln_silu_mul_args, bound), &activations[(uint32_t)params->activation],
           sizeof *args - offsetof(kiln_silu_mul_args, bound));
}

/* Every call that is not ordinary, wrong ones and the first one, which loads, among them. */
static kiln_status __attribute__((noinline)) silu_mul_any(kiln_stream *stream, const kiln_silu_mul_params *params,
                                                          size_t params_size, unsigned part, const char *name) {
    kiln_silu_mul_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__sizes_check(name, stream, params->rows, params->cols));
    KILN__REQUIRE((uint32_t)params->activation < ACTIVATIONS, "%s: activation is %d: must be silu (0) or gelu_tanh (1)",
                  name, params->activation);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__REQUIRE(params->up || !params->up_stride, "%s: up_stride is %lld: must be 0 without up", name,
                  (long long)params->up_stride);
    if (KILN__UNLIKELY(!params->rows || !params->cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(kiln__size_check(name, "cols", cols, INT64_MAX >> 4));
    int64_t gate_cols = params->up ? cols : 2 * cols;
    int64_t y_stride = params->y_stride ? params->y_stride : cols;
    int64_t gate_stride = params->gate_stride ? params->gate_stride : gate_cols;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, rows, cols, y_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "gate", params->gate, rows, gate_cols, gate_stride, size_log2));
    const void *up = (const char *)params->gate + ((size_t)cols << size_log2);
    int64_t up_stride = gate_stride;
    if (params->up) {
        up = params->up;
        up_stride = params->up_stride ? params->up_stride : cols;
        KILN__TRY(kiln__tensor_check(name, "up", up, rows, cols, up_stride, size_log2));
    }
    KILN__TRY(kiln__in_place_check(name, "y", params->y, y_stride, "gate", params->gate, gate_stride));
    KILN__TRY(kiln__in_place_check(name, "y", params->y, y_stride, "up", up, up_stride));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_silu_mul, part, &kiln__bundle_silu_mul, &module));
    kiln_silu_mul_args args = {0};
    set_arguments(&args, params, up, y_stride, gate_stride, up_stride);
    uint32_t wide = kiln__rows_wide((uintptr_t)params->y | (uintptr_t)params->gate | (uintptr_t)up, rows,
                                    y_stride | gate_stride | up_stride, size_log2);
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise(name, rows, cols, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_silu_mul], &config, &args, sizeof args);
}

KILN__HOST_SIDE kiln_status silu_mul(kiln_stream *stream, const kiln_silu_mul_params *params, size_t params_size,
                                     unsigned part, const char *name) {
    if (KILN__UNLIKELY(!kiln__is_current(stream, params, params_size, sizeof *params)))
        return silu_mul_any(stream, params, params_size, part, name);
    const unsigned size_log2 = kiln__part_size_log2(part);
    int64_t cols = params->cols;
    int64_t stride = params->gate_stride ? params->gate_stride : cols;
    uintptr_t addresses = (uintptr_t)params->y | (uintptr_t)params->gate | (uintptr_t)params->up;
    bool ordinary = kiln__both_set(params->y, params->gate) && params->up && params->y_stride == params->gate_stride &&
                    params->up_stride == params->gate_stride &&
                    kiln__is_ordinary(params->rows, cols, stride, addresses, size_log2, KILN__TILE_VECTORS) &&
                    kiln__option(&params->activation) < ACTIVATIONS;
    if (KILN__UNLIKELY(!ordinary)) return silu_mul_any(stream, params, params_size, part, name);

    const kiln_module *module = kiln__operator_get(stream, KILN__OPERATOR_silu_mul, part);
    if (KILN__UNLIKELY(!module)) return silu_mul_any(stream, params, params_size, part, name);
    kiln_silu_mul_args args;
    kiln_launch_config config;
    set_arguments(&args, params, params->up, stride, stride, stride);
    kiln__ordinary_elementwise(params->rows, cols, size_log2, &args.shape, &config);
    return kiln__operator_launch(stream, &module->kernels[KERNEL_silu_mul], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(silu_mul, part)
KILN__FLOAT_PARTS(FUNCTION)
