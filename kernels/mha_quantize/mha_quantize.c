/* mha_quantize, host side: up to three launches. */
#include <kiln/ops/attention.h>

#define KILN_HOST mha_quantize
#include "kernels/common/operator.h"

#include "kernels/common/attention_scales_host.h"
#include "kernels/common/mha_quantize_host.h"

/* Whether nothing is to be written for q, and for k and v. */
static bool lacks_queries(const kiln_mha_quantize_params *params) {
    return !params->tokens || !params->heads || !params->head_dim;
}
static bool lacks_keys(const kiln_mha_quantize_params *params) {
    return !params->batch || !params->kv_heads || !params->head_dim;
}

static kiln_status check_sizes(const char *name, const kiln_mha_quantize_params *params) {
    KILN__TRY(kiln__size_check(name, "tokens", params->tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "kv_tokens", params->kv_tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "batch", params->batch, 1 << 24));
    KILN__TRY(kiln__size_check(name, "heads", params->heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "kv_heads", params->kv_heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "head_dim", params->head_dim, KILN_ATTENTION_DIM));
    KILN__TRY(kiln__size_check(name, "q_scale_rows", params->q_scale_rows, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k_scale_rows", params->k_scale_rows, INT32_MAX));
    KILN__REQUIRE((uint32_t)params->code_type <= KILN_MHA_CODE_E4M3, "%s: code_type is %d: must be i8 (0) or u8 (1)",
                  name, params->code_type);
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    return KILN_OK;
}

static kiln_status check_queries(const char *name, const kiln_mha_quantize_params *params, unsigned size_log2,
                                 kiln_mha_quantize_args *args) {
    const int64_t width = params->heads * params->head_dim;
    args->q_stride = params->q_stride ? params->q_stride : width;
    args->q_scale_rows = params->q_scale_rows;
    KILN__TRY(kiln__q_scale_index(name, params->tokens, &args->q_scale_rows, &args->q_index));
    KILN__TRY(kiln__tensor_check(name, "q", params->q, params->tokens, width, args->q_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "q_codes", params->q_codes, params->tokens, width, width, 0));
    KILN__TRY(kiln__packed_check(name, "q_scales", params->q_scales, true, params->heads, args->q_scale_rows));
    args->q_codes = params->q_codes;
    args->q = params->q;
    args->q_scales = params->q_scales;
    args->tokens = (uint32_t)params->tokens;
    args->heads = (uint32_t)params->heads;
    args->wide &= kiln__rows_wide((uintptr_t)params->q, params->tokens, args->q_stride, size_log2) &&
                  !((uintptr_t)params->q_codes % KILN_MHA_QUANTIZE_PIECE);
    return KILN_OK;
}

/* One of k and v. */
static kiln_status check_keys(const char *name, const char *tensor, const void *data, const char *codes_name,
                              const void *codes, const kiln_mha_quantize_params *params, int64_t *stride,
                              unsigned size_log2, uint32_t *wide) {
    const int64_t width = params->kv_heads * params->head_dim;
    if (!*stride) *stride = width;
    if (!params->kv_tokens) return KILN_OK;
    KILN__TRY(kiln__tensor_check(name, tensor, data, params->kv_tokens, width, *stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, codes_name, codes, params->kv_tokens, width, width, 0));
    *wide &= kiln__rows_wide((uintptr_t)data, params->kv_tokens, *stride, size_log2) &&
             !((uintptr_t)codes % KILN_MHA_QUANTIZE_PIECE);
    return KILN_OK;
}

static kiln_status check_all_keys(const char *name, const kiln_mha_quantize_params *params, unsigned size_log2,
                                  kiln_mha_quantize_args *args) {
    const int64_t channels = params->batch * params->kv_heads, size = params->head_dim;
    KILN__TRY(cut(name, CUT_OF(params), args));
    args->k_stride = params->k_stride;
    args->v_stride = params->v_stride;
    args->k_scale_rows = params->k_scale_rows;
    KILN__TRY(kiln__k_scale_index(name, params->kv_tokens, &args->k_scale_rows, &args->k_index));
    KILN__TRY(
        check_keys(name, "k", params->k, "k_codes", params->k_codes, params, &args->k_stride, size_log2, &args->wide));
    KILN__TRY(
        check_keys(name, "v", params->v, "v_codes", params->v_codes, params, &args->v_stride, size_log2, &args->wide));
    if (params->kv_tokens)
        KILN__TRY(kiln__packed_check(name, "k_scales", params->k_scales, true, params->kv_heads, args->k_scale_rows));
    KILN__TRY(kiln__packed_check(name, "v_scales", params->v_scales, true, channels, size));
    KILN__TRY(kiln__packed_check(name, "k_means", params->k_means, true, channels, size));
    KILN__TRY(kiln__packed_check(name, "v_means", params->v_means, false, channels, size));
    KILN__TRY(kiln__packed_check(name, "cu_seqlens_k", params->cu_seqlens_k, false, 1, params->batch + 1));
    KILN__TRY(kiln__packed_check(name, "seqlens_k", params->seqlens_k, false, 1, params->batch));
    args->k_codes = params->k_codes;
    args->v_codes = params->v_codes;
    args->k_scales = params->k_scales;
    args->v_scales = params->v_scales;
    args->k_means = params->k_means;
    args->v_means = params->v_means;
    args->k = params->k;
    args->v = params->v;
    args->cu_seqlens_k = params->cu_seqlens_k;
    args->seqlens_k = params->seqlens_k;
    args->kv_tokens = (uint32_t)params->kv_tokens;
    args->batch = (uint32_t)params->batch;
    args->kv_heads = (uint32_t)params->kv_heads;
    return KILN_OK;
}

static kiln_status mha_quantize(kiln_stream *stream, const kiln_mha_quantize_params *params, unsigned part,
                                const char *name) {
    const unsigned size_log2 = kiln__part_size_log2(part);
    kiln_mha_quantize_args args = {.head_dim = (uint32_t)params->head_dim, .e4m3 = (uint32_t)params->code_type};
    kiln_launch_config channels, join, codes;
    KILN__TRY(check_sizes(name, params));
    const bool queries = !lacks_queries(params), keys = !lacks_keys(params);
    if (KILN__UNLIKELY(!queries && !keys)) return KILN_OK;
    args.wide = params->head_dim % KILN_MHA_QUANTIZE_PIECE == 0;
    args.columns_log2 = columns_log2(params->head_dim);
    if (queries) KILN__TRY(check_queries(name, params, size_log2, &args));
    if (keys) KILN__TRY(check_all_keys(name, params, size_log2, &args));

    const uint64_t longest = args.tokens > args.kv_tokens ? args.tokens : args.kv_tokens;
    const uint64_t heads = (uint64_t)args.batch * args.kv_heads * 2;
    if (keys) {
        KILN__TRY(kiln__grid(name, args.chunks ? args.chunks : 1, heads, &channels));
        KILN__TRY(kiln__grid(name, 1, heads, &join));
        KILN__TRY(kiln__operator_fits(stream, name, &channels));
        if (args.chunks)
            KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size,
                                            partials_size(CUT_OF(params), &args)));
        args.partials = params->workspace;
    }
    KILN__TRY(kiln__grid(name, args.heads + 2 * (uint64_t)args.kv_heads,
                         (longest + KILN_MHA_QUANTIZE_TOKENS - 1) / KILN_MHA_QUANTIZE_TOKENS, &codes));
    KILN__TRY(kiln__operator_fits(stream, name, &codes));
    if (keys && args.chunks)
        KILN__TRY(launch(stream, part, KERNEL_mha_quantize_channels, &channels, &args, sizeof args));
    if (keys) KILN__TRY(launch(stream, part, KERNEL_mha_quantize_join, &join, &args, sizeof args));
    return longest ? launch(stream, part, KERNEL_mha_quantize_codes, &codes, &args, sizeof args) : KILN_OK;
}

static kiln_status mha_quantize_workspace_size(kiln_stream *stream, const kiln_mha_quantize_params *params,
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
