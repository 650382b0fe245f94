/* Attention, on contiguous tensors and on paged caches. ops.h has the rules for every operator. */
#ifndef KILN_OPS_ATTENTION_H
#define KILN_OPS_ATTENTION_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- mha: out = softmax(mask(scale * q k^T)) v, multi-head attention --------------------------------------------- */

/* The kernel that a call uses. */
typedef enum kiln_mha_kernel {
    KILN_MHA_KERNEL_AUTO,     /* one that uses matrix units (tensor cores) if the image has one for the call */
    KILN_MHA_KERNEL_PORTABLE, /* f32 arithmetic with one rounding; every image has it */
} kiln_mha_kernel;

typedef struct kiln_mha_params {
    void *out;                   /* [tokens, heads, head_dim] */
    float *lse;                  /* [heads, tokens]: log-sum-exp of each query's scores; NULL: not wanted */
    const void *q;               /* [tokens, heads, head_dim] */
    const void *k;               /* [kv_tokens, kv_heads, head_dim]; k and v may be NULL if kv_tokens is 0 */
    const void *v;               /* [kv_tokens, kv_heads, head_dim] */
    const int32_t *cu_seqlens_q; /* [batch + 1], from 0: the row of q at which each sequence begins, and the end of the
                                  * last; NULL: tokens / batch rows each */
    const int32_t *cu_seqlens_k; /* [batch + 1], from 0: the same for k and v; NULL: kv_tokens / batch rows each */
    const int32_t *seqlens_k;    /* [batch]: how many of its rows of k and v each sequence uses; NULL: all */
    int64_t tokens;              /* tokens and kv_tokens are at most 2^31 - 1 */
    int64_t kv_tokens;
    int64_t batch; /* sequences, at most 2^24 */
    int64_t heads; /* a multiple of kv_heads, at most 2^16: head h uses kv head h / (heads / kv_heads) */
    int64_t kv_heads;
    int64_t head_dim;   /* at most 256 */
    int64_t out_stride; /* between tokens; 0: packed. Heads are packed within a token */
    int64_t q_stride;
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_q;  /* with cu_seqlens_q: the most queries of any sequence, 0: tokens; without: 0. At most
                            * 2^31 - 1 when multiplied by heads / kv_heads */
    int64_t max_seqlen_k;  /* with cu_seqlens_k: the most keys of any sequence, 0: kv_tokens; without: 0 */
    int64_t window_left;   /* how many keys a query sees up to and including its own position; 0: all. At most 2^31 - 1.
                            * FlashAttention's window_size excludes the position: its w is w + 1 here, its -1 is 0 */
    int64_t window_right;  /* how many keys a query sees from its own position on, including it; 0: all. At most
                            * 2^31 - 1. FlashAttention's w is w + 1, its -1 is 0 */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_mha_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 / sqrt(head_dim) */
    float softcap;         /* scores become softcap * tanh(score / softcap) before the mask; 1e-6 to 1e6. 0: off */
    int32_t causal;        /* 0 or 1; 1 is the same as window_right 1 */
    int32_t kernel;        /* kiln_mha_kernel */
} kiln_mha_params;

/* Attention (Vaswani et al., arXiv 1706.03762) with grouped heads (Ainslie et al., arXiv 2305.13245), in one pass over
 * the keys (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv 2205.14135). Positions are aligned at the end:
 * the last query of a sequence is at the position of its last key. A query that sees no key gives zeros, and -inf in
 * lse. A NaN or infinity in v may affect queries of its sequence that do not see its key, because it is multiplied by
 * 0; one in k does not. cu_seqlens_q and cu_seqlens_k, which must not decrease, and seqlens_k are read on the device
 * and may change between replays of a graph; values beyond the sizes given here are clamped. Rows of out and lse that
 * belong to no sequence, or that are clamped off, are left unchanged.
 *
 * In f16 and bf16, images for sm_80 and later use matrix units if head_dim is a multiple of 8, q, k, v and out and
 * their strides are aligned to 16 bytes, and scale is positive or softcap is set. They accumulate in f32, but round
 * each weight, the exp of a score less the row's maximum so far, to the precision before multiplying it by v, as
 * FlashAttention does. All other calls, and KILN_MHA_KERNEL_PORTABLE, compute in f32 with one rounding. */
KILN_OPERATOR_FUNCTION(mha_f32, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_f16, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_bf16, kiln_mha_params)

/* The bytes of workspace that let mha divide the keys among several blocks where queries are few, as in decoding; 0
 * where that does not pay. Of the pointers it matters only whether cu_seqlens_q and cu_seqlens_k are NULL. The size
 * depends on the kernels of the image for the stream's device, which this function loads unless it is already loaded.
 * Without workspace the keys are not divided: the call is slower and may differ in the last bits. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, and what loading can return. */
KILN_WORKSPACE_FUNCTION(mha_f32, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_f16, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_bf16, kiln_mha_params)

/* ---- mha_paged: mha with keys and values in a paged cache -------------------------------------------------------- */

typedef struct kiln_mha_paged_params {
    void *out;                   /* [tokens, heads, head_dim] */
    float *lse;                  /* [heads, tokens]; NULL: not wanted */
    const void *q;               /* [tokens, heads, head_dim] */
    const void *k_cache;         /* [blocks, block_size, kv_heads, head_dim], as kv_store writes it */
    const void *v_cache;         /* [blocks, block_size, kv_heads, head_dim] */
    const int32_t *block_table;  /* [batch, max_blocks_per_seq]: the blocks of each sequence, in order. Only as many as
                                  * its keys need are read; a number outside the cache is taken as its last block */
    const int32_t *seqlens_k;    /* [batch]: number of keys of each sequence */
    const int32_t *cu_seqlens_q; /* [batch + 1], from 0: the row of q at which each sequence begins, and the end of the
                                  * last; NULL: tokens / batch rows each */
    int64_t tokens;              /* tokens, batch, heads, kv_heads and head_dim: as in kiln_mha_params */
    int64_t blocks;              /* at most 2^31 - 1 */
    int64_t block_size;          /* a power of two, at most 2^20 */
    int64_t batch;
    int64_t max_blocks_per_seq; /* columns of block_table; their keys are at most 2^31 - 1 */
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;   /* at most 256 */
    int64_t out_stride; /* between tokens; 0: packed */
    int64_t q_stride;
    int64_t k_cache_stride; /* between keys; 0: packed. A block is block_size keys */
    int64_t v_cache_stride;
    int64_t max_seqlen_q; /* with cu_seqlens_q: the most queries of any sequence, 0: tokens; without: 0 */
    int64_t window_left;  /* this field and all that follow: as in kiln_mha_params */
    int64_t window_right;
    void *workspace;
    size_t workspace_size; /* 0, or at least kiln_mha_paged_<precision>_workspace_size() */
    float scale;
    float softcap;
    int32_t causal;
    int32_t kernel; /* kiln_mha_kernel */
} kiln_mha_paged_params;

/* Equals mha on the keys and values gathered from the cache (Kwon et al., arXiv 2309.06180), bit for bit if both divide
 * the keys in the same way. */
KILN_OPERATOR_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

/* As for mha, assuming that the longest sequence fills its row of block_table. */
KILN_WORKSPACE_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

#ifdef __cplusplus
}
#endif

#endif
