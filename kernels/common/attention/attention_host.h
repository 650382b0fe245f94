/* What the host sides of mha and mha_paged share: checks, and how rows and keys are divided among blocks. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_HOST_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_HOST_H

#include "kernels/common/attention/attention_mapped_args.h"
#include "kernels/common/host.h"
#include <kiln/ops/attention.h>

/* Keys are shared where there are fewer blocks than the plan wants, among as many as make them so, as long as each has
 * SPLIT_LEAST of them. The portable kernels want BLOCKS on every device, tuned ones one for each multiprocessor. */
enum {
    KILN__ATTENTION_BLOCKS = 128,
    KILN__ATTENTION_SPLIT_LEAST = 256,
    KILN__ATTENTION_LONG = 2048, /* keys from which on blocks do a tile of rows each where lengths are not known */
    KILN__ATTENTION_SPLITS_MOST = 64,
    KILN__ATTENTION_WIDE_SIZE = 128, /* heads beyond it leave shared memory for half as many rows */
    KILN__ATTENTION_STAGES_MOST = 3,
    KILN__ATTENTION_CLUSTER_MOST = 8,   /* blocks of a cluster */
    KILN__ATTENTION_CLUSTER_KEYS = 512, /* of each, up to which a second launch takes longer (H200) */
    KILN__ATTENTION_FEW_KEYS = 512,     /* fewer are not divided where clusters could */
    KILN__ATTENTION_TUNED_BYTES = 2     /* of an element of the parts that have tuned kernels */
};

/* Elements from row to row of k and v that tensor maps cannot have. */
#define KILN__ATTENTION_STRIDE_LIMIT ((int64_t)1 << 39)

/* A call of either. */
typedef struct kiln__attention {
    int64_t tokens, batch, heads, kv_heads, head_dim;
    int64_t max_seqlen_q, max_seqlen_k; /* of the longest sequence */
    int64_t kv_rows;                    /* of k and v */
    int64_t left, right;                /* windows; 0: no end */
    int32_t causal, kernel;
    float scale, softcap;
    bool paged;
    bool aligned; /* all heads are on 16 bytes, those of q and out as well */
    void *workspace;
    size_t workspace_size;
    kiln_attention_args args; /* tensors and strides as they are in params, and the cache's blocks */
} kiln__attention;

/* What has the same name in the params of all: initialisers of a call, and of its args. */
#define KILN__ATTENTION_OF(params)                                                                                     \
    .tokens = (params)->tokens, .batch = (params)->batch, .heads = (params)->heads, .kv_heads = (params)->kv_heads,    \
    .head_dim = (params)->head_dim, .max_seqlen_q = (params)->max_seqlen_q, .left = (params)->window_left,             \
    .right = (params)->window_right, .causal = (params)->causal, .kernel = (params)->kernel, .scale = (params)->scale, \
    .workspace = (params)->workspace, .workspace_size = (params)->workspace_size
#define KILN__ATTENTION_ARGS_OF(params)                                                                   \
    .out = (params)->out, .lse = (params)->lse, .q = (params)->q, .cu_seqlens_q = (params)->cu_seqlens_q, \
    .seqlens_k = (params)->seqlens_k, .out_stride = (params)->out_stride, .q_stride = (params)->q_stride

/* An operator of this kind. */
typedef struct kiln__attention_operator {
    unsigned number;
    const kiln_bundle *bundle;
    unsigned attend, join;       /* numbers of its kernels */
    unsigned tuned, tuned_count; /* the first of those that only tuned images have */
    uint64_t no_codes;           /* of these, those that take no codes of E4M3, a bit each, */
    uint64_t only_codes;         /* those that take nothing else, */
    uint64_t no_masks;           /* those that take neither masks nor those of trees, */
    uint64_t only_masks;         /* and those that take no call without */
    uint64_t clusters;           /* those whose blocks can share keys as a cluster */
    uint32_t split_least;        /* of its tuned kernels for few rows, in place of SPLIT_LEAST; 0: none */
} kiln__attention_operator;

