/* mha with 8-bit products: mha_quantize puts codes of q, k and v into the workspace, and mha_int8_x_fp8_fwd or
 * mha_fp8_fwd attends on them. Included by mha.c; the call has been checked. */
#include "kernels/common/host.h"
#include <kiln/ops/attention.h>

/* The functions of a part. */
typedef struct on_codes {
    kiln_status (*quantize)(kiln_stream *, const kiln_mha_quantize_params *, size_t);
    kiln_status (*quantize_size)(kiln_stream *, const kiln_mha_quantize_params *, size_t, size_t *);
    kiln_status (*int8)(kiln_stream *, const kiln_mha_int8_x_fp8_fwd_params *, size_t);
    kiln_status (*int8_size)(kiln_stream *, const kiln_mha_int8_x_fp8_fwd_params *, size_t, size_t *);
    kiln_status (*fp8)(kiln_stream *, const kiln_mha_fp8_fwd_params *, size_t);
    kiln_status (*fp8_size)(kiln_stream *, const kiln_mha_fp8_fwd_params *, size_t, size_t *);
} on_codes;

static const on_codes on_codes_of[] = {
#define ON_CODES(part, size)                                                                                    \
    [KILN__PART_##                                                                                              \
        part] = {kiln_mha_quantize_##part##_sized,       kiln_mha_quantize_##part##_workspace_size_sized,       \
                 kiln_mha_int8_x_fp8_fwd_##part##_sized, kiln_mha_int8_x_fp8_fwd_##part##_workspace_size_sized, \
                 kiln_mha_fp8_fwd_##part##_sized,        kiln_mha_fp8_fwd_##part##_workspace_size_sized},
    KILN__FLOAT_PARTS(ON_CODES)
#undef ON_CODES
};

/* Both calls' params, with tensors in the workspace; `rest` is what is left of it for either's own. */
typedef struct on_codes_call {
    kiln_mha_quantize_params quantize;
    kiln_mha_int8_x_fp8_fwd_params int8;
    kiln_mha_fp8_fwd_params fp8;
    uint64_t rest;
} on_codes_call;

static void *on_codes_place(const kiln_mha_params *params, uint64_t *end, int64_t count, size_t size) {
    uint64_t start = *end, bytes = (uint64_t)count * size;
    *end += (bytes + KILN_VECTOR_BYTES - 1) / KILN_VECTOR_BYTES * KILN_VECTOR_BYTES;
    return (char *)params->workspace + start;
}

/* The fields of either attention. */
#define ON_CODES_ATTEND(call, params)                                                                                 \
    .out = (params)->out, .lse = (params)->lse, .q = (call)->quantize.q_codes, .k = (call)->quantize.k_codes,         \
    .v = (call)->quantize.v_codes, .q_scales = (call)->quantize.q_scales, .k_scales = (call)->quantize.k_scales,      \
    .v_scales = (call)->quantize.v_scales, .k_means = (call)->quantize.k_means,                                       \
    .cu_seqlens_q = (params)->cu_seqlens_q, .cu_seqlens_k = (params)->cu_seqlens_k, .seqlens_k = (params)->seqlens_k, \
    .tokens = (params)->tokens, .kv_tokens = (params)->kv_tokens, .batch = (params)->batch, .heads = (params)->heads, \
    .kv_heads = (params)->kv_heads, .head_dim = (params)->head_dim, .out_stride = (params)->out_stride,               \
    .max_seqlen_q = (params)->max_seqlen_q, .max_seqlen_k = (params)->max_seqlen_k,                                   \
    .window_left = (params)->window_left, .window_right = (params)->window_right, .scale = (params)->scale,           \
    .causal = (params)->causal, .kernel = (params)->kernel

static void on_codes_fill(const kiln_mha_params *params, on_codes_call *call) {
    const int64_t q = params->tokens * params->heads, kv = params->kv_tokens * params->kv_heads;
    const int64_t size = params->head_dim, channels = params->batch * params->kv_heads * size;
    uint64_t end = 0;
    call->quantize = (kiln_mha_quantize_params){
        .q_codes = on_codes_place(params, &end, q * size, 1),
        .k_codes = on_codes_place(params, &end, kv * size, 1),
        .v_codes = on_codes_place(params, &end, kv * size, 1),
        .q_scales = on_codes_place(params, &end, q, sizeof(float)),
        .k_scales = on_codes_place(params, &end, kv, sizeof(float)),
        .v_scales = on_codes_place(params, &end, channels, sizeof(float)),
        .k_means = on_codes_place(params, &end, channels, sizeof(float)),
        .q = params->q,
        .k = params->k,
        .v = params->v,
        .cu_seqlens_k = params->cu_seqlens_k,
        .seqlens_k = params->seqlens_k,
        .tokens = params->tokens,
        .kv_tokens = params->kv_tokens,
        .batch = params->batch,
        .heads = params->heads,
        .kv_heads = params->kv_heads,
        .head_dim = params->head_dim,
        .q_stride = params->q_stride,
        .k_stride = params->k_stride,
        .v_stride = params->v_stride,
        .max_seqlen_k = params->max_seqlen_k,
        .code_type = params->compute == KILN_MHA_COMPUTE_FP8 ? KILN_MHA_CODE_E4M3 : KILN_MHA_CODE_INT8,
    };
    call->int8 = (kiln_mha_int8_x_fp8_fwd_params){ON_CODES_ATTEND(call, params)};
    call->fp8 = (kiln_mha_fp8_fwd_params){ON_CODES_ATTEND(call, params)};
    call->rest = end;
}

/* How much of the rest each takes, one after the other in the same place. */
static kiln_status on_codes_sizes(kiln_stream *stream, const on_codes *of, bool fp8, const on_codes_call *call,
                                  size_t *quantize, size_t *attend) {
    KILN__TRY(of->quantize_size(stream, &call->quantize, sizeof call->quantize, quantize));
    if (fp8) return of->fp8_size(stream, &call->fp8, sizeof call->fp8, attend);
    return of->int8_size(stream, &call->int8, sizeof call->int8, attend);
}

static kiln_status on_codes_workspace(kiln_stream *stream, const kiln_mha_params *params, unsigned part,
                                      size_t *out_size) {
    on_codes_call call;
    size_t quantize, attend;
    on_codes_fill(params, &call);
    KILN__TRY(
        on_codes_sizes(stream, &on_codes_of[part], params->compute == KILN_MHA_COMPUTE_FP8, &call, &quantize, &attend));
    *out_size = call.rest + (quantize > attend ? quantize : attend);
    return KILN_OK;
}

static kiln_status on_codes_run(kiln_stream *stream, const char *name, const kiln_mha_params *params, unsigned part) {
    const on_codes *of = &on_codes_of[part];
    const bool fp8 = params->compute == KILN_MHA_COMPUTE_FP8;
    on_codes_call call;
    size_t quantize, attend;
    on_codes_fill(params, &call);
    KILN__TRY(on_codes_sizes(stream, of, fp8, &call, &quantize, &attend));
    KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size,
                                    call.rest + (quantize > attend ? quantize : attend)));
    void *rest = (char *)params->workspace + call.rest;
    call.quantize.workspace = rest;
    call.quantize.workspace_size = quantize;
    call.int8.workspace = call.fp8.workspace = attend ? rest : NULL;
    call.int8.workspace_size = call.fp8.workspace_size = attend;
    KILN__TRY(of->quantize(stream, &call.quantize, sizeof call.quantize));
    return fp8 ? of->fp8(stream, &call.fp8, sizeof call.fp8) : of->int8(stream, &call.int8, sizeof call.int8);
}
