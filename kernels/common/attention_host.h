/* What the host sides of mha and mha_paged share: checks, and how rows and keys are divided among groups. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_HOST_H
#define KILN_KERNELS_COMMON_ATTENTION_HOST_H

#include "kernels/common/attention_args.h"
#include "kernels/common/host.h"

/* Keys are shared where there are fewer groups than GROUPS, among as many as make them so, as long as each has
 * SPLIT_LEAST of them. */
enum {
    KILN__ATTENTION_GROUPS = 128,
    KILN__ATTENTION_SPLIT_LEAST = 256,
    KILN__ATTENTION_SPLITS_MOST = 64,
    KILN__ATTENTION_WIDE_SIZE = 128 /* heads beyond it leave shared memory for half as many rows */
};

/* A call of either. */
typedef struct kiln__attention {
    int64_t tokens, batch, heads, kv_heads, head_dim;
    int64_t max_seqlen_q, max_seqlen_k; /* of the longest sequence */
    int64_t kv_rows;                    /* of k and v */
    int64_t left, right;                /* windows; 0: no end */
    int32_t causal, reserved;
    float scale, softcap;
    bool paged;
    void *workspace;
    size_t workspace_size;
    kiln_attention_args args; /* tensors and strides as they are in params, and the cache's blocks */
} kiln__attention;

/* What has the same name in the params of both: initialisers of a call, and of its args. */
#define KILN__ATTENTION_OF(params)                                                                                  \
    .tokens = (params)->tokens, .batch = (params)->batch, .heads = (params)->heads, .kv_heads = (params)->kv_heads, \
    .head_dim = (params)->head_dim, .max_seqlen_q = (params)->max_seqlen_q, .left = (params)->window_left,          \
    .right = (params)->window_right, .causal = (params)->causal, .reserved = (params)->reserved,                    \
    .scale = (params)->scale, .softcap = (params)->softcap, .workspace = (params)->workspace,                       \
    .workspace_size = (params)->workspace_size
#define KILN__ATTENTION_ARGS_OF(params)                                                                   \
    .out = (params)->out, .lse = (params)->lse, .q = (params)->q, .cu_seqlens_q = (params)->cu_seqlens_q, \
    .seqlens_k = (params)->seqlens_k, .out_stride = (params)->out_stride, .q_stride = (params)->q_stride

/* An operator of this kind. */
typedef struct kiln__attention_operator {
    unsigned number;
    const kiln_bundle *bundle;
    unsigned attend, join; /* numbers of its kernels */
} kiln__attention_operator;

/* ---- Checks ---- */

static inline kiln_status kiln__attention_sizes_check(const char *name, const kiln__attention *p) {
    KILN__TRY(kiln__size_check(name, "tokens", p->tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "batch", p->batch, 1 << 24));
    KILN__TRY(kiln__size_check(name, "heads", p->heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "kv_heads", p->kv_heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "head_dim", p->head_dim, KILN_ATTENTION_DIM));
    return KILN_OK;
}

/* Whether there is nothing to write. */
static inline bool kiln__attention_is_empty(const kiln__attention *p) {
    return !p->tokens || !p->heads || !p->head_dim;
}

/* The most tokens of a sequence, of `tokens` in all. side is "q" or "k", and names cu_seqlens_<side> and
 * max_seqlen_<side>; *length is the latter. */
static inline kiln_status kiln__attention_length(const char *name, const char *side, const char *tensor, int64_t tokens,
                                                 int64_t batch, const int32_t *cu_seqlens, int64_t *length) {
    KILN__REQUIRE(batch > 0, "%s: batch is 0: must be positive where there are tokens", name);
    if (!cu_seqlens) {
        int64_t each = tokens / batch;
        KILN__REQUIRE(each * batch == tokens, "%s: %s is %lld: must be a multiple of batch without cu_seqlens_%s", name,
                      tensor, (long long)tokens, side);
        KILN__REQUIRE(!*length, "%s: max_seqlen_%s is %lld: must be 0 without cu_seqlens_%s", name, side,
                      (long long)*length, side);
        *length = each;
        return KILN_OK;
    }
    KILN__REQUIRE(*length >= 0 && *length <= tokens, "%s: max_seqlen_%s is %lld: must be from 0 to %s, which is %lld",
                  name, side, (long long)*length, tensor, (long long)tokens);
    if (!*length) *length = tokens;
    return KILN_OK;
}