/* How a call is done. */
typedef struct kiln__attention_plan {
    const kiln_kernel *kernel;
    uint32_t rows;        /* of a block */
    uint32_t blocks;      /* as many as are wanted */
    uint32_t split_least; /* keys of a share */
    uint32_t shared_bytes;
    uint32_t threads; /* of a block */
    bool clusters;    /* blocks can share keys as a cluster, without a workspace and a second launch */
} kiln__attention_plan;

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
    KILN__REQUIRE((uint32_t)p->kernel <= KILN_MHA_KERNEL_PORTABLE, "%s: kernel is %d: must be auto (0) or portable (1)",
                  name, p->kernel);
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
    const unsigned kv_size_log2 = args->codes ? 0 : size_log2;
    const char *k = p->paged ? "k_cache" : "k", *v = p->paged ? "v_cache" : "v";
    int64_t size = p->head_dim;
    KILN__TRY(kiln__heads_check(name, "out", args->out, p->tokens, p->heads, size, &args->out_stride, size_log2));
    KILN__TRY(kiln__heads_check(name, "q", args->q, p->tokens, p->heads, size, &args->q_stride, size_log2));
    if (p->kv_rows) {
        KILN__TRY(kiln__heads_check(name, k, args->k, p->kv_rows, p->kv_heads, size, &args->k_stride, kv_size_log2));
        KILN__TRY(kiln__heads_check(name, v, args->v, p->kv_rows, p->kv_heads, size, &args->v_stride, kv_size_log2));
    }
    KILN__TRY(kiln__packed_check(name, "lse", args->lse, false, p->heads, p->tokens));
    KILN__TRY(kiln__packed_check(name, "cu_seqlens_q", args->cu_seqlens_q, false, 1, p->batch + 1));
    KILN__TRY(kiln__packed_check(name, "cu_seqlens_k", args->cu_seqlens_k, false, 1, p->batch + 1));
    KILN__TRY(kiln__packed_check(name, "seqlens_k", args->seqlens_k, p->paged, 1, p->batch));
    if (p->paged && p->max_seqlen_k)
        KILN__TRY(kiln__packed_check(name, "block_table", args->block_table, true, p->batch, args->max_blocks_per_seq));
    args->wide = kiln__rows_wide((uintptr_t)args->k | (uintptr_t)args->v, p->kv_rows, args->k_stride | args->v_stride,
                                 kv_size_log2) &
                 kiln__rows_wide(0, p->kv_heads, size, kv_size_log2);
    p->aligned = args->wide && kiln__rows_wide((uintptr_t)args->q | (uintptr_t)args->out, p->tokens,
                                               args->q_stride | args->out_stride, size_log2);
    return KILN_OK;
}

/* ---- The division of the work ---- */

/* What of the arguments the plan does not decide; the checks have passed. */
static inline void kiln__attention_arguments(kiln__attention *p) {
    kiln_attention_args *args = &p->args;
    args->tokens = p->tokens;
    args->batch = (uint32_t)p->batch;
    args->kv_heads = (uint32_t)p->kv_heads;
    args->head_dim = (uint32_t)p->head_dim;
    args->max_seqlen_q = (uint32_t)p->max_seqlen_q;
    args->max_seqlen_k = (uint32_t)p->max_seqlen_k;
    args->left = p->left ? (uint32_t)p->left : KILN_ATTENTION_ANY;
    args->right = p->causal ? 1 : p->right ? (uint32_t)p->right : KILN_ATTENTION_ANY;
    args->scale = p->scale == 0.0f ? (float)(1 / __builtin_sqrt((double)p->head_dim)) : p->scale;
    args->softcap = p->softcap;
}

static inline uint32_t kiln__attention_rows(const kiln__attention *p) {
    return (uint32_t)p->max_seqlen_q * p->args.group;
}

