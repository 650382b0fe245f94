/* Attention on all backends: which queries and keys a block processes. The includer (attention_gpu.h, attention_cpu.h)
 * defines KILN_INLINE, and its own includer PAGED: 1 where keys lie in blocks of a cache, 0 where they are contiguous.
 */
#ifndef KILN_KERNELS_COMMON_ATTENTION_SEQUENCE_H
#define KILN_KERNELS_COMMON_ATTENTION_SEQUENCE_H

#include "kernels/common/attention/attention_args.h"
#include "kernels/common/math/logarithm.h"

/* A sequence of the batch: where its queries begin in q and its keys in k and v (unless they are paged), and how
 * many there are. cu_seqlens are limited to the rows that exist, and lengths to the longest that the caller
 * gave. */
typedef struct kiln_sequence {
    uint32_t q_first;
    uint32_t kv_first;
    uint64_t table; /* where its blocks begin in block_table, if they are paged */
    uint32_t seqlen_q;
    uint32_t seqlen_k;
} kiln_sequence;

KILN_INLINE uint32_t kiln_clipped(int32_t length, uint32_t most) {
    uint32_t positive = length < 0 ? 0 : (uint32_t)length;
    return positive < most ? positive : most;
}

/* The first of a sequence's rows, and how many there are, at most `most`. */
KILN_INLINE uint32_t kiln_sequence_rows(const int32_t *cu_seqlens, uint32_t batch, uint32_t rows, uint32_t most,
                                        uint32_t *out_length) {
    uint32_t begin = kiln_clipped(cu_seqlens[batch], rows);
    *out_length = kiln_clipped((int32_t)(kiln_clipped(cu_seqlens[batch + 1], rows) - begin), most);
    return begin;
}

KILN_INLINE kiln_sequence kiln_sequence_of(const kiln_attention_args *args, uint32_t batch) {
    kiln_sequence s;
    s.q_first = batch * args->max_seqlen_q;
    s.seqlen_q = args->max_seqlen_q;
    if (args->cu_seqlens_q)
        s.q_first =
            kiln_sequence_rows(args->cu_seqlens_q, batch, (uint32_t)args->tokens, args->max_seqlen_q, &s.seqlen_q);
    s.kv_first = batch * args->max_seqlen_k;
    s.seqlen_k = args->max_seqlen_k;
    if (args->cu_seqlens_k)
        s.kv_first = kiln_sequence_rows(args->cu_seqlens_k, batch, args->blocks, args->max_seqlen_k, &s.seqlen_k);
    if (args->seqlens_k) s.seqlen_k = kiln_clipped(args->seqlens_k[batch], s.seqlen_k);
    s.table = (uint64_t)batch * args->max_blocks_per_seq;
    return s;
}

/* Whether a sequence has this row of q: the first that ends after it, if that begins no later and was not shortened. */
KILN_INLINE bool kiln_sequence_has(const kiln_attention_args *args, uint32_t token) {
    if (!args->cu_seqlens_q) return true;
    uint32_t batch = 0, end = args->batch, first, length;
    while (batch < end) {
        uint32_t middle = batch + (end - batch) / 2;
        if (kiln_clipped(args->cu_seqlens_q[middle + 1], (uint32_t)args->tokens) > token)
            end = middle;
        else
            batch = middle + 1;
    }
    if (batch == args->batch) return false;
    first = kiln_sequence_rows(args->cu_seqlens_q, batch, (uint32_t)args->tokens, args->max_seqlen_q, &length);
    return token - first < length;
}

/* The block of the cache that has a key of the sequence, if the cache is paged. A number beyond the cache's blocks
 * counts as the last block. */
KILN_INLINE uint32_t kiln_key_block(const kiln_attention_args *args, const kiln_sequence *s, uint32_t key) {
    if (!PAGED) return 0;
    uint32_t block = (uint32_t)args->block_table[s->table + (key >> args->block_log2)];
    return block < args->blocks ? block : args->blocks - 1;
}

/* The row of k and v that has a key of the sequence, given the key's block. */
KILN_INLINE uint64_t kiln_block_row(const kiln_attention_args *args, const kiln_sequence *s, uint32_t block,
                                    uint32_t key) {
    if (!PAGED) return s->kv_first + key;
    return ((uint64_t)block << args->block_log2) + (key & ((1u << args->block_log2) - 1));
}
KILN_INLINE uint64_t kiln_key_row(const kiln_attention_args *args, const kiln_sequence *s, uint32_t key) {
    return kiln_block_row(args, s, kiln_key_block(args, s, key), key);
}

/* The keys that a query sees: from `begin` to before `end`. The last query is at the position of the last key. */
typedef struct kiln_window {
    uint32_t begin, end;
} kiln_window;

KILN_INLINE kiln_window kiln_window_of(const kiln_attention_args *args, const kiln_sequence *s, uint32_t query) {
    int64_t own = (int64_t)query + s->seqlen_k - s->seqlen_q, length = s->seqlen_k;
    int64_t begin = args->left == KILN_ATTENTION_ANY ? 0 : own - args->left + 1;
    int64_t end = args->right == KILN_ATTENTION_ANY ? length : own + args->right;
    begin = begin < 0 ? 0 : begin;
    end = end > length ? length : end;
    kiln_window window;
    window.begin = (uint32_t)(begin < end ? begin : 0);
    window.end = (uint32_t)(begin < end ? end : 0);
    return window;
}

