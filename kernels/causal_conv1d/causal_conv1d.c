/* causal_conv1d, host side. */
#include "kernels/causal_conv1d/causal_conv1d_args.h"
#include <kiln/ops/conv.h>
#define KILN_HOST causal_conv1d
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

enum { DILATION = 1 << 16 }; /* at most */

/* Checks the sizes and gives the rows of a state. */
static kiln_status sizes_check(const char *name, const kiln_causal_conv1d_params *params, int64_t batch,
                               int64_t dilation, int64_t *out_history) {
    KILN__TRY(kiln__size_check(name, "tokens", params->tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "channels", params->channels, INT64_MAX >> 4));
    KILN__TRY(kiln__size_check(name, "batch", params->batch, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "width", params->width, KILN_CONV_TAPS));
    KILN__TRY(kiln__size_check(name, "dilation", params->dilation, DILATION));
    KILN__TRY(kiln__size_check(name, "states", params->states, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "history", params->history, INT32_MAX));
    const int64_t reach = (params->width - 1) * dilation;
    *out_history = params->history ? params->history : reach;
    KILN__REQUIRE(*out_history >= reach, "%s: history is %lld: must be at least (width - 1) * dilation, %lld", name,
                  (long long)params->history, (long long)reach);
    KILN__REQUIRE(params->cu_seqlens || params->tokens % batch == 0,
                  "%s: batch is %lld: must divide tokens, which is %lld, without cu_seqlens", name, (long long)batch,
                  (long long)params->tokens);
    KILN__REQUIRE(params->activation == KILN_CONV_NONE || params->activation == KILN_CONV_SILU,
                  "%s: activation is %d: must be none (0) or silu (1)", name, params->activation);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    return KILN_OK;
}

/* Checks what describes the sequences: their states, and where each begins if the caller says so. */
static kiln_status sequences_check(const char *name, const kiln_causal_conv1d_params *params, int64_t batch,
                                   int64_t states, int64_t history, unsigned size_log2, uint32_t *wide) {
    const void *const tensors[] = {params->initial_states, params->final_states};
    KILN__REQUIRE(states >= batch || params->state_indices,
                  "%s: states is %lld: must be at least batch, which is %lld, without state_indices", name,
                  (long long)states, (long long)batch);
    for (int i = 0; i < 2; i++) {
        if (!tensors[i] || !history) continue;
        KILN__TRY(kiln__tensor_check(name, i ? "final_states" : "initial_states", tensors[i], states * history,
                                     params->channels, params->channels, size_log2));
        *wide &= kiln__rows_wide((uintptr_t)tensors[i], 2, params->channels, size_log2);
    }
    if (params->cu_seqlens)
        KILN__TRY(kiln__tensor_check(name, "cu_seqlens", params->cu_seqlens, 1, batch + 1, batch + 1, 2));
    if (params->state_indices)
        KILN__TRY(kiln__tensor_check(name, "state_indices", params->state_indices, 1, batch, batch, 2));
    return KILN_OK;
}

/* The launch over a number of rows. Each thread takes a vector, or an element where rows are not whole vectors. */
static kiln_status grid_of(const char *name, uint64_t rows, int64_t channels, unsigned size_log2, uint32_t wide,
                           kiln_shape *shape, kiln_launch_config *config) {
    unsigned vector_log2 = 4 - size_log2;
    if (!wide || channels & ((1 << vector_log2) - 1)) wide = vector_log2 = 0;
    uint64_t parts = (uint64_t)channels >> vector_log2;
    unsigned lanes_log2 = parts > 1 ? 64 - (unsigned)__builtin_clzll(parts - 1) : 0;
    if (lanes_log2 > KILN_BLOCK_LOG2) lanes_log2 = KILN_BLOCK_LOG2;
    *shape = (kiln_shape){.rows = (int64_t)rows,
                          .cols = channels,
                          .tile = 1u << (vector_log2 + lanes_log2),
                          .lanes_log2 = lanes_log2,
                          .wide = wide};
    return kiln__grid(name, (parts + (1u << lanes_log2) - 1) >> lanes_log2, kiln__blocks((int64_t)rows, lanes_log2),
                      config);
}

static kiln_status causal_conv1d(kiln_stream *stream, const kiln_causal_conv1d_params *params, unsigned part,
                                 const char *name) {
    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t tokens = params->tokens, channels = params->channels, batch = params->batch ? params->batch : 1;
    int64_t dilation = params->dilation ? params->dilation : 1, states = params->states ? params->states : batch;
    int64_t history;
    uint32_t wide, residual_wide = 1;
    KILN__TRY(sizes_check(name, params, batch, dilation, &history));
    if (KILN__UNLIKELY(!tokens || !channels || !params->width)) return KILN_OK;

    kiln__tensor tensors[] = {kiln__tensor_of("y", params->y, params->y_stride),
                              kiln__tensor_of("x", params->x, params->x_stride),
                              kiln__optional_row("bias", params->bias)};
    kiln__tensor weight = kiln__tensor_of("weight", params->weight, 0);
    kiln__tensor residual = kiln__tensor_of("residual", params->residual, params->residual_stride);
    uint32_t weight_wide;
    KILN__TRY(kiln__tensors_check(name, tensors, 3, tokens, channels, size_log2, &wide));
    KILN__TRY(kiln__tensors_check(name, &weight, 1, params->width, channels, size_log2, &weight_wide));
    if (residual.data) {
        KILN__TRY(kiln__tensors_check(name, &residual, 1, tokens, channels, size_log2, &residual_wide));
        KILN__TRY(kiln__tensor_in_place_check(name, &tensors[0], &residual));
    }
    KILN__REQUIRE(params->y != params->x, "%s: y is x: must be another tensor", name);
    wide &= weight_wide & residual_wide;
    KILN__TRY(sequences_check(name, params, batch, states, history, size_log2, &wide));

    const bool single = !params->cu_seqlens && tokens == batch, keeps = params->final_states && history;
    kiln_causal_conv1d_args args = {
        .y = params->y,
        .final_states = keeps && single ? params->final_states : NULL,
        .x = params->x,
        .weight = params->weight,
        .bias = params->bias,
        .residual = params->residual,
        .initial_states = params->initial_states,
        .state_indices = params->state_indices,
        .varlen = {params->cu_seqlens, (uint32_t)batch, (uint32_t)(tokens / batch)},
        .y_stride = tensors[0].stride,
        .x_stride = tensors[1].stride,
        .residual_stride = residual.stride,
        .states = states,
        .tokens = (uint32_t)tokens,
        .history = (uint32_t)history,
        .width = (uint32_t)params->width,
        .dilation = (uint32_t)dilation,
        .activation = (uint32_t)params->activation,
    };
    kiln_launch_config config;
    KILN__TRY(grid_of(name, (uint64_t)tokens, channels, size_log2, wide, &args.shape, &config));
    KILN__TRY(launch(stream, part, KERNEL_causal_conv1d, &config, &args, sizeof args));
    if (!keeps || single) return KILN_OK;
    args.final_states = params->final_states;
    KILN__TRY(grid_of(name, (uint64_t)batch, channels, size_log2, wide, &args.shape, &config));
    return launch(stream, part, KERNEL_causal_conv1d_states, &config, &args, sizeof args);
}