static inline kiln__attention_plan kiln__attention_portable(kiln__attention *p, const kiln_kernel *attend) {
    uint32_t most = p->head_dim > KILN__ATTENTION_WIDE_SIZE ? KILN_ATTENTION_ROWS / 2 : KILN_ATTENTION_ROWS, each = 1;
    while (each < most && each * KILN_ATTENTION_SUBGROUPS < kiln__attention_rows(p))
        each *= 2;
    uint32_t rows = each * KILN_ATTENTION_SUBGROUPS, row = KILN_ATTENTION_STRIDE(p->args.head_dim);
    p->args.rows = each;
    return (kiln__attention_plan){
        attend,
        rows,
        KILN__ATTENTION_BLOCKS,
        KILN__ATTENTION_SPLIT_LEAST,
        (uint32_t)sizeof(float) *
            ((KILN_ATTENTION_KEYS + rows) * row + rows * (KILN_ATTENTION_KEYS + (p->paged || p->args.mask ? 2u : 0u))),
        KILN_BLOCK,
        false};
}

/* Whether of two kernels with the same tile this one is better than the best so far. Where each multiprocessor has an
 * even number of blocks, it is the one with less shared memory, of which two run at once: measured on an H200, 512
 * blocks of few rows took 2 % less, but 384 of them 6 % more, since they are no whole number of pairs. */
static inline bool kiln__attention_is_better(const kiln_kernel_info *info, const kiln_kernel_info *best,
                                             uint64_t blocks, uint64_t multiprocessors) {
    bool pairs = (blocks + multiprocessors - 1) / multiprocessors % 2 == 0;
    return pairs ? info->stage_bytes < best->stage_bytes : info->stage_bytes > best->stage_bytes;
}

/* Of the tuned kernels that take heads this large the one with the fewest tiles of rows, of those the one with the
 * smallest tile, and of those the one for as many blocks; the portable one where there is none, or where the call is
 * not for them. */
static inline kiln__attention_plan kiln__attention_plan_of(kiln__attention *p, const kiln__attention_operator *op,
                                                           const kiln_module *module, bool aligned) {
    const kiln_device_info *device = &module->device->info;
    const kiln_kernel *best = NULL;
    uint32_t best_tiles = 0, best_area = 0, rows = kiln__attention_rows(p);
    bool tuned = aligned && p->head_dim % (p->args.codes ? 16 : 8) == 0 && p->kv_rows &&
                 p->kernel == KILN_MHA_KERNEL_AUTO && (p->softcap != 0.0f || p->args.scale > 0x1p-100f);
    uint64_t other_keys = p->args.codes ? op->no_codes : op->only_codes;
    uint64_t other_masks = p->args.mask ? op->no_masks : op->only_masks;
    bool mapped = p->kv_rows == 1 || (p->args.k_stride | p->args.v_stride) < KILN__ATTENTION_STRIDE_LIMIT;
    for (unsigned i = op->tuned; tuned && i < op->tuned + op->tuned_count; i++) {
        const kiln_kernel_info *info = &module->kernels[i].info;
        if (!mapped && kiln__tensor_map_count(info)) continue;
        if (info->absent || info->tile[1] < p->args.head_dim) continue;
        if ((other_keys | other_masks) >> i & 1) {
            kiln__plan_leave(&module->kernels[i], other_keys >> i & 1 ? "is not for keys of this type"
                                                  : p->args.mask      ? "is not for masks"
                                                                      : "is for masks alone");
            continue;
        }
        if (info->stage_bytes > (uint32_t)device->max_shared_bytes) {
            kiln__plan_leave(&module->kernels[i], "the device has no shared memory for its keys");
            continue;
        }
        uint32_t tiles = (rows + info->tile[0] - 1) / info->tile[0], area = info->tile[0] * info->tile[1];
        uint64_t blocks = (uint64_t)tiles * p->args.batch * p->args.kv_heads;
        if (best && (tiles > best_tiles || (tiles == best_tiles && area > best_area))) continue;
        if (best && tiles == best_tiles && area == best_area &&
            !kiln__attention_is_better(info, &best->info, blocks, (uint64_t)device->multiprocessors))
            continue;
        best = &module->kernels[i];
        best_tiles = tiles;
        best_area = area;
    }
    kiln__plan_take(best ? best : &module->kernels[op->attend],
                    best    ? "covers the rows with the fewest tiles, and is the smallest of those that do"
                    : tuned ? "no tuned kernel of this image is for such heads"
                            : "no tuned kernel is for this call");
    if (!best) return kiln__attention_portable(p, &module->kernels[op->attend]);
    const kiln_kernel_info *info = &best->info;
    uint32_t split_least = KILN__ATTENTION_SPLIT_LEAST;
    p->args.stages = 1;
    if (info->tile[0] <= KILN_ATTENTION_DECODE_ROWS) {
        if (op->split_least) split_least = op->split_least;
        p->args.stages = info->stages ? info->stages : (uint32_t)device->max_shared_bytes / info->stage_bytes;
        /* Without a ring all waves of a block take their first keys at once: fewer would leave some idle. */
        if (info->stages == 1 && split_least < info->tile[2]) split_least = info->tile[2];
        if (p->args.stages > KILN__ATTENTION_STAGES_MOST) p->args.stages = KILN__ATTENTION_STAGES_MOST;
    }
    return (kiln__attention_plan){best,
                                  info->tile[0],
                                  (uint32_t)device->multiprocessors,
                                  split_least,
                                  p->args.stages * info->stage_bytes,
                                  info->max_threads,
                                  op->clusters >> (best - module->kernels) & 1};
}

