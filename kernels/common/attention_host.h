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

/* What both have in their params. */
typedef struct kiln__attention {
    int64_t tokens, batch, heads, kv_heads, head_size;
    int64_t q_length, kv_length; /* of the longest sequence */
    int64_t left, right;         /* of params: 0: no end */
    int32_t causal;
    float scale, softcap;
} kiln__attention;

static inline kiln_status kiln__attention_sizes_check(const char *name, const kiln__attention *p) {
    KILN__TRY(kiln__size_check(name, "tokens", p->tokens, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "batch", p->batch, 1 << 24));
    KILN__TRY(kiln__size_check(name, "heads", p->heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "kv_heads", p->kv_heads, 1 << 16));
    KILN__TRY(kiln__size_check(name, "head_size", p->head_size, KILN_ATTENTION_SIZE));
    return KILN_OK;
}

/* Whether there is nothing to write. */
static inline bool kiln__attention_is_empty(const kiln__attention *p) {
    return !p->tokens || !p->heads || !p->head_size;
}

/* The rules of a call that has something to do. */
static inline kiln_status kiln__attention_check(const char *name, const kiln__attention *p) {
    KILN__REQUIRE(p->kv_heads > 0 && p->heads % p->kv_heads == 0,
                  "%s: heads is %lld and kv_heads %lld: the first must be a multiple of the second", name,
                  (long long)p->heads, (long long)p->kv_heads);
    KILN__REQUIRE(p->q_length >= 0 && p->q_length <= p->tokens,
                  "%s: q_length is %lld: must be from 0 to the %lld tokens", name, (long long)p->q_length,
                  (long long)p->tokens);
    KILN__REQUIRE(p->q_length * (p->heads / p->kv_heads) <= INT32_MAX, "%s: tokens is %lld: is too large", name,
                  (long long)p->tokens);
    KILN__REQUIRE(p->left >= 0 && p->left <= INT32_MAX, "%s: left_window is %lld: must be from 0 to 2^31 - 1", name,
                  (long long)p->left);
    KILN__REQUIRE(p->right >= 0 && p->right <= INT32_MAX, "%s: right_window is %lld: must be from 0 to 2^31 - 1", name,
                  (long long)p->right);
    KILN__REQUIRE((uint32_t)p->causal <= 1, "%s: causal is %d: must be no (0) or yes (1)", name, p->causal);
    KILN__REQUIRE(!p->causal || p->right <= 1, "%s: right_window is %lld: must be 0 or 1 with causal", name,
                  (long long)p->right);
    KILN__REQUIRE(__builtin_isfinite(p->scale), "%s: scale is %g: must be finite", name, (double)p->scale);
    KILN__REQUIRE(p->softcap == 0.0f || (p->softcap >= 1e-6f && p->softcap <= 1e6f),
                  "%s: softcap is %g: must be 0 or from 1e-6 to 1e6", name, (double)p->softcap);
    return KILN_OK;
}

/* 1 / sqrt(n) for a head's size, by Newton's method: libc alone has no sqrt. */
static inline float kiln__attention_scale(int64_t size) {
    double root = 16, next; /* of 256: from above, until it falls no more */
    while ((next = (root + (double)size / root) / 2) < root)
        root = next;
    return (float)(1 / root);
}

/* How the work is divided; the checks have passed. */
static inline void kiln__attention_divide(const kiln__attention *p, kiln_attention_args *args) {
    uint32_t group = (uint32_t)(p->heads / p->kv_heads), rows = (uint32_t)p->q_length * group;
    uint32_t most = p->head_size > KILN__ATTENTION_WIDE_SIZE ? KILN_ATTENTION_ROWS / 2 : KILN_ATTENTION_ROWS;
    uint32_t each = 1;
    while (each < most && each * KILN_ATTENTION_SUBGROUPS < rows)
        each *= 2;
    uint32_t tile = each * KILN_ATTENTION_SUBGROUPS;
    args->batch = (uint32_t)p->batch;
    args->kv_heads = (uint32_t)p->kv_heads;
    args->group = group;
    args->head_size = (uint32_t)p->head_size;
    args->q_length = (uint32_t)p->q_length;
    args->kv_length = (uint32_t)p->kv_length;
    args->rows = each;
    args->row_tiles = (rows + tile - 1) / tile;
    uint64_t groups = (uint64_t)args->row_tiles * args->batch * args->kv_heads;
    uint64_t splits = groups && groups < KILN__ATTENTION_GROUPS ? KILN__ATTENTION_GROUPS / groups : 1;
    uint64_t enough = (uint64_t)p->kv_length / KILN__ATTENTION_SPLIT_LEAST;
    if (splits > enough) splits = enough;
    if (splits > KILN__ATTENTION_SPLITS_MOST) splits = KILN__ATTENTION_SPLITS_MOST;
    if (splits < 1) splits = 1;
    uint64_t split = ((uint64_t)p->kv_length + splits - 1) / splits;
    args->split = (uint32_t)((split + KILN_ATTENTION_KEYS - 1) / KILN_ATTENTION_KEYS * KILN_ATTENTION_KEYS);
    args->splits = args->split ? (uint32_t)(((uint64_t)p->kv_length + args->split - 1) / args->split) : 1;
}

