/* mha_paged, host side. */
#include "kernels/common/attention/attention_host.h"

extern const kiln_bundle kiln__bundle_mha_paged;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/mha_paged/mha_paged.def"
};

static const kiln__attention_operator operator_mha_paged = {
    .number = KILN__OPERATOR_mha_paged,
    .bundle = &kiln__bundle_mha_paged,
    .attend = KERNEL_mha_paged_attend,
    .join = KERNEL_mha_paged_join,
    .tuned = KERNEL_mha_paged_prefill_64,
    .tuned_count = KERNEL_mha_paged_decode_cluster_e4m3_128 - KERNEL_mha_paged_prefill_64 + 1,
    .no_codes = 1u << KERNEL_mha_paged_wgmma_256 | 1u << KERNEL_mha_paged_decode_128 |
                1u << KERNEL_mha_paged_decode_256 | 1u << KERNEL_mha_paged_decode_narrow_128 |
                1u << KERNEL_mha_paged_decode_cluster_128 | 1u << KERNEL_mha_paged_decode_cluster_256,
    .only_codes = 1u << KERNEL_mha_paged_decode_e4m3_128 | 1u << KERNEL_mha_paged_decode_narrow_e4m3_128 |
                  1u << KERNEL_mha_paged_decode_cluster_e4m3_128,
    .split_least = 64,
    .no_masks = 1u << KERNEL_mha_paged_wgmma_256,
    .clusters = 1u << KERNEL_mha_paged_decode_cluster_128 | 1u << KERNEL_mha_paged_decode_cluster_256 |
                1u << KERNEL_mha_paged_decode_cluster_e4m3_128,
};

/* The sizes and strides of the cache and of block_table. */
static kiln_status read_blocks(const char *name, const kiln_mha_paged_params *params, kiln__attention *p) {
    int64_t capacity;
    KILN__REQUIRE(params->block_size && !(params->block_size & (params->block_size - 1)),
                  "%s: block_size is %lld: must be a power of two", name, (long long)params->block_size);
    bool overflow =
        __builtin_mul_overflow(params->max_blocks_per_seq, params->block_size, &capacity) || capacity > INT32_MAX;
    KILN__REQUIRE(!overflow, "%s: max_blocks_per_seq is %lld: is too large for blocks of %lld keys", name,
                  (long long)params->max_blocks_per_seq, (long long)params->block_size);
    p->kv_rows = params->blocks * params->block_size;
    p->max_seqlen_k = params->blocks ? capacity : 0;
    p->args.blocks = (uint32_t)params->blocks;
    p->args.block_log2 = (uint32_t)__builtin_ctzll((uint64_t)params->block_size);
    p->args.max_blocks_per_seq = (uint32_t)params->max_blocks_per_seq;
    return KILN_OK;
}

/* The type of the cache's elements, and their scales. */
static kiln_status read_codes(const char *name, const kiln_mha_paged_params *params, kiln__attention *p) {
    const float *const scales[] = {params->k_scale, params->v_scale};
    KILN__TRY(kiln__cache_type_check(name, params->cache_type));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__TRY(kiln__size_check(name, "cache_scales", params->cache_scales, 1 << 16));
    p->args.codes = params->cache_type == KILN_CACHE_E4M3;
    KILN__REQUIRE(params->cache_scales == 0 || params->cache_scales == 1 || params->cache_scales == params->kv_heads,
                  "%s: cache_scales is %lld: must be 1 (0: 1) or kv_heads, which is %lld", name,
                  (long long)params->cache_scales, (long long)params->kv_heads);
    if (!p->args.codes) p->args.k_scale = p->args.v_scale = NULL;
    p->args.cache_scales = params->cache_scales ? (uint32_t)params->cache_scales : 1;
    for (int i = 0; i < 2; i++) {
        const char *tensor = i ? "v_scale" : "k_scale";
        KILN__TRY(kiln__packed_check(name, tensor, scales[i], false, 1, p->args.cache_scales));
    }
    return KILN_OK;
}

/* The mask of the queries' trees. */
static kiln_status read_tree(const char *name, const kiln_mha_paged_params *params, kiln__attention *p) {
    int64_t words = params->tree_words, nodes = params->tree_nodes;
    KILN__TRY(kiln__size_check(name, "tree_words", words, 1 << 20));
    KILN__TRY(kiln__size_check(name, "tree_nodes", nodes, 32 << 20));
    if (!params->tree_mask) return KILN_OK;
    KILN__REQUIRE((nodes ? nodes : p->max_seqlen_q) <= 32 * words,
                  "%s: tree_words is %lld: must be at least 1 for each 32 of %s, which is %lld", name, (long long)words,
                  nodes ? "tree_nodes" : "a sequence's queries", (long long)(nodes ? nodes : p->max_seqlen_q));
    p->args.tree_words = (uint32_t)words;
    p->args.tree_nodes = (uint32_t)nodes;
    return kiln__packed_check(name, "tree_mask", params->tree_mask, true, p->tokens, words);
}

/* The call that params describe. Everything but the tensors is checked. */
static kiln_status read_params(const char *name, const kiln_mha_paged_params *params, kiln__attention *p) {
    *p = (kiln__attention){
        KILN__ATTENTION_OF(params),
        .softcap = params->softcap,
        .paged = true,
        .args = {KILN__ATTENTION_ARGS_OF(params), .k = params->k_cache, .v = params->v_cache,
                 .block_table = params->block_table, .k_stride = params->k_cache_stride,
                 .v_stride = params->v_cache_stride, .k_scale = params->k_scale, .v_scale = params->v_scale,
                 .tree_mask = params->tree_mask},
    };
    KILN__TRY(kiln__attention_sizes_check(name, p));
    KILN__TRY(kiln__size_check(name, "blocks", params->blocks, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "block_size", params->block_size, 1 << 20));
    KILN__TRY(kiln__size_check(name, "max_blocks_per_seq", params->max_blocks_per_seq, INT32_MAX));
    if (kiln__attention_is_empty(p)) return KILN_OK;
    KILN__TRY(kiln__attention_check(name, p));
    KILN__TRY(read_codes(name, params, p));
    KILN__TRY(read_tree(name, params, p));
    return read_blocks(name, params, p);
}

static kiln_status mha_paged(kiln_stream *stream, const kiln_mha_paged_params *params, size_t params_size,
                             unsigned part, const char *name) {
    kiln_mha_paged_params copy;
    kiln__attention p;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(read_params(name, params, &p));
    return kiln__attention_call(stream, name, &p, part, &operator_mha_paged);
}

static kiln_status mha_paged_workspace(kiln_stream *stream, const kiln_mha_paged_params *params, size_t params_size,
                                       unsigned part, size_t *out_size, const char *name) {
    KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);
    *out_size = 0;
    kiln_mha_paged_params copy;
    kiln__attention p;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(read_params(name, params, &p));
    return kiln__attention_workspace(stream, &p, part, &operator_mha_paged, out_size);
}

#define MHA_PAGED(part, size)                                                                                          \
    KILN__KEPT_OPERATOR_FUNCTION(mha_paged, part)                                                                      \
    kiln_status kiln_mha_paged_##part##_workspace_size_sized(kiln_stream *stream, const kiln_mha_paged_params *params, \
                                                             size_t params_size, size_t *out_size) {                   \
        return mha_paged_workspace(stream, params, params_size, KILN__PART_##part, out_size, "mha_paged_" #part);      \
    }
KILN__FLOAT_PARTS(MHA_PAGED)