static inline void kiln__attention_divide_rows(kiln__attention *p, const kiln__attention_plan *way) {
    kiln_attention_args *args = &p->args;
    args->row_tiles = (kiln__attention_rows(p) + way->rows - 1) / way->rows;
    args->splits = 1;
    args->split = args->max_seqlen_k;
}

/* How many blocks share keys, each of which has a place in the workspace for its results: as many as there are
 * multiprocessors for. */
static inline uint64_t kiln__attention_splits(const kiln__attention *p, const kiln__attention_plan *way) {
    const kiln_attention_args *args = &p->args;
    if (way->clusters && p->max_seqlen_k < KILN__ATTENTION_FEW_KEYS) return 1;
    uint64_t blocks = (uint64_t)args->row_tiles * args->batch * args->kv_heads;
    uint64_t splits = blocks && blocks < way->blocks ? way->blocks / blocks : 1;
    uint64_t enough = (uint64_t)p->max_seqlen_k / way->split_least;
    if (splits > enough) splits = enough;
    return splits < KILN__ATTENTION_SPLITS_MOST ? splits : KILN__ATTENTION_SPLITS_MOST;
}

/* How many blocks of a cluster share keys: a power of two. A cluster's blocks are in one of the device's groups of
 * multiprocessors, where some are left over (measured on an H100: of 132, 12 by clusters of 4 or 8, none of 2). */
static inline uint32_t kiln__attention_cluster(const kiln__attention *p, const kiln__attention_plan *way) {
    const kiln_attention_args *args = &p->args;
    const uint64_t blocks = (uint64_t)args->row_tiles * args->batch * args->kv_heads;
    if (!way->clusters || p->max_seqlen_k < KILN__ATTENTION_FEW_KEYS) return 1;
    uint32_t cluster = KILN__ATTENTION_CLUSTER_MOST;
    while (cluster > 1 && blocks * cluster > (cluster == 2 ? way->blocks : way->blocks / 8 * 7))
        cluster /= 2;
    return cluster;
}

/* Lets the blocks of a cluster share keys: without a workspace, or where no more blocks would share them with one, or
 * keys are so few that a second launch takes longer. */
