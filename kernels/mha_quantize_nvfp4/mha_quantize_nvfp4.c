/* mha_quantize_nvfp4, host side: up to three launches. */
#include <kiln/ops/attention.h>

#define KILN_HOST mha_quantize_nvfp4
#include "kernels/common/operator.h"

#include "kernels/common/attention/attention_nvfp4_host.h"
#include "kernels/common/attention/mha_quantize_host.h"
#include "kernels/mha_quantize_nvfp4/mha_quantize_nvfp4_args.h"

/* Whether nothing is to be written for q, and for k and v. */
static bool lacks_queries(const kiln_mha_quantize_nvfp4_params *params) {
    return !params->tokens || !params->heads || !params->head_dim;
}
static bool lacks_keys(const kiln_mha_quantize_nvfp4_params *params) {
    return !params->batch || !params->kv_heads || !params->head_dim;
}

static kiln_status check_sizes(const char *name, const kiln_mha_quantize_nvfp4_params *params) {
    KILN__TRY(kiln__size_check(name, "tokens", params->tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "kv_tokens", params->kv_tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "batch", params->batch, 1 << 24));
    KILN__TRY(kiln__size_check(name, "heads", params->heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "kv_heads", params->kv_heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "head_dim", params->head_dim, KILN_ATTENTION_DIM));
    KILN__TRY(kiln__size_check(name, "head_blocks", params->head_blocks, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "v_blocks", params->v_blocks, INT32_MAX));
    return KILN_OK;
}

static kiln_status check_queries(const char *name, const kiln_mha_quantize_nvfp4_params *params, unsigned size_log2,
                                 kiln_mha_quantize_nvfp4_args *args) {
    kiln_mha_quantize_args *plain = &args->plain;
    const int64_t width = params->heads * params->head_dim;
    plain->q_stride = params->q_stride ? params->q_stride : width;
    KILN__TRY(kiln__tensor_check(name, "q", params->q, params->tokens, width, plain->q_stride, size_log2));
    KILN__TRY(kiln__nvfp4_blocks_check(name, "q_codes", params->q_codes, "q_block_scales", params->q_block_scales,
                                       params->tokens * params->heads, args->head_blocks));
    KILN__TRY(kiln__packed_check(name, "q_scales", params->q_scales, true, params->heads, params->tokens));
    plain->q_codes = params->q_codes;
    plain->q = params->q;
    plain->q_scales = params->q_scales;
    plain->q_scale_rows = plain->tokens = (uint32_t)params->tokens;
    plain->heads = (uint32_t)params->heads;
    plain->wide &= kiln__rows_wide((uintptr_t)params->q, params->tokens, plain->q_stride, size_log2);
    args->q_blocks = params->q_block_scales;
    return KILN_OK;
}

static kiln_status check_keys(const char *name, const kiln_mha_quantize_nvfp4_params *params, unsigned size_log2,
                              kiln_mha_quantize_nvfp4_args *args) {
    kiln_mha_quantize_args *plain = &args->plain;
    const int64_t channels = params->batch * params->kv_heads, size = params->head_dim, width = params->kv_heads * size;
    int64_t v_blocks = params->v_blocks;
    KILN__TRY(cut(name, CUT_OF(params), plain));
    KILN__TRY(kiln__nvfp4_value_blocks_check(name, params->kv_tokens, params->batch, &v_blocks));
    plain->k_stride = params->k_stride ? params->k_stride : width;
    plain->v_stride = params->v_stride ? params->v_stride : width;
    if (params->kv_tokens) {
        KILN__TRY(kiln__tensor_check(name, "k", params->k, params->kv_tokens, width, plain->k_stride, size_log2));
        KILN__TRY(kiln__tensor_check(name, "v", params->v, params->kv_tokens, width, plain->v_stride, size_log2));
        KILN__TRY(kiln__nvfp4_blocks_check(name, "k_codes", params->k_codes, "k_block_scales", params->k_block_scales,
                                           params->kv_tokens * params->kv_heads, args->head_blocks));
        KILN__TRY(kiln__packed_check(name, "k_scales", params->k_scales, true, params->kv_heads, params->kv_tokens));
    }
    KILN__TRY(kiln__nvfp4_blocks_check(name, "v_codes", params->v_codes, "v_block_scales", params->v_block_scales,
                                       width, v_blocks));
    KILN__TRY(kiln__packed_check(name, "v_scales", params->v_scales, true, channels, size));
    KILN__TRY(kiln__packed_check(name, "k_means", params->k_means, true, channels, size));
    KILN__TRY(kiln__packed_check(name, "v_means", params->v_means, false, channels, size));
    KILN__TRY(kiln__packed_check(name, "cu_seqlens_k", params->cu_seqlens_k, false, 1, params->batch + 1));
    KILN__TRY(kiln__packed_check(name, "seqlens_k", params->seqlens_k, false, 1, params->batch));
    plain->k_codes = params->k_codes;
    plain->v_codes = params->v_codes;
    plain->k_scales = params->k_scales;
    plain->v_scales = params->v_scales;
    plain->k_means = params->k_means;
    plain->v_means = params->v_means;
    plain->k = params->k;
    plain->v = params->v;
    plain->cu_seqlens_k = params->cu_seqlens_k;
    plain->seqlens_k = params->seqlens_k;
    plain->k_scale_rows = plain->kv_tokens = (uint32_t)params->kv_tokens;
    plain->batch = (uint32_t)params->batch;
    plain->kv_heads = (uint32_t)params->kv_heads;
    plain->wide &= kiln__rows_wide((uintptr_t)params->k | (uintptr_t)params->v, params->kv_tokens,
                                   plain->k_stride | plain->v_stride, size_log2);
    args->k_blocks = params->k_block_scales;
    args->v_blocks = params->v_block_scales;
    args->value_blocks = (uint32_t)v_blocks;
    return KILN_OK;
}