/* The rules of a call that has something to do, its max_seqlen_q, and how many heads share keys. */
static inline kiln_status kiln__attention_check(const char *name, kiln__attention *p) {
    KILN__TRY(kiln__attention_length(name, "q", "tokens", p->tokens, p->batch, p->args.cu_seqlens_q, &p->max_seqlen_q));
    uint32_t heads = (uint32_t)p->heads, kv_heads = (uint32_t)p->kv_heads;
    KILN__REQUIRE(kv_heads && heads % kv_heads == 0,
                  "%s: heads is %lld and kv_heads %lld: the first must be a multiple of the second", name,
                  (long long)p->heads, (long long)p->kv_heads);
    p->args.group = heads / kv_heads;
    KILN__REQUIRE(p->max_seqlen_q * p->args.group <= INT32_MAX,
                  "%s: tokens is %lld: is too large with %u heads to each of k: at most 2^31 - 1 together", name,
                  (long long)p->tokens, p->args.group);
    KILN__REQUIRE(p->left >= 0 && p->left <= INT32_MAX, "%s: window_left is %lld: must be from 0 to 2^31 - 1", name,
                  (long long)p->left);
    KILN__REQUIRE(p->right >= 0 && p->right <= INT32_MAX, "%s: window_right is %lld: must be from 0 to 2^31 - 1", name,
                  (long long)p->right);
    KILN__REQUIRE((uint32_t)p->causal <= 1, "%s: causal is %d: must be no (0) or yes (1)", name, p->causal);
    KILN__REQUIRE(!p->causal || p->right <= 1, "%s: window_right is %lld: must be 0 or 1 with causal", name,
                  (long long)p->right);
    KILN__REQUIRE(__builtin_isfinite(p->scale), "%s: scale is %g: must be finite", name, (double)p->scale);
    KILN__REQUIRE(p->softcap == 0.0f || (p->softcap >= 1e-6f && p->softcap <= 1e6f),
                  "%s: softcap is %g: must be 0 or from 1e-6 to 1e6", name, (double)p->softcap);
    return KILN_OK;
}

/* A tensor of heads, packed within each of its rows. Gives its stride in place of 0. */
static inline kiln_status kiln__heads_check(const char *name, const char *tensor, const void *data, int64_t rows,
                                            int64_t heads, int64_t head_dim, int64_t *stride, unsigned size_log2) {
    if (!*stride) *stride = heads * head_dim;
    return kiln__tensor_check(name, tensor, data, rows, heads * head_dim, *stride, size_log2);
}

/* A tensor of 4-byte elements, packed, where it is needed or there. */
static inline kiln_status kiln__packed_check(const char *name, const char *tensor, const void *data, bool needed,
                                             int64_t rows, int64_t cols) {
    return needed || data ? kiln__tensor_check(name, tensor, data, rows, cols, cols, 2) : KILN_OK;
}

static inline kiln_status kiln__attention_tensors_check(const char *name, kiln__attention *p, unsigned size_log2) {
    kiln_attention_args *args = &p->args;
    const char *k = p->paged ? "k_cache" : "k", *v = p->paged ? "v_cache" : "v";
    int64_t size = p->head_dim;
    KILN__TRY(kiln__heads_check(name, "out", args->out, p->tokens, p->heads, size, &args->out_stride, size_log2));
    KILN__TRY(kiln__heads_check(name, "q", args->q, p->tokens, p->heads, size, &args->q_stride, size_log2));
    if (p->kv_rows) {
        KILN__TRY(kiln__heads_check(name, k, args->k, p->kv_rows, p->kv_heads, size, &args->k_stride, size_log2));
        KILN__TRY(kiln__heads_check(name, v, args->v, p->kv_rows, p->kv_heads, size, &args->v_stride, size_log2));
    }
    KILN__TRY(kiln__packed_check(name, "lse", args->lse, false, p->heads, p->tokens));
    KILN__TRY(kiln__packed_check(name, "cu_seqlens_q", args->cu_seqlens_q, false, 1, p->batch + 1));
    KILN__TRY(kiln__packed_check(name, "cu_seqlens_k", args->cu_seqlens_k, false, 1, p->batch + 1));
    KILN__TRY(kiln__packed_check(name, "seqlens_k", args->seqlens_k, p->paged, 1, p->batch));
    if (p->paged && p->max_seqlen_k)
        KILN__TRY(kiln__packed_check(name, "block_table", args->block_table, true, p->batch, args->max_blocks_per_seq));
    args->wide = kiln__rows_wide((uintptr_t)args->k | (uintptr_t)args->v, p->kv_rows, args->k_stride | args->v_stride,
                                 size_log2) &
                 kiln__rows_wide(0, p->kv_heads, size, size_log2);
    return KILN_OK;
}

/* ---- The division of the work ---- */

/* How rows are divided; the checks have passed. */
static inline void kiln__attention_divide_rows(kiln__attention *p) {
    kiln_attention_args *args = &p->args;
    uint32_t rows = (uint32_t)p->max_seqlen_q * args->group;
    uint32_t most = p->head_dim > KILN__ATTENTION_WIDE_SIZE ? KILN_ATTENTION_ROWS / 2 : KILN_ATTENTION_ROWS;
    uint32_t each = 1;
    while (each < most && each * KILN_ATTENTION_SUBGROUPS < rows)
        each *= 2;
    uint32_t tile = each * KILN_ATTENTION_SUBGROUPS;
    args->batch = (uint32_t)p->batch;
    args->kv_heads = (uint32_t)p->kv_heads;
    args->head_dim = (uint32_t)p->head_dim;
    args->max_seqlen_q = (uint32_t)p->max_seqlen_q;
    args->max_seqlen_k = (uint32_t)p->max_seqlen_k;
    args->rows = each;
    args->row_tiles = (rows + tile - 1) / tile;
    args->splits = 1;
    args->split = args->max_seqlen_k;
}

