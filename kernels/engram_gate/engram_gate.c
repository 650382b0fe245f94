/* engram_gate, host side. */
#include "kernels/common/rms.h"
#include "kernels/engram_gate/engram_gate_args.h"
#include <kiln/ops/engram.h>
#define KILN_HOST engram_gate
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

static kiln_status options_check(const char *name, const kiln_engram_gate_params *params, kiln_engram_gate_args *args) {
    KILN__TRY(kiln__eps_resolve(name, params->eps, &args->eps));
    args->norm_eps = params->norm_eps == 0.0f ? 1e-5f : params->norm_eps;
    KILN__REQUIRE(args->norm_eps >= 1e-30f && args->norm_eps <= 1e30f,
                  "%s: norm_eps is %g: must be 0 or from 1e-30 to 1e30", name, (double)params->norm_eps);
    return KILN_OK;
}

static kiln_status engram_gate(kiln_stream *stream, const kiln_engram_gate_params *params, unsigned part,
                               const char *name) {
    int64_t tokens = params->tokens, groups = params->groups, cols = params->cols, all;
    unsigned size_log2 = kiln__part_size_log2(part);
    kiln_engram_gate_args args;
    KILN__TRY(kiln__size_check(name, "tokens", tokens, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "groups", groups, KILN_GRID_LIMIT_X));
    KILN__TRY(kiln__size_check(name, "cols", cols, UINT32_MAX - KILN_BLOCK * KILN_VECTOR_BYTES));
    KILN__TRY(options_check(name, params, &args));
    if (KILN__UNLIKELY(!tokens || !groups || !cols)) return KILN_OK;

    all = groups * cols;
    kiln__tensor tensors[] = {kiln__tensor_of("y", params->y, params->y_stride),
                              kiln__tensor_of("key", params->key, params->key_stride),
                              kiln__tensor_of("query", params->query, params->query_stride),
                              kiln__optional_row("key_weight", params->key_weight),
                              kiln__optional_row("query_weight", params->query_weight),
                              kiln__optional_row("norm_weight", params->norm_weight)};
    kiln__tensor value = kiln__tensor_of("value", params->value, params->value_stride);
    kiln__tensor normed = kiln__tensor_of("normed", params->normed, params->normed_stride);
    uint32_t wide, value_wide, normed_wide = 1, groups_wide = groups == 1 || !(cols << size_log2 & 15);
    KILN__TRY(kiln__tensors_check(name, tensors, 6, tokens, all, size_log2, &wide));
    KILN__TRY(kiln__tensors_check(name, &value, 1, tokens, cols, size_log2, &value_wide));
    if (normed.data) KILN__TRY(kiln__tensors_check(name, &normed, 1, tokens, all, size_log2, &normed_wide));
    KILN__TRY(kiln__tensor_in_place_check(name, &tensors[0], &tensors[2]));
    KILN__REQUIRE(params->y != params->normed, "%s: normed is y: must be a tensor of its own", name);

    args.y = params->y;
    args.normed = params->normed;
    args.key = params->key;
    args.query = params->query;
    args.value = params->value;
    args.key_weight = params->key_weight;
    args.query_weight = params->query_weight;
    args.norm_weight = params->norm_weight;
    args.y_stride = tensors[0].stride;
    args.normed_stride = normed.stride;
    args.key_stride = tensors[1].stride;
    args.query_stride = tensors[2].stride;
    args.value_stride = value.stride;
    args.mean = 1.0f / (float)cols;
    args.scale = (float)(1 / __builtin_sqrt((double)cols));
    kiln_launch_config config;
    KILN__TRY(kiln__rms_rows(name, tokens, cols, size_log2, wide & value_wide & normed_wide & groups_wide, &args.shape,
                             &config));
    args.shape.cols = all;
    config.grid[0] = (uint32_t)groups;
    return launch(stream, part, KERNEL_engram_gate, &config, &args, sizeof args);
}
