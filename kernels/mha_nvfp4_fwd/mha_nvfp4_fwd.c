/* mha_nvfp4_fwd, host side. */
#include <kiln/ops/attention.h>

#define KILN_HOST mha_nvfp4_fwd
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

#include "kernels/common/attention/attention_codes_call_host.h"
#include "kernels/common/attention/attention_nvfp4_host.h"
#include "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_args.h"

static const kiln__attention_operator attention_operator = {
    .number = KILN__OPERATOR_mha_nvfp4_fwd,
    .bundle = &kiln__bundle_mha_nvfp4_fwd,
    .attend = KERNEL_mha_nvfp4_fwd_attend,
    .join = KERNEL_mha_nvfp4_fwd_join,
    .tuned = KERNEL_mha_nvfp4_fwd_mma_64,
    .tuned_count = KERNEL_mha_nvfp4_fwd_mma_256 - KERNEL_mha_nvfp4_fwd_mma_64 + 1,
};

/* All tokens of a head share one scale, or each has its own. */
static kiln_status find_index(const char *name, const char *size, int64_t tokens, int64_t *scale_rows,
                              kiln_scale_index *out_index) {
    if (!*scale_rows) *scale_rows = tokens;
    KILN__REQUIRE(*scale_rows == 1 || *scale_rows == tokens, "%s: %s is %lld: must be 1, or %lld for each token", name,
                  size, (long long)*scale_rows, (long long)tokens);
    if (*scale_rows == 1) out_index->high = 31; /* tokens are fewer than 2^31 */
    return KILN_OK;
}

