/* Caches of keys and values: storing, copying and compacting. ops.h has the rules for every operator. */
#ifndef KILN_OPS_CACHE_H
#define KILN_OPS_CACHE_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kv_store: writes the keys and values of tokens into slots of a cache ---------------------------------------- */

typedef struct kiln_kv_store_params {
    void *key_cache;          /* [capacity, cols]: for a paged cache, capacity is blocks * block_size and cols is
                               * kv_heads * head_dim; the slot of a token is block * block_size + offset */
    void *value_cache;        /* [capacity, cols] */
    const void *key;          /* [tokens, cols] */
    const void *value;        /* [tokens, cols] */
    const void *slot_mapping; /* [tokens], of index_type: the row of the caches into which each token is stored. A token
                               * whose slot is outside the caches, such as -1, is skipped */
    int64_t tokens;
    int64_t cols;
    int64_t capacity;
    int64_t key_stride;         /* 0: cols */
    int64_t value_stride;       /* 0: cols */
    int64_t key_cache_stride;   /* 0: cols */
    int64_t value_cache_stride; /* 0: cols */
    int32_t index_type;         /* kiln_index_type of slot_mapping */
    int32_t cache_type;         /* kiln_cache_type of the caches */
    const float *k_scale;       /* [cache_scales]: key = code * k_scale; NULL: 1. Used with KILN_CACHE_E4M3 only */
    const float *v_scale;       /* [cache_scales]: value = code * v_scale; as k_scale */
    int64_t cache_scales;       /* 1 (0: 1): one scale for all columns; kv_heads: one for each kv head, which has cols /
                                 * cache_scales columns. Must divide cols */
} kiln_kv_store_params;

/* Stores the key and value of each token in the row of its slot. Rows are copied bit for bit; other rows of the caches
 * are left unchanged. If two tokens have the same slot, it is unspecified which of them is stored.
 *
 * In an E4M3 cache the codes are x * (1 / scale), rounded to nearest even, as computed by kiln_quantize_fp8 for a given
 * scale: magnitudes above 448, infinities included, become 448 with their sign, and NaN becomes 0x7f. A scale that is
 * not a positive normal number counts as 1. The codes are bit-identical on every device. */
KILN_OPERATOR_FUNCTION(kv_store_f32, kiln_kv_store_params)
KILN_OPERATOR_FUNCTION(kv_store_f16, kiln_kv_store_params)
KILN_OPERATOR_FUNCTION(kv_store_bf16, kiln_kv_store_params)

/* ---- rope_kv_store: rope of queries and keys, and kv_store of the keys and the values, in one launch ------------- */

typedef struct kiln_rope_kv_store_params {
    void *query_out;            /* [tokens, heads, head_dim]; may be query, with the same stride */
    void *key_cache;            /* [capacity, kv_heads, head_dim], as in kiln_kv_store_params */
    void *value_cache;          /* [capacity, kv_heads, head_dim] */
    const void *query;          /* [tokens, heads, head_dim] */
    const void *key;            /* [tokens, kv_heads, head_dim]: stored rotated; not modified */
    const void *value;          /* [tokens, kv_heads, head_dim] */
    const void *slot_mapping;   /* [tokens], of slot_type: the row of the caches into which each token is stored. For a
                                 * token whose slot is outside the caches, such as -1, only the query is rotated */
    const void *positions;      /* [tokens], of position_type; NULL: 0, 1, 2 and so on */
    const int64_t *frequencies; /* [pairs]: full turns per position, times 2^64, from kiln_rope_frequencies. NULL:
                                 * use the table */
    const void *cosines;        /* [table_rows, pairs], of table_type: row p is for position p */
    const void *sines;          /* [table_rows, pairs] */
    const float *k_scale;       /* [cache_scales]: key = code * k_scale; NULL: 1. Used with KILN_CACHE_E4M3 only */
    const float *v_scale;       /* [cache_scales]: value = code * v_scale; as k_scale */
    int64_t tokens;
    int64_t heads;    /* heads, kv_heads and pairs are at most 2^20 */
    int64_t kv_heads; /* 0: nothing is stored, as with a capacity of 0 */
    int64_t head_dim;
    int64_t pairs; /* pairs per head: its first 2 * pairs elements are rotated, the others are copied */
    int64_t capacity;
    int64_t table_rows;         /* tokens whose position is not in the table are not rotated */
    int64_t cache_scales;       /* 1 (0: 1): one scale for all heads; kv_heads: one for each */
    int64_t query_out_stride;   /* between tokens; 0: packed, heads * head_dim */
    int64_t query_stride;       /* between tokens; 0: packed */
    int64_t key_stride;         /* between tokens; 0: packed, kv_heads * head_dim */
    int64_t value_stride;       /* between tokens; 0: packed */
    int64_t key_cache_stride;   /* between rows; 0: packed */
    int64_t value_cache_stride; /* between rows; 0: packed */
    int64_t table_stride;       /* between rows of cosines and of sines; 0: pairs */
    float scale;                /* multiplies cosines and sines, as YaRN's attention factor does; 0: 1 */
    int32_t layout;             /* kiln_rope_layout */
    int32_t position_type;      /* kiln_index_type of positions */
    int32_t slot_type;          /* kiln_index_type of slot_mapping */
    int32_t table_type;         /* kiln_rope_table */
    int32_t cache_type;         /* kiln_cache_type of the caches */
} kiln_rope_kv_store_params;

