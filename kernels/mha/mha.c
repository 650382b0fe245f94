/* mha, host side. */
#include "kernels/common/attention_host.h"

extern const kiln_bundle kiln__bundle_mha;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/mha/mha.def"
};

/* Checks all but pointers, strides and that there is a sequence, and gives what both kinds of attention have. */
static kiln_status read_sizes(const char *name, const kiln_mha_params *params, kiln__attention *p) {
    *p = (kiln__attention){
        .tokens = params->tokens,
        .batch = params->batch,
        .heads = params->heads,
        .kv_heads = params->kv_heads,
        .head_size = params->head_size,
        .left = params->left_window,
        .right = params->right_window,
        .causal = params->causal,
        .scale = params->scale,
        .softcap = params->softcap,
    };
    KILN__TRY(kiln__attention_sizes_check(name, p));
    KILN__TRY(kiln__size_check(name, "kv_tokens", params->kv_tokens, INT32_MAX));
    if (kiln__attention_is_empty(p) || !p->batch) return KILN_OK;
    KILN__REQUIRE(params->q_ends || params->tokens % p->batch == 0,
                  "%s: tokens is %lld: must be a multiple of batch without q_ends", name, (long long)params->tokens);
    KILN__REQUIRE(params->kv_ends || params->kv_tokens % p->batch == 0,
                  "%s: kv_tokens is %lld: must be a multiple of batch without kv_ends", name,
                  (long long)params->kv_tokens);
    KILN__REQUIRE(params->q_ends || !params->q_length, "%s: q_length is %lld: must be 0 without q_ends", name,
                  (long long)params->q_length);
    KILN__REQUIRE(params->kv_ends || !params->kv_length, "%s: kv_length is %lld: must be 0 without kv_ends", name,
                  (long long)params->kv_length);
    KILN__REQUIRE(params->kv_length >= 0 && params->kv_length <= params->kv_tokens,
                  "%s: kv_length is %lld: must be from 0 to the %lld keys", name, (long long)params->kv_length,
                  (long long)params->kv_tokens);
    p->q_length = !params->q_ends ? params->tokens / p->batch : params->q_length ? params->q_length : params->tokens;
    p->kv_length = !params->kv_ends    ? params->kv_tokens / p->batch
                   : params->kv_length ? params->kv_length
                                       : params->kv_tokens;
    return kiln__attention_check(name, p);
}

static kiln_status mha(kiln_stream *stream, const kiln_mha_params *params, size_t params_size, unsigned part,
                       const char *name) {
    kiln_mha_params copy;
    kiln__attention p;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(read_sizes(name, params, &p));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(kiln__attention_is_empty(&p))) return KILN_OK;
    KILN__REQUIRE(p.batch, "%s: batch is 0, but there are %lld tokens: must be positive", name, (long long)p.tokens);

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln_attention_args args = {
        .out = params->out,
        .q = params->q,
        .k = params->k,
        .v = params->v,
        .lse = params->lse,
        .q_ends = params->q_ends,
        .kv_ends = params->kv_ends,
        .kv_lengths = params->kv_lengths,
        .out_stride = params->out_stride,
        .q_stride = params->q_stride,
        .k_stride = params->k_stride,
        .v_stride = params->v_stride,
        .blocks = (uint32_t)params->kv_tokens,
    };
    int64_t tokens = p.tokens, kv_tokens = params->kv_tokens, size = p.head_size;
    KILN__TRY(kiln__heads_check(name, "out", args.out, tokens, p.heads, size, &args.out_stride, size_log2));
    KILN__TRY(kiln__heads_check(name, "q", args.q, tokens, p.heads, size, &args.q_stride, size_log2));
    if (kv_tokens) {
        KILN__TRY(kiln__heads_check(name, "k", args.k, kv_tokens, p.kv_heads, size, &args.k_stride, size_log2));
        KILN__TRY(kiln__heads_check(name, "v", args.v, kv_tokens, p.kv_heads, size, &args.v_stride, size_log2));
    }
    if (args.lse) KILN__TRY(kiln__tensor_check(name, "lse", args.lse, p.heads, tokens, tokens, 2));
    if (args.q_ends) KILN__TRY(kiln__tensor_check(name, "q_ends", args.q_ends, 1, p.batch, p.batch, 2));
    if (args.kv_ends) KILN__TRY(kiln__tensor_check(name, "kv_ends", args.kv_ends, 1, p.batch, p.batch, 2));
    if (args.kv_lengths) KILN__TRY(kiln__tensor_check(name, "kv_lengths", args.kv_lengths, 1, p.batch, p.batch, 2));
    args.wide =
        kiln__rows_wide((uintptr_t)args.k | (uintptr_t)args.v, kv_tokens, args.k_stride | args.v_stride, size_log2) &
        kiln__rows_wide(0, p.kv_heads, size, size_log2);

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_mha, part, &kiln__bundle_mha, &module));
    return kiln__attention_launch(stream, name, &p, &module->kernels[KERNEL_mha_attend],
                                  &module->kernels[KERNEL_mha_join], &args, params->workspace, params->workspace_size);
}

static kiln_status mha_workspace(const kiln_mha_params *params, size_t params_size, size_t *out_size,
                                 const char *name) {
    KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);
    *out_size = 0;
    kiln_mha_params copy;
    kiln__attention p;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(read_sizes(name, params, &p));
    if (p.batch) *out_size = kiln__attention_workspace(&p);
    return KILN_OK;
}

#define MHA(part, size)                                                                                   \
    KILN__OPERATOR_FUNCTION(mha, part)                                                                    \
    kiln_status kiln_mha_##part##_workspace_size_sized(const kiln_mha_params *params, size_t params_size, \
                                                       size_t *out_size) {                                \
        return mha_workspace(params, params_size, out_size, "mha_" #part);                                \
    }
KILN__FLOAT_PARTS(MHA)
