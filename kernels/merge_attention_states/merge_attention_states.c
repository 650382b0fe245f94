/* merge_attention_states, host side: a row is a head of a token, and one tile. */
#include "kernels/merge_attention_states/merge_attention_states_args.h"
#include <kiln/ops/attention.h>
#define KILN_HOST merge_attention_states
#include "kernels/common/operator.h"

static kiln_status check_sizes(const char *name, const kiln_merge_attention_states_params *params) {
    KILN__TRY(kiln__size_check(name, "parts", params->parts, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "tokens", params->tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "heads", params->heads, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "head_dim", params->head_dim, INT32_MAX));
    KILN__REQUIRE(params->tokens * params->heads <= INT32_MAX, "%s: tokens * heads is %lld: must be at most %d", name,
                  (long long)(params->tokens * params->heads), INT32_MAX);
    return KILN_OK;
}

static kiln_status merge_attention_states(kiln_stream *stream, const kiln_merge_attention_states_params *params,
                                          unsigned part, const char *name) {
    KILN__TRY(check_sizes(name, params));
    int64_t parts = params->parts, tokens = params->tokens, heads = params->heads, head_dim = params->head_dim;
    if (KILN__UNLIKELY(!tokens || !heads || !head_dim)) return KILN_OK;
    KILN__REQUIRE(parts, "%s: parts is 0: must be at least 1", name);

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t x_rows, lse_rows;
    bool overflow = __builtin_mul_overflow(parts, tokens, &x_rows) || __builtin_mul_overflow(parts, heads, &lse_rows);
    KILN__REQUIRE(!overflow, "%s: parts is %lld: is too large", name, (long long)parts);
    kiln__tensor out = kiln__tensor_of("out", params->out, params->out_stride),
                 x = kiln__tensor_of("x", params->x, params->x_stride);
    uint32_t out_wide, x_wide;
    KILN__TRY(kiln__tensors_check(name, &out, 1, tokens, heads * head_dim, size_log2, &out_wide));
    KILN__TRY(kiln__tensors_check(name, &x, 1, x_rows, heads * head_dim, size_log2, &x_wide));
    KILN__TRY(kiln__tensor_in_place_check(name, &out, &x));
    KILN__TRY(kiln__tensor_check(name, "x_lse", params->x_lse, lse_rows, tokens, tokens, 2));
    if (params->lse) KILN__TRY(kiln__tensor_check(name, "lse", params->lse, heads, tokens, tokens, 2));

    /* A thread for two vectors of a head, or one where there are few, up to a subgroup. */
    uint64_t vectors = kiln__vectors(head_dim, size_log2);
    unsigned lanes_log2 = 0, each_log2 = kiln__thread_vectors_log2_of(tokens * heads, vectors, 1);
    while (lanes_log2 < KILN_SUBGROUP_LOG2 && vectors >> lanes_log2 > 1u << each_log2)
        lanes_log2++;
    const kiln_merge_attention_states_args args = {
        .out = params->out,
        .lse = params->lse,
        .x = params->x,
        .x_lse = params->x_lse,
        .shape = {.rows = tokens * heads,
                  .cols = head_dim,
                  .tile = (uint32_t)head_dim,
                  .lanes_log2 = lanes_log2,
                  .wide = out_wide && x_wide && kiln__rows_wide(0, 2, head_dim, size_log2)},
        .out_stride = out.stride,
        .x_stride = x.stride,
        .x_part_stride = (uint64_t)tokens * (uint64_t)x.stride,
        .parts = (uint32_t)parts,
        .tokens = (uint32_t)tokens,
        .heads = (uint32_t)heads,
    };
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(tokens * heads, lanes_log2), &config));
    return launch(stream, part, KERNEL_merge_attention_states, &config, &args, sizeof args);
}