/* The bytes of the partial results of divided work; 0 where keys are not shared. */
static inline uint64_t kiln__attention_partials(const kiln__attention *p, const kiln_attention_args *args) {
    uint64_t rows = (uint64_t)args->splits * (uint64_t)p->tokens * (uint64_t)p->heads;
    return args->splits > 1 ? rows * ((uint64_t)p->head_size + 2) * sizeof(float) : 0;
}

static inline uint64_t kiln__attention_workspace(const kiln__attention *p) {
    kiln_attention_args args = {0};
    if (kiln__attention_is_empty(p)) return 0;
    kiln__attention_divide(p, &args);
    return kiln__attention_partials(p, &args);
}

/* The rest of the arguments, and the launches. Pointers and strides are in args already. */
static inline kiln_status kiln__attention_launch(kiln_stream *stream, const char *name, const kiln__attention *p,
                                                 const kiln_kernel *attend, const kiln_kernel *join,
                                                 kiln_attention_args *args, void *workspace, size_t workspace_size) {
    kiln__attention_divide(p, args);
    uint64_t needed = kiln__attention_partials(p, args);
    args->tokens = p->tokens;
    args->left = p->left ? (uint32_t)p->left : KILN_ATTENTION_ANY;
    args->right = p->causal ? 1 : p->right ? (uint32_t)p->right : KILN_ATTENTION_ANY;
    args->scale = p->scale == 0.0f ? kiln__attention_scale(p->head_size) : p->scale;
    args->softcap = p->softcap;
    if (needed && (workspace || workspace_size)) {
        KILN__REQUIRE(workspace_size >= needed, "%s: workspace_size is %zu: must be 0 or at least %llu", name,
                      workspace_size, (unsigned long long)needed);
        KILN__REQUIRE(workspace && !((uintptr_t)workspace & (KILN_VECTOR_BYTES - 1)),
                      "%s: workspace is %p: must be 16-byte aligned device memory", name, workspace);
        args->partials = workspace;
    } else {
        args->splits = 1;
        args->split = args->kv_length;
    }
    kiln_launch_config config;
    uint64_t blocks = (uint64_t)args->batch * args->kv_heads * args->splits;
    KILN__TRY(kiln__grid(name, args->row_tiles, blocks, &config));
    uint32_t row = KILN_ATTENTION_STRIDE((uint32_t)p->head_size), rows = args->rows * KILN_ATTENTION_SUBGROUPS;
    config.dynamic_shared_bytes =
        (uint32_t)sizeof(float) * ((KILN_ATTENTION_KEYS + rows) * row + rows * KILN_ATTENTION_KEYS);
    KILN__TRY(kiln__operator_launch(stream, attend, &config, args, sizeof *args));
    if (!args->partials) return KILN_OK;
    uint64_t tiles = ((uint64_t)p->heads + KILN_ATTENTION_SUBGROUPS - 1) / KILN_ATTENTION_SUBGROUPS;
    KILN__TRY(kiln__grid(name, tiles, (uint64_t)p->tokens, &config));
    return kiln__operator_launch(stream, join, &config, args, sizeof *args);
}

/* A tensor of heads, packed within each of its rows. */
static inline kiln_status kiln__heads_check(const char *name, const char *tensor, const void *data, int64_t rows,
                                            int64_t heads, int64_t head_size, int64_t *stride, unsigned size_log2) {
    if (!*stride) *stride = heads * head_size;
    return kiln__tensor_check(name, tensor, data, rows, heads * head_size, *stride, size_log2);
}

#endif
