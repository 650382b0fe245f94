/* mha with products of 8 bits or of NVFP4: mha_quantize puts codes of q, k and v into the workspace, on which
 * mha_int8_x_fp8_fwd or mha_fp8_fwd computes attention; for NVFP4, mha_quantize_nvfp4 and mha_nvfp4_fwd. Included by
 * mha.c; the call has been checked. */
#include "kernels/common/attention/attention_nvfp4_host.h"
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
    kiln_status (*quantize_nvfp4)(kiln_stream *, const kiln_mha_quantize_nvfp4_params *, size_t);
    kiln_status (*quantize_nvfp4_size)(kiln_stream *, const kiln_mha_quantize_nvfp4_params *, size_t, size_t *);
    kiln_status (*nvfp4)(kiln_stream *, const kiln_mha_nvfp4_fwd_params *, size_t);
    kiln_status (*nvfp4_size)(kiln_stream *, const kiln_mha_nvfp4_fwd_params *, size_t, size_t *);
} on_codes;

static const on_codes on_codes_of[] = {
#define ON_CODES(part, size)                                                                                    \
    [KILN__PART_##                                                                                              \
        part] = {kiln_mha_quantize_##part##_sized,       kiln_mha_quantize_##part##_workspace_size_sized,       \
                 kiln_mha_int8_x_fp8_fwd_##part##_sized, kiln_mha_int8_x_fp8_fwd_##part##_workspace_size_sized, \
                 kiln_mha_fp8_fwd_##part##_sized,        kiln_mha_fp8_fwd_##part##_workspace_size_sized,        \
                 kiln_mha_quantize_nvfp4_##part##_sized, kiln_mha_quantize_nvfp4_##part##_workspace_size_sized, \
                 kiln_mha_nvfp4_fwd_##part##_sized,      kiln_mha_nvfp4_fwd_##part##_workspace_size_sized},
    KILN__FLOAT_PARTS(ON_CODES)
#undef ON_CODES
};

/* The params of both calls, with tensors in the workspace; `rest` is where the remainder begins, for each call's own
 * use. */
typedef struct on_codes_call {
    union {
        kiln_mha_quantize_params quantize;
        kiln_mha_quantize_nvfp4_params quantize_nvfp4;
    };
    union {
        kiln_mha_int8_x_fp8_fwd_params int8;
        kiln_mha_fp8_fwd_params fp8;
        kiln_mha_nvfp4_fwd_params nvfp4;
    };
    uint64_t rest;
} on_codes_call;

static void *on_codes_place(const kiln_mha_params *params, uint64_t *end, int64_t count, size_t size) {
    uint64_t start = *end, bytes = (uint64_t)count * size;
    *end += (bytes + KILN_VECTOR_BYTES - 1) / KILN_VECTOR_BYTES * KILN_VECTOR_BYTES;
    return (char *)params->workspace + start;
}

/* The fields that both ways to quantise, and all kinds of attention on codes, have in common. */
#define ON_CODES_QUANTIZE(params)                                                                   \
    .q = (params)->q, .k = (params)->k, .v = (params)->v, .cu_seqlens_k = (params)->cu_seqlens_k,   \
    .seqlens_k = (params)->seqlens_k, .tokens = (params)->tokens, .kv_tokens = (params)->kv_tokens, \
    .batch = (params)->batch, .heads = (params)->heads, .kv_heads = (params)->kv_heads,             \
    .head_dim = (params)->head_dim, .q_stride = (params)->q_stride, .k_stride = (params)->k_stride, \
    .v_stride = (params)->v_stride, .max_seqlen_k = (params)->max_seqlen_k
#define ON_CODES_ATTEND(quantised, params)                                                                      \
    .out = (params)->out, .lse = (params)->lse, .q = (quantised)->q_codes, .k = (quantised)->k_codes,           \
    .v = (quantised)->v_codes, .q_scales = (quantised)->q_scales, .k_scales = (quantised)->k_scales,            \
    .v_scales = (quantised)->v_scales, .k_means = (quantised)->k_means, .cu_seqlens_q = (params)->cu_seqlens_q, \
    .cu_seqlens_k = (params)->cu_seqlens_k, .seqlens_k = (params)->seqlens_k, .tokens = (params)->tokens,       \
    .kv_tokens = (params)->kv_tokens, .batch = (params)->batch, .heads = (params)->heads,                       \
    .kv_heads = (params)->kv_heads, .head_dim = (params)->head_dim, .out_stride = (params)->out_stride,         \
    .max_seqlen_q = (params)->max_seqlen_q, .max_seqlen_k = (params)->max_seqlen_k,                             \
    .window_left = (params)->window_left, .window_right = (params)->window_right, .scale = (params)->scale,     \
    .causal = (params)->causal, .kernel = (params)->kernel

static void on_bytes_fill(const kiln_mha_params *params, on_codes_call *call) {
    const int64_t q = params->tokens * params->heads, kv = params->kv_tokens * params->kv_heads;
    const int64_t size = params->head_dim, channels = params->batch * params->kv_heads * size;
    uint64_t end = 0;
    const kiln_mha_quantize_params quantize = {
        ON_CODES_QUANTIZE(params),
        .q_codes = on_codes_place(params, &end, q * size, 1),
        .k_codes = on_codes_place(params, &end, kv * size, 1),
        .v_codes = on_codes_place(params, &end, kv * size, 1),
        .q_scales = on_codes_place(params, &end, q, sizeof(float)),
        .k_scales = on_codes_place(params, &end, kv, sizeof(float)),
        .v_scales = on_codes_place(params, &end, channels, sizeof(float)),
        .k_means = on_codes_place(params, &end, channels, sizeof(float)),
        .code_type = params->compute == KILN_MHA_COMPUTE_FP8 ? KILN_MHA_CODE_E4M3 : KILN_MHA_CODE_INT8,
    };
    call->quantize = quantize;
    if (params->compute == KILN_MHA_COMPUTE_FP8)
        call->fp8 = (kiln_mha_fp8_fwd_params){ON_CODES_ATTEND(&quantize, params)};
    else
        call->int8 = (kiln_mha_int8_x_fp8_fwd_params){ON_CODES_ATTEND(&quantize, params)};
    call->rest = end;
}

static void on_nvfp4_fill(const kiln_mha_params *params, on_codes_call *call) {
    const int64_t q = params->tokens * params->heads, kv = params->kv_tokens * params->kv_heads;
    const int64_t width = params->kv_heads * params->head_dim, channels = params->batch * width;
    const int64_t q_blocks = q * kiln__nvfp4_head_blocks(params->head_dim);
    const int64_t k_blocks = kv * kiln__nvfp4_head_blocks(params->head_dim);
    const int64_t v_blocks = width * kiln__nvfp4_value_blocks(params->kv_tokens, params->batch);
    uint64_t end = 0;
    const kiln_mha_quantize_nvfp4_params quantize = {
        ON_CODES_QUANTIZE(params),
        .q_codes = on_codes_place(params, &end, q_blocks, KILN__NVFP4_CODES),
        .k_codes = on_codes_place(params, &end, k_blocks, KILN__NVFP4_CODES),
        .v_codes = on_codes_place(params, &end, v_blocks, KILN__NVFP4_CODES),
        .q_block_scales = on_codes_place(params, &end, q_blocks, 1),
        .k_block_scales = on_codes_place(params, &end, k_blocks, 1),
        .v_block_scales = on_codes_place(params, &end, v_blocks, 1),
        .q_scales = on_codes_place(params, &end, q, sizeof(float)),
        .k_scales = on_codes_place(params, &end, kv, sizeof(float)),
        .v_scales = on_codes_place(params, &end, channels, sizeof(float)),
        .k_means = on_codes_place(params, &end, channels, sizeof(float)),
    };
    call->quantize_nvfp4 = quantize;
    call->nvfp4 = (kiln_mha_nvfp4_fwd_params){
        ON_CODES_ATTEND(&quantize, params), .q_block_scales = quantize.q_block_scales,
        .k_block_scales = quantize.k_block_scales, .v_block_scales = quantize.v_block_scales};
    call->rest = end;
}

/* How much of the rest each call takes, one after the other in the same place. */
static kiln_status on_codes_sizes(kiln_stream *stream, const on_codes *of, const kiln_mha_params *params,
                                  on_codes_call *call, size_t *quantize, size_t *attend) {
    if (params->compute == KILN_MHA_COMPUTE_NVFP4) {
        on_nvfp4_fill(params, call);
        KILN__TRY(of->quantize_nvfp4_size(stream, &call->quantize_nvfp4, sizeof call->quantize_nvfp4, quantize));
        return of->nvfp4_size(stream, &call->nvfp4, sizeof call->nvfp4, attend);
    }
    on_bytes_fill(params, call);
    KILN__TRY(of->quantize_size(stream, &call->quantize, sizeof call->quantize, quantize));
    if (params->compute == KILN_MHA_COMPUTE_FP8) return of->fp8_size(stream, &call->fp8, sizeof call->fp8, attend);
    return of->int8_size(stream, &call->int8, sizeof call->int8, attend);
}

static kiln_status on_codes_workspace(kiln_stream *stream, const kiln_mha_params *params, unsigned part,
                                      size_t *out_size) {
    on_codes_call call;
    size_t quantize, attend;
    KILN__TRY(on_codes_sizes(stream, &on_codes_of[part], params, &call, &quantize, &attend));
    *out_size = call.rest + (quantize > attend ? quantize : attend);
    return KILN_OK;
}

/* Gives a call the rest of the workspace. */
#define ON_CODES_REST(call_params, rest, size)            \
    do {                                                  \
        (call_params).workspace = (size) ? (rest) : NULL; \
        (call_params).workspace_size = (size);            \
    } while (0)

static kiln_status on_codes_run(kiln_stream *stream, const char *name, const kiln_mha_params *params, unsigned part) {
    const on_codes *of = &on_codes_of[part];
    on_codes_call call;
    size_t quantize, attend;
    KILN__TRY(on_codes_sizes(stream, of, params, &call, &quantize, &attend));
    KILN__TRY(kiln__workspace_check(name, params->workspace, params->workspace_size,
                                    call.rest + (quantize > attend ? quantize : attend)));
    void *rest = (char *)params->workspace + call.rest;
    if (params->compute == KILN_MHA_COMPUTE_NVFP4) {
        ON_CODES_REST(call.quantize_nvfp4, rest, quantize);
        ON_CODES_REST(call.nvfp4, rest, attend);
        KILN__TRY(of->quantize_nvfp4(stream, &call.quantize_nvfp4, sizeof call.quantize_nvfp4));
        return of->nvfp4(stream, &call.nvfp4, sizeof call.nvfp4);
    }
    ON_CODES_REST(call.quantize, rest, quantize);
    KILN__TRY(of->quantize(stream, &call.quantize, sizeof call.quantize));
    if (params->compute == KILN_MHA_COMPUTE_FP8) {
        ON_CODES_REST(call.fp8, rest, attend);
        return of->fp8(stream, &call.fp8, sizeof call.fp8);
    }
    ON_CODES_REST(call.int8, rest, attend);
    return of->int8(stream, &call.int8, sizeof call.int8);
}