/* How keys are, where that pays; rows are divided. Returns the bytes of the partial results, 0 where they are not. */
static inline uint64_t kiln__attention_divide_keys(kiln__attention *p) {
    kiln_attention_args *args = &p->args;
    uint64_t groups = (uint64_t)args->row_tiles * args->batch * args->kv_heads;
    uint64_t splits = groups && groups < KILN__ATTENTION_GROUPS ? KILN__ATTENTION_GROUPS / groups : 1;
    uint64_t enough = (uint64_t)p->max_seqlen_k / KILN__ATTENTION_SPLIT_LEAST;
    if (splits > enough) splits = enough;
    if (splits > KILN__ATTENTION_SPLITS_MOST) splits = KILN__ATTENTION_SPLITS_MOST;
    if (splits <= 1) return 0;
    uint64_t split = ((uint64_t)p->max_seqlen_k + splits - 1) / splits;
    split = (split + KILN_ATTENTION_KEYS - 1) / KILN_ATTENTION_KEYS * KILN_ATTENTION_KEYS;
    args->split = (uint32_t)split;
    args->splits = (uint32_t)(((uint64_t)p->max_seqlen_k + split - 1) / split);
    uint64_t rows = args->splits * (uint64_t)p->tokens * (uint64_t)p->heads;
    return rows * ((uint64_t)p->head_dim + 2) * sizeof(float);
}

/* With a workspace for that, keys are divided. */
static inline kiln_status kiln__attention_divide_keys_in(const char *name, kiln__attention *p) {
    uint64_t needed = kiln__attention_divide_keys(p);
    if (!needed) return KILN_OK;
    KILN__REQUIRE(p->workspace_size >= needed,
                  "%s: workspace_size is %zu: must be at least %llu, or 0 without a workspace", name, p->workspace_size,
                  (unsigned long long)needed);
    KILN__REQUIRE(p->workspace && !((uintptr_t)p->workspace & (KILN_VECTOR_BYTES - 1)),
                  "%s: workspace is %p: must be 16-byte aligned device memory", name, p->workspace);
    p->args.partials = p->workspace;
    return KILN_OK;
}

static inline uint64_t kiln__attention_workspace(kiln__attention *p) {
    if (kiln__attention_is_empty(p)) return 0;
    kiln__attention_divide_rows(p);
    return kiln__attention_divide_keys(p);
}

/* ---- The call ---- */

static inline kiln_status kiln__attention_launch(kiln_stream *stream, const char *name, const kiln__attention *p,
                                                 const kiln_kernel *attend, const kiln_kernel *join) {
    const kiln_attention_args *args = &p->args;
    uint32_t row = KILN_ATTENTION_STRIDE(args->head_dim), rows = args->rows * KILN_ATTENTION_SUBGROUPS;
    const uint64_t tiles = ((uint64_t)p->heads + KILN_ATTENTION_SUBGROUPS - 1) / KILN_ATTENTION_SUBGROUPS;
    kiln_launch_config config, joining;
    if (args->partials) {
        KILN__TRY(kiln__grid(name, tiles, (uint64_t)p->tokens, &joining));
        KILN__TRY(kiln__operator_fits(stream, name, &joining));
    }
    KILN__TRY(kiln__grid(name, args->row_tiles, (uint64_t)args->batch * args->kv_heads * args->splits, &config));
    config.dynamic_shared_bytes =
        (uint32_t)sizeof(float) * ((KILN_ATTENTION_KEYS + rows) * row + rows * KILN_ATTENTION_KEYS);
    KILN__TRY(kiln__operator_launch(stream, attend, &config, args, sizeof *args));
    if (!args->partials) return KILN_OK;
    return kiln__operator_launch(stream, join, &joining, args, sizeof *args);
}

/* The rest of the checks, the rest of the arguments, and the launches. */
static inline kiln_status kiln__attention_call(kiln_stream *stream, const char *name, kiln__attention *p, unsigned part,
                                               const kiln__attention_operator *op) {
    kiln_attention_args *args = &p->args;
    KILN__REQUIRE(p->reserved == 0, "%s: reserved is %d: must be 0", name, p->reserved);
    if (KILN__UNLIKELY(kiln__attention_is_empty(p))) return KILN_OK;
    KILN__TRY(kiln__attention_tensors_check(name, p, kiln__part_size_log2(part)));
    kiln__attention_divide_rows(p);
    if (p->workspace || p->workspace_size) KILN__TRY(kiln__attention_divide_keys_in(name, p));
    args->tokens = p->tokens;
    args->left = p->left ? (uint32_t)p->left : KILN_ATTENTION_ANY;
    args->right = p->causal ? 1 : p->right ? (uint32_t)p->right : KILN_ATTENTION_ANY;
    args->scale = p->scale == 0.0f ? (float)(1 / __builtin_sqrt((double)p->head_dim)) : p->scale;
    args->softcap = p->softcap;
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, op->number, part, op->bundle, &module));
    return kiln__attention_launch(stream, name, p, &module->kernels[op->attend], &module->kernels[op->join]);
}

#endif