/* The first key of the sequence that belongs to its tree, if queries have a tree mask. It may be negative. */
KILN_INLINE int32_t kiln_tree_begin(const kiln_attention_args *args, const kiln_sequence *s) {
    return (int32_t)(s->seqlen_k - (args->tree_nodes ? args->tree_nodes : s->seqlen_q));
}

/* Which of the 32 keys from this one on the query in this row of q sees by its tree mask, a bit each: keys outside the
 * tree are seen. tree: kiln_tree_begin(). */
KILN_INLINE uint32_t kiln_tree_bits(const kiln_attention_args *args, int32_t tree, uint64_t token, uint32_t key) {
    if (!PAGED || !args->tree_mask) return 0xffffffffu;
    int32_t node = (int32_t)(key - (uint32_t)tree), words = (int32_t)args->tree_words;
    const uint32_t *row = args->tree_mask + token * args->tree_words;
    int32_t word = node >> 5, next = word + 1; /* both are clamped to the row, without branches */
    uint32_t low = row[word < 0 ? 0 : word < words ? word : words - 1];
    uint32_t high = row[next < 0 ? 0 : next < words ? next : words - 1];
    low = word < 0 ? 0xffffffffu : word < words ? low : 0;
    high = next < 0 ? 0xffffffffu : next < words ? high : 0;
    return low >> (node & 31) | high << 1 << (31 - (node & 31));
}

/* Where a query's row of the mask begins, in elements: at key 0 of its sequence. */
KILN_INLINE uint64_t kiln_mask_row(const kiln_attention_args *args, uint32_t batch, uint32_t head, uint32_t query) {
    uint64_t plane = args->mask_batch > 1 ? batch : 0;
    plane = plane * args->mask_heads + (args->mask_heads > 1 ? head : 0);
    return (plane * args->mask_rows + query) * args->mask_cols;
}

/* The scale of the codes of a head of k or of v. */
KILN_INLINE float kiln_cache_scale(const kiln_attention_args *args, const float *scales, uint32_t kv_head) {
    if (!PAGED || !scales) return 1.0f;
    return scales[args->cache_scales > 1 ? kv_head : 0];
}

/* The work of a block: several rows of a sequence that share a head of k and v, and a share of their keys. */
typedef struct kiln_attention_work {
    uint32_t batch, kv_head, split;
    uint32_t row; /* the first */
    uint32_t key, key_end;
} kiln_attention_work;

/* tile: kiln_tile(); block: kiln_block(). */
KILN_INLINE kiln_attention_work kiln_attention_work_of(const kiln_attention_args *args, uint32_t tile, uint32_t block) {
    kiln_attention_work work;
    uint32_t rest = block / args->splits;
    work.split = block % args->splits;
    work.kv_head = rest % args->kv_heads;
    work.batch = rest / args->kv_heads;
    work.row = tile * args->rows * KILN_ATTENTION_SUBGROUPS;
    work.key = work.split * args->split;
    work.key_end = work.key + args->split;
    return work;
}

/* Drops, at both ends, the tiles of keys that no row from work->row to before `end` sees. */
KILN_INLINE void kiln_attention_trim(const kiln_attention_args *args, const kiln_sequence *s, uint32_t end,
                                     kiln_attention_work *work) {
    kiln_window first = kiln_window_of(args, s, work->row / args->group);
    kiln_window last = kiln_window_of(args, s, (end - 1) / args->group);
    uint32_t begin = first.end ? first.begin : 0; /* a first query that sees nothing may precede ones that see keys */
    begin = begin / KILN_ATTENTION_KEYS * KILN_ATTENTION_KEYS; /* so that tiles end where a share ends */
    work->key = work->key > begin ? work->key : begin;
    work->key_end = work->key_end < last.end ? work->key_end : last.end;
}

/* The score of a key, scaled and capped. */
KILN_INLINE float kiln_score(const kiln_attention_args *args, float dot) {
    float score = dot * args->scale;
    if (args->softcap == 0.0f) return score;
    float twice = score * 2.0f * kiln_reciprocal(args->softcap), bounded = twice < 80.0f ? twice : 80.0f;
    float tanh = 1.0f - 2.0f * kiln_reciprocal(1.0f + kiln_exp(twice == twice ? bounded : twice));
    return args->softcap * tanh;
}

/* The index of a row among partial results. The maximum and sum of each are stored after all of them. */
KILN_INLINE uint64_t kiln_partial_row(const kiln_attention_args *args, uint32_t split, uint64_t token, uint32_t head) {
    uint32_t heads = args->kv_heads * args->group;
    return ((uint64_t)split * (uint64_t)args->tokens + token) * heads + head;
}
KILN_INLINE float *kiln_partial_scales(const kiln_attention_args *args) {
    uint64_t rows = kiln_partial_row(args, args->splits, 0, 0);
    return args->partials + rows * args->head_dim;
}

#endif