/* The call that params describe. Everything but the tensors is checked. */
static kiln_status read_params(const char *name, const kiln_mha_nvfp4_fwd_params *params, kiln__attention *p,
                               kiln_attention_nvfp4_args *args) {
    *p = (kiln__attention){
        KILN__ATTENTION_OF(params),
        .max_seqlen_k = params->max_seqlen_k,
        .kv_rows = params->kv_tokens,
        .args = {.out = params->out,
                 .lse = params->lse,
                 .q = params->q,
                 .k = params->k,
                 .v = params->v,
                 .cu_seqlens_q = params->cu_seqlens_q,
                 .cu_seqlens_k = params->cu_seqlens_k,
                 .seqlens_k = params->seqlens_k,
                 .out_stride = params->out_stride,
                 .blocks = (uint32_t)params->kv_tokens},
    };
    *args = (kiln_attention_nvfp4_args){
        .codes = {KILN__ATTENTION_SCALES_OF(params)},
        .q_blocks = params->q_block_scales,
        .k_blocks = params->k_block_scales,
        .v_blocks = params->v_block_scales,
    };
    int64_t head_blocks = params->head_blocks, v_blocks = params->v_blocks;
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__TRY(kiln__attention_sizes_check(name, p));
    KILN__TRY(kiln__size_check(name, "kv_tokens", params->kv_tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "head_blocks", head_blocks, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "v_blocks", v_blocks, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "q_scale_rows", params->q_scale_rows, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k_scale_rows", params->k_scale_rows, INT32_MAX));
    if (kiln__attention_is_empty(p)) return KILN_OK;
    KILN__TRY(kiln__attention_check(name, p));
    KILN__TRY(kiln__nvfp4_head_blocks_check(name, p->head_dim, &head_blocks));
    KILN__TRY(kiln__nvfp4_value_blocks_check(name, p->kv_rows, p->batch, &v_blocks));
    args->head_blocks = (uint32_t)head_blocks;
    args->value_blocks = (uint32_t)v_blocks;
    KILN__TRY(find_index(name, "q_scale_rows", p->tokens, &args->codes.q_scale_rows, &args->codes.q_index));
    KILN__TRY(find_index(name, "k_scale_rows", p->kv_rows, &args->codes.k_scale_rows, &args->codes.k_index));
    return kiln__attention_length(name, "k", "kv_tokens", params->kv_tokens, p->batch, params->cu_seqlens_k,
                                  &p->max_seqlen_k);
}

static kiln_status check_tensors(const char *name, kiln__attention *p, const kiln_attention_nvfp4_args *nvfp4,
                                 unsigned size_log2) {
    kiln_attention_args *args = &p->args;
    const int64_t size = p->head_dim, blocks = nvfp4->head_blocks;
    KILN__TRY(kiln__heads_check(name, "out", args->out, p->tokens, p->heads, size, &args->out_stride, size_log2));
    KILN__TRY(
        kiln__nvfp4_blocks_check(name, "q", args->q, "q_block_scales", nvfp4->q_blocks, p->tokens * p->heads, blocks));
    if (p->kv_rows) {
        KILN__TRY(kiln__nvfp4_blocks_check(name, "k", args->k, "k_block_scales", nvfp4->k_blocks,
                                           p->kv_rows * p->kv_heads, blocks));
        KILN__TRY(kiln__nvfp4_blocks_check(name, "v", args->v, "v_block_scales", nvfp4->v_blocks, p->kv_heads * size,
                                           nvfp4->value_blocks));
    }
    KILN__TRY(kiln__attention_scales_check(name, p, &nvfp4->codes));
    p->aligned = kiln__rows_wide((uintptr_t)args->out, p->tokens, args->out_stride, size_log2) &
                 kiln__rows_wide(0, p->heads, size, size_log2);
    return KILN_OK;
}

/* Tuned kernels process many rows at a time; for few rows, portable ones are used. */
static kiln__attention_plan plan_of(kiln__attention *p, const kiln_module *module, bool aligned) {
    const bool many = kiln__attention_rows(p) > KILN_ATTENTION_DECODE_ROWS;
    kiln__attention_plan way = kiln__attention_plan_of(p, &attention_operator, module, aligned && many);
    kiln__attention_divide_rows(p, &way);
    return way;
}

/* As kiln__attention_divide_keys, for partial results with one number more, and whole tiles of v. */
static uint64_t divide_keys(kiln__attention *p, const kiln__attention_plan *way) {
    kiln_attention_args *args = &p->args;
    if (!kiln__attention_divide_keys(p, way)) return 0;
    args->split = (args->split + KILN__NVFP4_VALUE_TILE - 1) / KILN__NVFP4_VALUE_TILE * KILN__NVFP4_VALUE_TILE;
    args->splits = (uint32_t)(((uint64_t)p->max_seqlen_k + args->split - 1) / args->split);
    return args->splits * (uint64_t)p->tokens * (uint64_t)p->heads * ((uint64_t)p->head_dim + 3) * sizeof(float);
}

static kiln_status launch_all(kiln_stream *stream, const char *name, const kiln_attention_nvfp4_args *args,
                              const kiln__attention_plan *way, const kiln_kernel *join) {
    const kiln_attention_args *plain = &args->codes.plain;
    kiln_launch_config config, joining;
    KILN__TRY(kiln__attention_codes_grids(stream, name, plain, way, &config, &joining));
    KILN__TRY(kiln__call_launch(stream, way->kernel, &config, args, sizeof *args));
    if (!plain->partials) return KILN_OK;
    return kiln__call_launch(stream, join, &joining, plain, sizeof *plain);
}

static kiln_status mha_nvfp4_fwd(kiln_stream *stream, const kiln_mha_nvfp4_fwd_params *params, unsigned part,
                                 const char *name) {
    kiln__attention p;
    kiln_attention_nvfp4_args args;
    KILN__TRY(read_params(name, params, &p, &args));
    if (KILN__UNLIKELY(kiln__attention_is_empty(&p))) return KILN_OK;
    KILN__TRY(check_tensors(name, &p, &args, kiln__part_size_log2(part)));
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, attention_operator.number, part, attention_operator.bundle, &module));
    kiln__attention_arguments(&p);
    kiln__attention_plan way = plan_of(&p, module, p.aligned);
    const uint64_t needed = p.workspace || p.workspace_size ? divide_keys(&p, &way) : 0;
    if (needed) {
        KILN__TRY(kiln__workspace_check(name, p.workspace, p.workspace_size, needed));
        p.args.partials = p.workspace;
    }
    args.codes.plain = p.args;
    return launch_all(stream, name, &args, &way, &module->kernels[KERNEL_mha_nvfp4_fwd_join]);
}

static kiln_status mha_nvfp4_fwd_workspace_size(kiln_stream *stream, const kiln_mha_nvfp4_fwd_params *params,
                                                unsigned part, const char *name, size_t *out_size) {
    kiln__attention p;
    kiln_attention_nvfp4_args args;
    const kiln_module *module;
    KILN__TRY(read_params(name, params, &p, &args));
    if (kiln__attention_is_empty(&p)) return KILN_OK;
    KILN__TRY(kiln__operator_require(stream, attention_operator.number, part, attention_operator.bundle, &module));
    kiln__attention_arguments(&p);
    for (int aligned = 0; aligned <= 1; aligned++) { /* enough in either case */
        kiln__attention_plan way = plan_of(&p, module, aligned);
        const uint64_t size = divide_keys(&p, &way);
        if (size > *out_size) *out_size = size;
    }
    return KILN_OK;
}