static inline bool kiln__attention_divide_in_cluster(kiln__attention *p, const kiln__attention_plan *way,
                                                     bool workspace) {
    uint32_t cluster = kiln__attention_cluster(p, way);
    if (cluster == 1) return false;
    if (workspace && p->max_seqlen_k > (int64_t)cluster * KILN__ATTENTION_CLUSTER_KEYS &&
        kiln__attention_splits(p, way) > cluster)
        return false;
    p->args.splits = cluster;
    return true;
}

/* How keys are, where that pays; rows are divided. Returns the bytes of the partial results, 0 where they are not. */
static inline uint64_t kiln__attention_divide_keys(kiln__attention *p, const kiln__attention_plan *way) {
    kiln_attention_args *args = &p->args;
    if (kiln__attention_divide_in_cluster(p, way, true)) return 0;
    uint64_t splits = kiln__attention_splits(p, way);
    if (splits <= 1) return 0;
    uint64_t split = ((uint64_t)p->max_seqlen_k + splits - 1) / splits;
    split = (split + KILN_ATTENTION_KEYS - 1) / KILN_ATTENTION_KEYS * KILN_ATTENTION_KEYS;
    args->split = (uint32_t)split;
    args->splits = (uint32_t)(((uint64_t)p->max_seqlen_k + split - 1) / split);
    uint64_t rows = args->splits * (uint64_t)p->tokens * (uint64_t)p->heads;
    return rows * ((uint64_t)p->head_dim + 2) * sizeof(float);
}

/* With a workspace for that, keys are divided. */
static inline kiln_status kiln__attention_divide_keys_in(const char *name, kiln__attention *p,
                                                         const kiln__attention_plan *way) {
    uint64_t needed = kiln__attention_divide_keys(p, way);
    if (!needed) return KILN_OK;
    KILN__REQUIRE(p->workspace_size >= needed,
                  "%s: workspace_size is %zu: must be at least %llu, or 0 without a workspace", name, p->workspace_size,
                  (unsigned long long)needed);
    KILN__REQUIRE(p->workspace && !((uintptr_t)p->workspace & (KILN_VECTOR_BYTES - 1)),
                  "%s: workspace is %p: must be 16-byte aligned device memory", name, p->workspace);
    p->args.partials = p->workspace;
    return KILN_OK;
}

/* Enough for the call whether its tensors are aligned or not. */
static inline kiln_status kiln__attention_workspace(kiln_stream *stream, kiln__attention *p, unsigned part,
                                                    const kiln__attention_operator *op, size_t *out_size) {
    if (kiln__attention_is_empty(p)) return KILN_OK;
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, op->number, part, op->bundle, &module));
    kiln__attention_arguments(p);
    for (int aligned = 0; aligned <= 1; aligned++) {
        kiln__attention_plan way = kiln__attention_plan_of(p, op, module, aligned);
        kiln__attention_divide_rows(p, &way);
        uint64_t size = kiln__attention_divide_keys(p, &way);
        if (size > *out_size) *out_size = size;
    }
    return KILN_OK;
}

/* ---- The call ---- */

/* Heads of k or of v, as a tensor map has them. */
static inline kiln__tensor_layout kiln__attention_layout(const kiln__attention *p, const void *data, int64_t stride,
                                                         uint32_t element_bytes) {
    return (kiln__tensor_layout){
        .data = data,
        .element_bytes = element_bytes,
        .rank = 3,
        .sizes = {(uint64_t)p->head_dim, (uint64_t)p->kv_heads, (uint64_t)p->kv_rows},
        .strides = {0, (uint64_t)p->head_dim * element_bytes, (uint64_t)stride * element_bytes},
    };
}