static kiln_status mha_quantize_nvfp4(kiln_stream *stream, const kiln_mha_quantize_nvfp4_params *params, unsigned part,
                                      const char *name) {
    const unsigned size_log2 = kiln__part_size_log2(part);
    kiln_mha_quantize_nvfp4_args args = {.plain = {.head_dim = (uint32_t)params->head_dim}};
    kiln_mha_quantize_args *plain = &args.plain;
    kiln_launch_config channels, join, codes;
    int64_t head_blocks = params->head_blocks;
    KILN__TRY(check_sizes(name, params));
    const bool queries = !lacks_queries(params), keys = !lacks_keys(params);
    if (KILN__UNLIKELY(!queries && !keys)) return KILN_OK;
    KILN__TRY(kiln__nvfp4_head_blocks_check(name, params->head_dim, &head_blocks));
    args.head_blocks = (uint32_t)head_blocks;
    plain->wide = params->head_dim % KILN_MHA_QUANTIZE_PIECE == 0;
    plain->columns_log2 = columns_log2(params->head_dim);
    if (queries) KILN__TRY(check_queries(name, params, size_log2, &args));
    if (keys) KILN__TRY(check_keys(name, params, size_log2, &args));

    const uint64_t columns = (uint64_t)args.value_blocks * (KILN__NVFP4_VALUE_TILE / KILN__NVFP4_TILE_BLOCKS);
    const uint64_t longest = columns > plain->tokens ? columns : plain->tokens; /* columns are more than keys */
    const uint64_t heads = (uint64_t)plain->batch * plain->kv_heads * 2;
    if (keys) {
        KILN__TRY(kiln__grid(name, plain->chunks ? plain->chunks : 1, heads, &channels));
        KILN__TRY(kiln__grid(name, 1, heads, &join));
        KILN__TRY(kiln__operator_fits(stream, name, &channels));
        if (plain->chunks)
            KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size,
                                            partials_size(CUT_OF(params), plain)));
        plain->partials = params->workspace;
    }
    KILN__TRY(kiln__grid(name, plain->heads + 2 * (uint64_t)plain->kv_heads,
                         (longest + KILN_MHA_QUANTIZE_TOKENS - 1) / KILN_MHA_QUANTIZE_TOKENS, &codes));
    KILN__TRY(kiln__operator_fits(stream, name, &codes));
    if (keys && plain->chunks)
        KILN__TRY(launch(stream, part, KERNEL_mha_quantize_nvfp4_channels, &channels, plain, sizeof *plain));
    if (keys) KILN__TRY(launch(stream, part, KERNEL_mha_quantize_nvfp4_join, &join, plain, sizeof *plain));
    return launch(stream, part, KERNEL_mha_quantize_nvfp4_codes, &codes, &args, sizeof args);
}

static kiln_status mha_quantize_nvfp4_workspace_size(kiln_stream *stream, const kiln_mha_quantize_nvfp4_params *params,
                                                     unsigned part, const char *name, size_t *out_size) {
    kiln_mha_quantize_args args = {0};
    (void)stream;
    (void)part;
    KILN__TRY(check_sizes(name, params));
    if (lacks_keys(params)) return KILN_OK;
    KILN__TRY(cut(name, CUT_OF(params), &args));
    *out_size = partials_size(CUT_OF(params), &args);
    return KILN_OK;
}
