/* sample, host side. */
#include "kernels/common/host.h"
#include "kernels/sample/sample_args.h"

extern const kiln_bundle kiln__bundle_sample;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/sample/sample.def"
};

/* Weights are at most 2^40: their sum fits in 63 bits. */
enum { COLS_MOST = 1 << 22 };

KILN__HOST_SIDE kiln_status sample(kiln_stream *stream, const kiln_sample_params *params, size_t params_size,
                                   unsigned part, const char *name) {
    kiln_sample_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    KILN__REQUIRE(cols <= COLS_MOST, "%s: cols is %lld: is too large: at most %d", name, (long long)cols, COLS_MOST);
    KILN__REQUIRE(params->top_k >= 0, "%s: top_k is %lld: must not be negative", name, (long long)params->top_k);
    KILN__REQUIRE(params->temperature == 0.0f || (params->temperature >= 1e-6f && params->temperature <= 1e6f),
                  "%s: temperature is %g: must be 0 or from 1e-6 to 1e6", name, (double)params->temperature);
    KILN__REQUIRE(params->top_p >= 0.0f && params->top_p <= 1.0f, "%s: top_p is %g: must be from 0 to 1", name,
                  (double)params->top_p);
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t x_stride = params->x_stride ? params->x_stride : cols;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, 1, rows, rows, 2));
    KILN__TRY(kiln__tensor_check(name, "x", params->x, rows, cols, x_stride, size_log2));
    if (params->draws) KILN__TRY(kiln__tensor_check(name, "draws", params->draws, 1, rows, rows, 3));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_sample, part, &kiln__bundle_sample, &module));
    const kiln_sample_args args = {
        .y = params->y,
        .x = params->x,
        .draws = params->draws,
        .rows = rows,
        .x_stride = x_stride,
        .seed = (uint64_t)params->seed,
        .cols = (uint32_t)cols,
        .top_k = params->top_k < cols ? (uint32_t)params->top_k : 0,
        .inverse_temperature = params->temperature == 0.0f ? 0.0f : 1.0f / params->temperature,
        .top_p = params->top_p == 0.0f ? 1.0f : params->top_p,
    };
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, (uint64_t)rows, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_sample], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(sample, part)
KILN__FLOAT_PARTS(FUNCTION)