/* A kernel that copies k and v by tensor maps. */
static inline kiln_status kiln__attention_launch_mapped(kiln_stream *stream, const kiln_kernel *kernel,
                                                        const kiln_launch_config *config, const kiln__attention *p) {
    const kiln__tensor_layout layouts[] = {
        kiln__attention_layout(p, p->args.k, p->args.k_stride, KILN__ATTENTION_TUNED_BYTES),
        kiln__attention_layout(p, p->args.v, p->args.v_stride, KILN__ATTENTION_TUNED_BYTES)};
    kiln_attention_mapped_args args = {.plain = p->args};
    KILN__TRY(kiln__tensor_maps_encode(kernel, layouts, &args));
    return kiln__call_launch(stream, kernel, config, &args, sizeof args);
}

/* The grid of a kernel whose blocks take tile after tile: one for each multiprocessor, so that the next tile has begun
 * when results are written. Where lengths that only the device knows may leave blocks without work, and there are many
 * keys, each has a tile, and the device gives it to the first multiprocessor that is free. */
static inline kiln_status kiln__attention_grid_of_many(const char *name, const kiln__attention_plan *way,
                                                       const kiln_attention_args *args, uint64_t tiles,
                                                       kiln_launch_config *config) {
    KILN__REQUIRE(tiles <= INT32_MAX,
                  "%s: its sizes are too large for one launch: %llu tiles of rows, at most 2^31 - 1", name,
                  (unsigned long long)tiles);
    const bool known = !args->cu_seqlens_q && !args->cu_seqlens_k && !args->seqlens_k;
    const uint64_t most = known || args->split < KILN__ATTENTION_LONG ? way->blocks : KILN_GRID_LIMIT_X;
    return kiln__grid(name, tiles < most ? tiles : most, 1, config);
}

static inline kiln_status kiln__attention_launch(kiln_stream *stream, const char *name, const kiln__attention *p,
                                                 const kiln__attention_plan *way, const kiln_kernel *join) {
    const kiln_attention_args *args = &p->args;
    const kiln_kernel *attend = way->kernel;
    kiln_launch_config config, joining;
    if (args->partials) {
        KILN__TRY(kiln__grid(name, (uint64_t)p->heads, (uint64_t)p->tokens, &joining));
        KILN__TRY(kiln__operator_fits(stream, name, &joining));
    }
    const uint64_t blocks = (uint64_t)args->batch * args->kv_heads * args->splits;
    KILN__TRY(kiln__grid(name, args->row_tiles, blocks, &config));
    if (way->threads > KILN_BLOCK)
        KILN__TRY(kiln__attention_grid_of_many(name, way, args, args->row_tiles * blocks, &config));
    config.block[0] = way->threads;
    config.dynamic_shared_bytes = way->shared_bytes;
    if (kiln__tensor_map_count(&attend->info)) {
        KILN__TRY(kiln__attention_launch_mapped(stream, attend, &config, p));
    } else {
        if (way->clusters && args->splits > 1 && !args->partials) config.cluster[1] = args->splits;
        KILN__TRY(kiln__call_launch(stream, attend, &config, args, sizeof *args));
    }
    if (!args->partials) return KILN_OK;
    return kiln__call_launch(stream, join, &joining, args, sizeof *args);
}

/* The rest of the checks, the rest of the arguments, and the launches. */
static inline kiln_status kiln__attention_call(kiln_stream *stream, const char *name, kiln__attention *p, unsigned part,
                                               const kiln__attention_operator *op) {
    if (KILN__UNLIKELY(kiln__attention_is_empty(p))) return KILN_OK;
    KILN__TRY(kiln__attention_tensors_check(name, p, kiln__part_size_log2(part)));
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, op->number, part, op->bundle, &module));
    kiln__attention_arguments(p);
    kiln__attention_plan way = kiln__attention_plan_of(p, op, module, p->aligned);
    kiln__attention_divide_rows(p, &way);
    if (p->workspace || p->workspace_size)
        KILN__TRY(kiln__attention_divide_keys_in(name, p, &way));
    else
        (void)kiln__attention_divide_in_cluster(p, &way, false);
    return kiln__attention_launch(stream, name, p, &way, &module->kernels[op->join]);
}

#endif