/* On the same device the results are bit-identical to those of kiln_rope on the queries and on the keys, with results
 * rounded to the precision, followed by kiln_kv_store. If two tokens have the same slot, it is unspecified which of
 * them is stored. */
KILN_OPERATOR_FUNCTION(rope_kv_store_f32, kiln_rope_kv_store_params)
KILN_OPERATOR_FUNCTION(rope_kv_store_f16, kiln_rope_kv_store_params)
KILN_OPERATOR_FUNCTION(rope_kv_store_bf16, kiln_rope_kv_store_params)

/* ---- kv_copy_blocks: copies blocks within a paged cache ---------------------------------------------------------- */

typedef struct kiln_kv_copy_blocks_params {
    void *key_cache;   /* [blocks, cols]: cols is block size * kv heads * head_dim */
    void *value_cache; /* [blocks, cols] */
    const void *pairs; /* [count, 2], of index_type: source block, destination block */
    int64_t count;
    int64_t blocks;
    int64_t cols;
    int32_t index_type; /* kiln_index_type of pairs */
    int32_t cache_type; /* kiln_cache_type of the caches. Codes are moved in units of the precision's elements: cols and
                         * the caches' addresses must be multiples of their size, 4 for f32, 2 for f16 and bf16 */
} kiln_kv_copy_blocks_params;

/* Copies blocks within the key and value caches: the copy-on-write of paged caches (Kwon et al., arXiv 2309.06180), in
 * which a sequence that is about to write into a shared block first gets its own copy. Pairs with a block outside the
 * cache are skipped. A destination must not be the source or the destination of another pair. */
KILN_OPERATOR_FUNCTION(kv_copy_blocks_f32, kiln_kv_copy_blocks_params)
KILN_OPERATOR_FUNCTION(kv_copy_blocks_f16, kiln_kv_copy_blocks_params)
KILN_OPERATOR_FUNCTION(kv_copy_blocks_bf16, kiln_kv_copy_blocks_params)

/* ---- kv_compact: moves the accepted tokens of draft trees together in a cache ------------------------------------ */

typedef struct kiln_kv_compact_params {
    void *key_cache;          /* [capacity, cols]: row block * block size + offset */
    void *value_cache;        /* [capacity, cols] */
    const void *slot_mapping; /* [batch, nodes], of index_type: the slots passed to kiln_kv_store for the trees */
    const int32_t *path;      /* [batch, depth], nodes in ascending order: the root, 0, then the accepted nodes */
    const int32_t *accepted;  /* [batch]: accepted nodes of each path, including the root; at most depth and nodes */
    int64_t batch;
    int64_t nodes;
    int64_t depth;
    int64_t cols; /* kv heads * head_dim */
    int64_t capacity;
    int64_t key_cache_stride;   /* 0: cols */
    int64_t value_cache_stride; /* 0: cols */
    int32_t index_type;         /* kiln_index_type of slot_mapping */
    int32_t cache_type;         /* kiln_cache_type of the caches. Codes are moved in units of the precision's elements:
                                 * cols, the strides and the caches' addresses must be multiples of their size, 4 for
                                 * f32 and 2 for f16 and bf16 */
} kiln_kv_compact_params;

/* For each sequence and each i less than its accepted, the cache rows of node path[i] are copied, bit for bit, to those
 * of node i. The accepted tokens are then at the positions where the sequence continues, and kiln_blocks_truncate
 * removes the rest. Nodes and slots that do not exist are skipped. The slots of one call must be distinct.
 * <kiln/tree.h> creates trees and finds paths. */
KILN_OPERATOR_FUNCTION(kv_compact_f32, kiln_kv_compact_params)
KILN_OPERATOR_FUNCTION(kv_compact_f16, kiln_kv_compact_params)
KILN_OPERATOR_FUNCTION(kv_compact_bf16, kiln_kv_compact_params)

#ifdef __cplusplus
}
#endif

#endif
