/* mha_paged, host side. */
#include "kernels/common/attention_host.h"

extern const kiln_bundle kiln__bundle_mha_paged;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/mha_paged/mha_paged.def"
};

/* Checks all but pointers, strides and that there is a sequence, and gives what both kinds of attention have. */
static kiln_status read_sizes(const char *name, const kiln_mha_paged_params *params, kiln__attention *p) {
    int64_t capacity = 0;
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
    KILN__TRY(kiln__size_check(name, "blocks", params->blocks, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "block_size", params->block_size, 1 << 20));
    KILN__TRY(kiln__size_check(name, "table_size", params->table_size, INT32_MAX));
    if (kiln__attention_is_empty(p) || !p->batch) return KILN_OK;
    KILN__REQUIRE(params->block_size && !(params->block_size & (params->block_size - 1)),
                  "%s: block_size is %lld: must be a power of two", name, (long long)params->block_size);
    bool overflow = __builtin_mul_overflow(params->table_size, params->block_size, &capacity) || capacity > INT32_MAX;
    KILN__REQUIRE(!overflow, "%s: table_size is %lld: is too large for blocks of %lld keys", name,
                  (long long)params->table_size, (long long)params->block_size);
    KILN__REQUIRE(params->q_ends || params->tokens % p->batch == 0,
                  "%s: tokens is %lld: must be a multiple of batch without q_ends", name, (long long)params->tokens);
    KILN__REQUIRE(params->q_ends || !params->q_length, "%s: q_length is %lld: must be 0 without q_ends", name,
                  (long long)params->q_length);
    p->q_length = !params->q_ends ? params->tokens / p->batch : params->q_length ? params->q_length : params->tokens;
    p->kv_length = params->blocks ? capacity : 0;
    return kiln__attention_check(name, p);
}

static kiln_status mha_paged(kiln_stream *stream, const kiln_mha_paged_params *params, size_t params_size,
                             unsigned part, const char *name) {
    kiln_mha_paged_params copy;
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
        .k = params->k_cache,
        .v = params->v_cache,
        .lse = params->lse,
        .q_ends = params->q_ends,
        .kv_lengths = params->kv_lengths,
        .tables = params->tables,
        .out_stride = params->out_stride,
        .q_stride = params->q_stride,
        .k_stride = params->k_cache_stride,
        .v_stride = params->v_cache_stride,
        .blocks = (uint32_t)params->blocks,
        .block_log2 = (uint32_t)__builtin_ctzll((uint64_t)params->block_size),
        .table_stride = (uint32_t)params->table_size,
    };
    int64_t tokens = p.tokens, slots = params->blocks * params->block_size, size = p.head_size;
    KILN__TRY(kiln__heads_check(name, "out", args.out, tokens, p.heads, size, &args.out_stride, size_log2));
    KILN__TRY(kiln__heads_check(name, "q", args.q, tokens, p.heads, size, &args.q_stride, size_log2));
    if (slots) {
        KILN__TRY(kiln__heads_check(name, "k_cache", args.k, slots, p.kv_heads, size, &args.k_stride, size_log2));
        KILN__TRY(kiln__heads_check(name, "v_cache", args.v, slots, p.kv_heads, size, &args.v_stride, size_log2));
    }
    if (p.kv_length)
        KILN__TRY(kiln__tensor_check(name, "tables", args.tables, p.batch, params->table_size, params->table_size, 2));
    KILN__TRY(kiln__tensor_check(name, "kv_lengths", args.kv_lengths, 1, p.batch, p.batch, 2));
    if (args.lse) KILN__TRY(kiln__tensor_check(name, "lse", args.lse, p.heads, tokens, tokens, 2));
    if (args.q_ends) KILN__TRY(kiln__tensor_check(name, "q_ends", args.q_ends, 1, p.batch, p.batch, 2));
    args.wide =
        kiln__rows_wide((uintptr_t)args.k | (uintptr_t)args.v, slots, args.k_stride | args.v_stride, size_log2) &
        kiln__rows_wide(0, p.kv_heads, size, size_log2);

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_mha_paged, part, &kiln__bundle_mha_paged, &module));
    return kiln__attention_launch(stream, name, &p, &module->kernels[KERNEL_mha_paged_attend],
                                  &module->kernels[KERNEL_mha_paged_join], &args, params->workspace,
                                  params->workspace_size);
}

static kiln_status mha_paged_workspace(const kiln_mha_paged_params *params, size_t params_size, size_t *out_size,
                                       const char *name) {
    KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);
    *out_size = 0;
    kiln_mha_paged_params copy;
    kiln__attention p;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(read_sizes(name, params, &p));
    if (p.batch) *out_size = kiln__attention_workspace(&p);
    return KILN_OK;
}

#define MHA_PAGED(part, size)                                                                                         \
    KILN__OPERATOR_FUNCTION(mha_paged, part)                                                                          \
    kiln_status kiln_mha_paged_##part##_workspace_size_sized(const kiln_mha_paged_params *params, size_t params_size, \
                                                             size_t *out_size) {                                      \
        return mha_paged_workspace(params, params_size, out_size, "mha_paged_" #part);                                \
    }
KILN__FLOAT_PARTS(MHA_PAGED)
