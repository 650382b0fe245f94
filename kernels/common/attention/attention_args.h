/* Attention: the one argument of its kernels, on every backend, for contiguous and for paged keys and values. Only
 * paged ones have codes and trees, and only contiguous ones a mask that is added. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_ARGS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_ATTENTION_KEYS = KILN_SUBGROUP, /* of a tile: one for each thread of a subgroup */
    KILN_ATTENTION_SUBGROUPS = KILN_BLOCK / KILN_SUBGROUP,
    KILN_ATTENTION_ROWS = 4,         /* the most that a subgroup does */
    KILN_ATTENTION_DIM = 256,        /* the most elements of a head */
    KILN_ATTENTION_DECODE_ROWS = 16, /* the most of a tuned kernel whose warps all have the same ones */
    KILN_ATTENTION_ANY = 0x7fffffff  /* a window without an end */
};

/* From row to row in shared memory: floats. */
#define KILN_ATTENTION_STRIDE(head_dim) (((head_dim) + KILN_SUBGROUP - 1) / KILN_SUBGROUP * KILN_SUBGROUP + 4)

/* A row is a query of one head. Those heads that share keys and values, group of them, are neighbours: row r of a
 * sequence is query r / group of head r % group. */
KILN_ARGS_BEGIN
typedef struct kiln_attention_args {
    void *out;
    const void *q;
    const void *k;
    const void *v;
    float *lse;                  /* [heads, tokens]; NULL: not wanted */
    const int32_t *cu_seqlens_q; /* [batch + 1]; NULL: sequences of max_seqlen_q */
    const int32_t *cu_seqlens_k; /* [batch + 1]; NULL: sequences of max_seqlen_k */
    const int32_t *seqlens_k;    /* [batch]; NULL: whole sequences */
    const int32_t *block_table;  /* [batch, max_blocks_per_seq]: blocks of the sequences, where they are paged */
    float *partials;             /* [splits, tokens, heads, head_dim], and their maximum and sum; NULL with one split */
    const float *k_scale;        /* [cache_scales]: what k's codes are multiplied with, where it has codes; NULL: 1 */
    const float *v_scale;        /* the same for v */
    union {
        const uint32_t *tree_mask; /* [tokens, tree_words]: which of its tree's keys a query sees; NULL: all */
        const void *mask;          /* [mask_batch, mask_heads, mask_rows, mask_cols]; NULL: none */
    };
    int64_t tokens;
    int64_t out_stride; /* between tokens */
    int64_t q_stride;
    int64_t k_stride;
    int64_t v_stride;
    uint32_t batch;
    uint32_t kv_heads;
    uint32_t group; /* heads of q for each of k and v */
    uint32_t head_dim;
    uint32_t max_seqlen_q; /* of the longest sequence */
    uint32_t max_seqlen_k;
    uint32_t row_tiles; /* of the longest sequence, KILN_ATTENTION_SUBGROUPS * rows rows each */
    uint32_t rows;      /* that a subgroup does */
    uint32_t splits;    /* how many blocks share the keys of a tile */
    uint32_t split;     /* keys of each */
    uint32_t blocks;    /* of the cache, and a block's size; contiguous keys are blocks of one */
    uint32_t block_log2;
    uint32_t max_blocks_per_seq;
    uint32_t left; /* keys that are seen from the query's own place backwards, and forwards: both count its own */
    uint32_t right;
    uint32_t wide; /* non-zero: heads of k and v are 16-byte aligned */
    float scale;
    float softcap;   /* 0: none */
    uint32_t stages; /* of a warp's ring of tiles in shared memory: decode */
    uint32_t codes;  /* non-zero: k and v are E4M3 */
    union {
        uint32_t cache_scales;
        uint32_t mask_batch; /* 1: the same for all sequences */
    };
    union {
        uint32_t tree_words;
        uint32_t mask_heads; /* 1: the same for all heads */
    };
    union {
        uint32_t tree_nodes; /* the last keys of a sequence, which are its tree's; 0: as many as its queries */
        uint32_t mask_rows;  /* at least as many as a sequence's queries */
    };
    uint32_t mask_cols; /* at least as many as its keys */
} kiln_attention_args;
KILN_ARGS_END

#endif
