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
    KILN_MHA_KERNEL_AUTO,     /* a kernel that uses matrix units (tensor cores), if the image has one for the call */
    KILN_MHA_KERNEL_PORTABLE, /* f32 arithmetic with one rounding; available in every image */
} kiln_mha_kernel;

/* The types in which the two products are computed. */
typedef enum kiln_mha_compute {
    KILN_MHA_COMPUTE_PRECISION,  /* the function's precision: q, k and v as they are */
    KILN_MHA_COMPUTE_INT8_X_FP8, /* q, and k minus its mean, as int8; v and the weights as E4M3 */
    KILN_MHA_COMPUTE_FP8,        /* all as E4M3, k minus its mean */
    KILN_MHA_COMPUTE_NVFP4,      /* all as NVFP4, k minus its mean */
} kiln_mha_compute;

typedef struct kiln_mha_params {
    void *out;                   /* [tokens, heads, head_dim] */
    float *lse;                  /* [heads, tokens]: natural log-sum-exp of each query's scores; NULL: not written */
    const void *q;               /* [tokens, heads, head_dim] */
    const void *k;               /* [kv_tokens, kv_heads, head_dim]; k and v may be NULL if kv_tokens is 0 */
    const void *v;               /* [kv_tokens, kv_heads, head_dim] */
    const int32_t *cu_seqlens_q; /* [batch + 1], from 0: the row of q at which each sequence begins, and the end of the
                                  * last; NULL: tokens / batch rows each */
    const int32_t *cu_seqlens_k; /* [batch + 1], from 0: the same for k and v; NULL: kv_tokens / batch rows each */
    const int32_t *seqlens_k;    /* [batch]: the number of its rows of k and v that each sequence uses; NULL: all */
    int64_t tokens;              /* tokens and kv_tokens are at most 2^31 - 1 */
    int64_t kv_tokens;
    int64_t batch; /* sequences, at most 2^24 */
    int64_t heads; /* a multiple of kv_heads, at most 2^16: head h uses kv head h / (heads / kv_heads) */
    int64_t kv_heads;
    int64_t head_dim;   /* at most 256 */
    int64_t out_stride; /* elements between tokens; 0: packed. Heads are packed within a token */
    int64_t q_stride;   /* this field and the next two: as out_stride */
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_q; /* with cu_seqlens_q: the maximum number of queries of any sequence, 0: tokens; without: 0. At
                           * most 2^31 - 1 when multiplied by heads / kv_heads */
    int64_t max_seqlen_k; /* with cu_seqlens_k: the maximum number of keys of any sequence, 0: kv_tokens; without: 0 */
    int64_t window_left;  /* the number of keys that a query attends to up to and including its own position; 0: all. At
                           * most 2^31 - 1. FlashAttention's window_size excludes the position: its w is w + 1 here, its
                           * -1 is 0 */
    int64_t window_right; /* the number of keys that a query attends to from its own position on, inclusive; 0: all. At
                           * most 2^31 - 1. FlashAttention's w is w + 1 here, its -1 is 0 */
    void *workspace;      /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_mha_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 / sqrt(head_dim) */
    float softcap;         /* scores become softcap * tanh(score / softcap) before the mask; 1e-6 to 1e6. 0: off */
    int32_t causal;        /* 0 or 1; 1 is the same as window_right 1 */
    int32_t kernel;        /* kiln_mha_kernel */
    int32_t compute;       /* kiln_mha_compute; all but PRECISION need the workspace and a softcap of 0 */
    int32_t reserved;      /* must be 0 */
    const void *mask;   /* [mask_batch, mask_heads, mask_rows, mask_cols]: added to the score of a query and a key, both
                         * numbered within their sequence; NULL: no mask. Must be NULL unless compute is PRECISION */
    int64_t mask_batch; /* with mask, like the next three fields. 1: the same for all sequences; or batch */
    int64_t mask_heads; /* 1: the same for all heads; or heads */
    int64_t mask_rows;  /* at least the maximum number of queries of any sequence */
    int64_t mask_cols;  /* at least the maximum number of keys of any sequence */
} kiln_mha_params;

/* Attention (Vaswani et al., arXiv 1706.03762) with grouped heads (Ainslie et al., arXiv 2305.13245), in one pass over
 * the keys (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv 2205.14135). Positions are aligned at the end:
 * the last query of a sequence is at the position of its last key. A query that attends to no key produces zeros, and
 * -inf in lse. A NaN or infinity in v may affect queries of its sequence that do not attend to its key, because it is
 * multiplied by 0; a NaN or infinity in k does not. cu_seqlens_q and cu_seqlens_k, which must not decrease, and
 * seqlens_k are read on the device and may change between replays of a graph; values beyond the sizes given here are
 * clamped. Rows of out and lse that belong to no sequence, or that clamping excludes, are left unchanged.
 *
 * The mask has the function's precision and is added to the scores after scaling and capping, like the attn_mask of
 * PyTorch's scaled_dot_product_attention and the mask of ggml's FLASH_ATTN_EXT. A mask of -inf excludes the key for the
 * query, whatever its score; causal and the window exclude further keys.
 *
 * Matrix units are used in f16 and bf16 by images for sm_80 and later, gfx90a, gfx942, gfx11 and gfx12, and in f16 by
 * images for sm_75. This requires that head_dim is a multiple of 8, that q, k, v and out and their strides are aligned
 * to 16 bytes, and that scale is positive or softcap is set. Sums are f32, but each weight, exp(score - the row's
 * maximum so far), is rounded to the precision, as in FlashAttention; gfx90a's matrix units treat subnormal numbers as
 * 0. All other calls, and KILN_MHA_KERNEL_PORTABLE, compute in f32 and round once.
 *
 * With compute INT8_X_FP8, FP8 or NVFP4 the call quantises q, k and v into the workspace (mha_quantize or
 * mha_quantize_nvfp4: a scale for each token of a head in q and k, keys minus their mean, a scale for each channel of a
 * sequence in v) and then computes attention on the codes (mha_int8_x_fp8_fwd, mha_fp8_fwd, mha_nvfp4_fwd); the
 * comments of these operators state the accuracy. */
KILN_OPERATOR_FUNCTION(mha_f32, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_f16, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_bf16, kiln_mha_params)

/* Computes the workspace size in bytes needed to split the keys among several blocks when there are few queries, as in
 * decoding; 0 if splitting is not faster. The pointers are ignored, except for whether cu_seqlens_q, cu_seqlens_k and
 * mask are NULL. The size depends on the kernels of the image for the stream's device, which this function loads unless
 * it is already loaded. Without a workspace the keys are not split: the call is slower and may differ in the last bits.
 * With compute other than PRECISION the size includes the codes, and the workspace is required. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, and the same statuses as kiln_module_get. */
KILN_WORKSPACE_FUNCTION(mha_f32, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_f16, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_bf16, kiln_mha_params)

/* ---- mha_paged: mha with keys and values in a paged cache -------------------------------------------------------- */

typedef struct kiln_mha_paged_params {
    void *out;                  /* [tokens, heads, head_dim] */
    float *lse;                 /* [heads, tokens]; NULL: not written */
    const void *q;              /* [tokens, heads, head_dim] */
    const void *k_cache;        /* [blocks, block_size, kv_heads, head_dim], as written by kv_store */
    const void *v_cache;        /* [blocks, block_size, kv_heads, head_dim] */
    const int32_t *block_table; /* [batch, max_blocks_per_seq]: the blocks of each sequence, in order. Only entries for
                                 * existing keys are read; a number outside the cache counts as its last block */
    const int32_t *seqlens_k; /* [batch]: number of keys of each sequence, including those of this call's queries, which
                               * must be stored in the cache first */
    const int32_t *cu_seqlens_q; /* [batch + 1], from 0: the row of q at which each sequence begins, and the end of the
                                  * last; NULL: tokens / batch rows each */
    int64_t tokens;              /* tokens, batch, heads, kv_heads and head_dim: as in kiln_mha_params */
    int64_t blocks;              /* at most 2^31 - 1 */
    int64_t block_size;          /* a power of two, at most 2^20 */
    int64_t batch;
    int64_t max_blocks_per_seq; /* columns of block_table; multiplied by block_size at most 2^31 - 1 */
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;       /* at most 256 */
    int64_t out_stride;     /* elements between tokens; 0: packed */
    int64_t q_stride;       /* as out_stride */
    int64_t k_cache_stride; /* elements between keys; 0: packed. A block has block_size keys */
    int64_t v_cache_stride; /* as k_cache_stride */
    int64_t max_seqlen_q; /* with cu_seqlens_q: the maximum number of queries of any sequence, 0: tokens; without: 0 */
    int64_t window_left;  /* this field and all that follow: as in kiln_mha_params */
    int64_t window_right;
    void *workspace;
    size_t workspace_size; /* 0, or at least kiln_mha_paged_<precision>_workspace_size() */
    float scale;
    float softcap;
    int32_t causal;
    int32_t kernel;            /* kiln_mha_kernel */
    int32_t cache_type;        /* kiln_cache_type of k_cache and v_cache */
    int32_t reserved;          /* must be 0 */
    const float *k_scale;      /* [cache_scales]: key = code * k_scale, from 2^-60 to 2^60; NULL: 1. Used with
                                * KILN_CACHE_E4M3 only */
    const float *v_scale;      /* [cache_scales]: the same for v_cache */
    int64_t cache_scales;      /* 1 (0: 1): one scale for all heads; kv_heads: one for each */
    const uint32_t *tree_mask; /* [tokens, tree_words]: bit j % 32 of word j / 32 of a query's row is set if the query
                                * attends to key j of its sequence's tree; NULL: no trees */
    int64_t tree_words;        /* with tree_mask: at least 1 for each 32 nodes of a tree */
    int64_t tree_nodes; /* number of keys at the end of each sequence that form its tree; 0: as many as its queries */
} kiln_mha_paged_params;

/* The same as mha on the keys and values gathered from the cache (Kwon et al., arXiv 2309.06180), bit for bit if both
 * split the keys in the same way.
 *
 * In an E4M3 cache, as written by kiln_kv_store, keys and values are code * scale. The codes, which every precision
 * represents exactly, are multiplied directly by queries and weights; scores are then multiplied by k_scale and results
 * by v_scale. Matrix units are used under the same conditions as in mha, with head_dim a multiple of 16.
 *
 * Trees of draft tokens are verified in one call (Miao et al., "SpecInfer", arXiv 2305.09781): the keys and values of a
 * sequence's tree are the last ones in its cache, in the order of the nodes, and its queries are those of all nodes or,
 * with tree_nodes, of some of them. Every query of the sequence attends to all keys before the tree, and to those keys
 * of the tree whose bit is set in its row. A query's row is the row of its node in the mask of kiln_tree
 * (<kiln/tree.h>), which has mask_words words. Sequences may have different trees; a sequence without a tree uses the
 * rows of a chain, with bits 0 to i set in row i. causal and the window exclude further keys, counting nodes as
 * consecutive tokens. Every kernel supports the mask. */
KILN_OPERATOR_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

/* Computes the workspace size in bytes, as for mha, assuming that the longest sequence fills its row of block_table. */
KILN_WORKSPACE_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

/* ---- mha_quantize: q, k and v as codes with scales, for attention on them ---------------------------------------- */

typedef struct kiln_mha_quantize_params {
    void *q_codes;    /* [tokens, heads, head_dim], packed: int8_t, or E4M3 as uint8_t. If tokens or heads is 0, this
                       * field, q_scales and q are not used; if batch or kv_heads is 0, no field of k or v is used */
    void *k_codes;    /* [kv_tokens, kv_heads, head_dim], packed: of the same type as q_codes */
    uint8_t *v_codes; /* [kv_tokens, kv_heads, head_dim], packed: E4M3 */
    float *q_scales;  /* [heads, q_scale_rows] */
    float *k_scales;  /* [kv_heads, k_scale_rows] */
    float *v_scales;  /* [batch, kv_heads, head_dim] */
    float *k_means;   /* [batch, kv_heads, head_dim]: the means that are subtracted from keys before quantising */
    float *v_means;   /* [batch, kv_heads, head_dim]: the means that are subtracted from values; NULL: none */
    const void *q;    /* [tokens, heads, head_dim] */
    const void *k;    /* [kv_tokens, kv_heads, head_dim] */
    const void *v;    /* [kv_tokens, kv_heads, head_dim] */
    const int32_t *cu_seqlens_k; /* [batch + 1], from 0: the row of k and v at which each sequence begins, and the end
                                  * of the last; NULL: kv_tokens / batch rows each */
    const int32_t *seqlens_k;    /* [batch]: the number of its rows that each sequence uses; NULL: all */
    int64_t tokens;              /* tokens and kv_tokens are at most 2^31 - 1 */
    int64_t kv_tokens;
    int64_t batch; /* sequences, at most 2^24 */
    int64_t heads; /* heads and kv_heads are at most 2^16 */
    int64_t kv_heads;
    int64_t head_dim;     /* at most 256 */
    int64_t q_scale_rows; /* scales per head of q: tokens (0: tokens); tokens / 128, rounded up; tokens / 32, rounded
                           * up; or 8 times the latter */
    int64_t k_scale_rows; /* scales per head of k: kv_tokens (0: kv_tokens); kv_tokens / 64, rounded up; or 4 times the
                           * latter */
    int64_t q_stride;     /* between tokens; 0: packed */
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_k;  /* with cu_seqlens_k: the maximum number of keys of any sequence, 0: kv_tokens; without: 0 */
    void *workspace;       /* 16-byte aligned; may be NULL if its size is 0 */
    size_t workspace_size; /* at least kiln_mha_quantize_<precision>_workspace_size() */
    int32_t code_type;     /* kiln_mha_code_type of q_codes and k_codes */
    int32_t reserved;      /* must be 0 */
} kiln_mha_quantize_params;

typedef enum kiln_mha_code_type {
    KILN_MHA_CODE_INT8, /* for mha_int8_x_fp8_fwd */
    KILN_MHA_CODE_E4M3, /* for mha_fp8_fwd */
} kiln_mha_code_type;

/* Quantises q, k and v for attention as SageAttention does (Zhang et al., arXiv 2410.02367, and 2411.10958, whose
 * granularities per block, warp and thread correspond to the numbers of scales). Tokens of one head share a scale by
 * their position in the whole tensor: with a scale for every 128 (of q) or 64 (of k) tokens, token t has scale t / 128
 * or t / 64; with 8 scales for every 32 tokens of q it has scale t / 32 * 8 + t % 8; with 4 scales for every 64 tokens
 * of k it has scale t / 64 * 4 + t % 8 / 2. If a number of scales matches several of these, it selects the first in the
 * order of the field's comment.
 *
 *     scale = amax / greatest     where that is at least 2^-126, else 1; greatest is 127 for int8, 448 for E4M3
 *     code = round((x - mean) * (1 / scale))
 *
 * in IEEE arithmetic, each operation rounded once: codes, scales and means are bit-identical on every device. amax
 * ignores NaN; an infinity makes it the greatest f32. v has a scale for each channel of each sequence and head, derived
 * from the least and the greatest of its values minus their mean. A mean is taken over a channel of a sequence's keys:
 * their sum in f32, in an order that depends only on head_dim and max_seqlen_k, divided by their number; 0 if there are
 * none. Subtracting the mean from the keys changes all scores of a query by the same amount, which does not change
 * their softmax; it prevents channels that are large in every key from reducing the precision of the other channels.
 * Rows of k and v that belong to no sequence get codes of 0 and do not affect scales. cu_seqlens_k and seqlens_k are
 * clamped as in mha. */
KILN_OPERATOR_FUNCTION(mha_quantize_f32, kiln_mha_quantize_params)
KILN_OPERATOR_FUNCTION(mha_quantize_f16, kiln_mha_quantize_params)
KILN_OPERATOR_FUNCTION(mha_quantize_bf16, kiln_mha_quantize_params)

/* Computes the workspace size in bytes; 0 without keys. The pointers are ignored, except for whether cu_seqlens_k is
 * NULL. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(mha_quantize_f32, kiln_mha_quantize_params)
KILN_WORKSPACE_FUNCTION(mha_quantize_f16, kiln_mha_quantize_params)
KILN_WORKSPACE_FUNCTION(mha_quantize_bf16, kiln_mha_quantize_params)

/* ---- mha_int8_x_fp8_fwd: attention on q and k in int8 and v in E4M3 ---------------------------------------------- */

typedef struct kiln_mha_int8_x_fp8_fwd_params {
    void *out;             /* [tokens, heads, head_dim] */
    float *lse;            /* [heads, tokens]; NULL: not written */
    const int8_t *q;       /* [tokens, heads, head_dim]: codes */
    const int8_t *k;       /* [kv_tokens, kv_heads, head_dim]: codes; k and v may be NULL if kv_tokens is 0 */
    const uint8_t *v;      /* [kv_tokens, kv_heads, head_dim]: E4M3 */
    const float *q_scales; /* [heads, q_scale_rows] */
    const float *k_scales; /* [kv_heads, k_scale_rows]; may be NULL if kv_tokens is 0 */
    const float *v_scales; /* [batch, kv_heads, head_dim]: of each channel of each sequence */
    const float *k_means;  /* [batch, kv_heads, head_dim]: the means subtracted from k, which lse needs; NULL: none */
    const float *v_means;  /* [batch, kv_heads, head_dim]: the means subtracted from v; NULL: none */
    const int32_t *cu_seqlens_q; /* this field to kv_tokens, and batch to head_dim: as in kiln_mha_params */
    const int32_t *cu_seqlens_k;
    const int32_t *seqlens_k;
    int64_t tokens;
    int64_t kv_tokens;
    int64_t batch;
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t q_scale_rows; /* tokens (0: tokens), or fewer: see kiln_mha_quantize_params */
    int64_t k_scale_rows; /* kv_tokens (0: kv_tokens), or fewer */
    int64_t out_stride;   /* between tokens, in elements; 0: packed */
    int64_t q_stride;     /* between tokens, in codes; 0: packed */
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_q; /* this field and all that follow: as in kiln_mha_params */
    int64_t max_seqlen_k;
    int64_t window_left;
    int64_t window_right;
    void *workspace;
    size_t workspace_size; /* 0, or at least kiln_mha_int8_x_fp8_fwd_<precision>_workspace_size() */
    float scale;
    int32_t causal;
    int32_t kernel;   /* kiln_mha_kernel */
    int32_t reserved; /* must be 0 */
} kiln_mha_int8_x_fp8_fwd_params;

/* Attention on quantised tensors (SageAttention: Zhang et al., arXiv 2410.02367 and 2411.10958), with the result in the
 * function's precision:
 *
 *     out = softmax(mask(scale * (q * q_scale) (k * k_scale)^T)) (v * v_scale) + v_mean
 *
 * Weights are rounded to E4M3 as well: w = E4M3(2^(x - m + 8)), for a score x to the base 2 and an integer m that is at
 * least the query's greatest score and less than 1 above it. m cancels, so that except for weights below 2^-14 the
 * rounding does not depend on the order of the keys. Results are sums of w * v in f32 divided by the sum of w: exact if
 * all values are equal or if one key has all the weight. lse is computed from the weights before rounding, plus scale *
 * (q * q_scale) . k_mean, the term that subtracting the mean from the keys removes from the scores.
 *
 * Compared with attention on the tensors before mha_quantize, the cosine similarity of results is 0.999 on Gaussian
 * data (relative error 0.034 to 0.038, nearly all of it from E4M3 in v and in the weights). Masks, lengths and clamping
 * are as in mha. Scales must not be negative; if a scale of q or k is NaN, so are the results of the queries that use
 * it.
 *
 * In f16 and bf16, images for sm_80 and later use matrix units if head_dim is a multiple of 16, scale is positive, and
 * q, k, v and out and their strides are aligned to 16 bytes. On sm_89 and later, sums of 32 products of E4M3 (on sm_90a
 * up to 128) keep 13 bits below the greatest and are accumulated in f32; sm_80 and sm_86 multiply the codes' values in
 * 16 bits with sums in f32. */
KILN_OPERATOR_FUNCTION(mha_int8_x_fp8_fwd_f32, kiln_mha_int8_x_fp8_fwd_params)
KILN_OPERATOR_FUNCTION(mha_int8_x_fp8_fwd_f16, kiln_mha_int8_x_fp8_fwd_params)
KILN_OPERATOR_FUNCTION(mha_int8_x_fp8_fwd_bf16, kiln_mha_int8_x_fp8_fwd_params)

/* Computes the workspace size in bytes, as for mha. */
KILN_WORKSPACE_FUNCTION(mha_int8_x_fp8_fwd_f32, kiln_mha_int8_x_fp8_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_int8_x_fp8_fwd_f16, kiln_mha_int8_x_fp8_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_int8_x_fp8_fwd_bf16, kiln_mha_int8_x_fp8_fwd_params)

/* ---- mha_fp8_fwd: attention on q, k and v in E4M3 ---------------------------------------------------------------- */

typedef struct kiln_mha_fp8_fwd_params {
    void *out;             /* [tokens, heads, head_dim] */
    float *lse;            /* [heads, tokens]; NULL: not written */
    const uint8_t *q;      /* [tokens, heads, head_dim]: codes */
    const uint8_t *k;      /* [kv_tokens, kv_heads, head_dim]: codes; k and v may be NULL if kv_tokens is 0 */
    const uint8_t *v;      /* [kv_tokens, kv_heads, head_dim]: E4M3 */
    const float *q_scales; /* [heads, q_scale_rows] */
    const float *k_scales; /* [kv_heads, k_scale_rows]; may be NULL if kv_tokens is 0 */
    const float *v_scales; /* [batch, kv_heads, head_dim]: of each channel of each sequence */
    const float *k_means;  /* [batch, kv_heads, head_dim]: the means subtracted from k, which lse needs; NULL: none */
    const float *v_means;  /* [batch, kv_heads, head_dim]: the means subtracted from v; NULL: none */
    const int32_t *cu_seqlens_q; /* this field to kv_tokens, and batch to head_dim: as in kiln_mha_params */
    const int32_t *cu_seqlens_k;
    const int32_t *seqlens_k;
    int64_t tokens;
    int64_t kv_tokens;
    int64_t batch;
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t q_scale_rows; /* tokens (0: tokens), or fewer: see kiln_mha_quantize_params */
    int64_t k_scale_rows; /* kv_tokens (0: kv_tokens), or fewer */
    int64_t out_stride;   /* between tokens, in elements; 0: packed */
    int64_t q_stride;     /* between tokens, in codes; 0: packed */
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_q; /* this field and all that follow: as in kiln_mha_params */
    int64_t max_seqlen_k;
    int64_t window_left;
    int64_t window_right;
    void *workspace;
    size_t workspace_size; /* 0, or at least kiln_mha_fp8_fwd_<precision>_workspace_size() */
    float scale;
    int32_t causal;
    int32_t kernel;   /* kiln_mha_kernel */
    int32_t reserved; /* must be 0 */
} kiln_mha_fp8_fwd_params;

/* The same as mha_int8_x_fp8_fwd, with q and k in E4M3: the cosine similarity is 0.9986 on Gaussian data (relative
 * error 0.052). It is less accurate than int8 where scores are large, since E4M3 has 4 significant bits. */
KILN_OPERATOR_FUNCTION(mha_fp8_fwd_f32, kiln_mha_fp8_fwd_params)
KILN_OPERATOR_FUNCTION(mha_fp8_fwd_f16, kiln_mha_fp8_fwd_params)
KILN_OPERATOR_FUNCTION(mha_fp8_fwd_bf16, kiln_mha_fp8_fwd_params)

/* Computes the workspace size in bytes, as for mha. */
KILN_WORKSPACE_FUNCTION(mha_fp8_fwd_f32, kiln_mha_fp8_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_fp8_fwd_f16, kiln_mha_fp8_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_fp8_fwd_bf16, kiln_mha_fp8_fwd_params)

/* ---- merge_attention_states: attention to all keys, from attention to parts of them ------------------------------ */

typedef struct kiln_merge_attention_states_params {
    void *out;          /* [tokens, heads, head_dim]; may be x, with the same stride */
    float *lse;         /* [heads, tokens]: of all parts; NULL: not written; may be x_lse */
    const void *x;      /* [parts, tokens, heads, head_dim], each part's out */
    const float *x_lse; /* [parts, heads, tokens], each part's lse, as written by kiln_mha and kiln_mha_paged */
    int64_t parts;      /* at least 1 */
    int64_t tokens;     /* tokens * heads is at most 2^31 - 1 */
    int64_t heads;
    int64_t head_dim;
    int64_t out_stride; /* between tokens; 0: heads * head_dim */
    int64_t x_stride;   /* between tokens, the same in all parts; 0: heads * head_dim */
} kiln_merge_attention_states_params;

/* Merges attention results over disjoint sets of keys: a shared prefix and the rest (cascade inference), or the parts
 * held by the devices of context-parallel attention. out is the sum of exp(lse_i - lse) out_i, where lse = log sum
 * exp(lse_i), in f32 with one rounding. A part without keys has an lse of -inf and any finite out, and does not
 * contribute; if no part has a key, out is 0 and lse is -inf. A NaN makes both NaN. If some lse are +inf, those parts
 * have weight 1 and all others 0. */
KILN_OPERATOR_FUNCTION(merge_attention_states_f32, kiln_merge_attention_states_params)
KILN_OPERATOR_FUNCTION(merge_attention_states_f16, kiln_merge_attention_states_params)
KILN_OPERATOR_FUNCTION(merge_attention_states_bf16, kiln_merge_attention_states_params)

/* ---- mha_quantize_nvfp4: q, k and v in NVFP4, for attention on them ---------------------------------------------- */

typedef struct kiln_mha_quantize_nvfp4_params {
    uint8_t *q_codes; /* [tokens, heads, 8 * head_blocks]: pairs of E2M1, the first of a pair in the low half. No field
                       * of q is used if tokens or heads is 0, and no field of k or v if batch or kv_heads is 0 */
    uint8_t *k_codes; /* [kv_tokens, kv_heads, 8 * head_blocks] */
    uint8_t *v_codes; /* [kv_heads, head_dim, 8 * v_blocks]: v transposed, pairs of keys. These three pointers are
                       * 16-byte aligned, the next three 4-byte aligned */
    uint8_t *q_block_scales; /* [tokens, heads, head_blocks]: E4M3, a scale for each 16 elements of a head */
    uint8_t *k_block_scales; /* [kv_tokens, kv_heads, head_blocks] */
    uint8_t *v_block_scales; /* [kv_heads, head_dim, v_blocks]: a scale for each 16 keys of a channel */
    float *q_scales;         /* [heads, tokens]: decode scales */
    float *k_scales;         /* [kv_heads, kv_tokens] */
    float *v_scales;         /* [batch, kv_heads, head_dim] */
    float *k_means; /* [batch, kv_heads, head_dim]: the means that are subtracted from keys before quantising */
    float *v_means; /* [batch, kv_heads, head_dim]: the means that are subtracted from values; NULL: none */
    const void *q;  /* [tokens, heads, head_dim] */
    const void *k;  /* [kv_tokens, kv_heads, head_dim] */
    const void *v;  /* [kv_tokens, kv_heads, head_dim] */
    const int32_t *cu_seqlens_k; /* this field to head_dim: as in kiln_mha_quantize_params */
    const int32_t *seqlens_k;
    int64_t tokens;
    int64_t kv_tokens;
    int64_t batch;
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t head_blocks; /* 4 * (head_dim / 64, rounded up); 0: that value */
    int64_t v_blocks;    /* a multiple of 4, at least 4 * ((kv_tokens / 64, rounded down) + batch); 0: the minimum */
    int64_t q_stride;    /* between tokens; 0: packed */
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_k;  /* with cu_seqlens_k: the maximum number of keys of any sequence, 0: kv_tokens; without: 0 */
    void *workspace;       /* 16-byte aligned; may be NULL if its size is 0 */
    size_t workspace_size; /* at least kiln_mha_quantize_nvfp4_<precision>_workspace_size() */
} kiln_mha_quantize_nvfp4_params;

/* Quantises q, k and v for mha_nvfp4_fwd, as SageAttention3 does (Zhang et al., arXiv 2505.11594), except that no means
 * are subtracted from queries.
 *
 * A head of a token of q, or of k minus its mean, is quantised as quantize_nvfp4 quantises a row: one decode scale in
 * f32, amax / 2688, a scale in E4M3 for each 16 elements, and an E2M1 code for each element. Codes beyond head_dim are
 * 0.
 *
 * v is transposed and quantised along keys: each channel of a sequence has a decode scale, and each 16 of its keys have
 * a scale in E4M3. Sequence b, whose keys begin at row t of v, begins at key (t / 64, rounded down, + b) * 64 of
 * v_codes, so that a block of 16 or of 64 keys belongs to one sequence. The rest of v_codes is 0.
 *
 * Codes, scales and means are bit-identical on every device; means, NaN, infinities, and rows that belong to no
 * sequence are as for mha_quantize. */
KILN_OPERATOR_FUNCTION(mha_quantize_nvfp4_f32, kiln_mha_quantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(mha_quantize_nvfp4_f16, kiln_mha_quantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(mha_quantize_nvfp4_bf16, kiln_mha_quantize_nvfp4_params)

/* Computes the workspace size in bytes, as for mha_quantize. */
KILN_WORKSPACE_FUNCTION(mha_quantize_nvfp4_f32, kiln_mha_quantize_nvfp4_params)
KILN_WORKSPACE_FUNCTION(mha_quantize_nvfp4_f16, kiln_mha_quantize_nvfp4_params)
KILN_WORKSPACE_FUNCTION(mha_quantize_nvfp4_bf16, kiln_mha_quantize_nvfp4_params)

/* ---- mha_nvfp4_fwd: attention on q, k and v in NVFP4 ------------------------------------------------------------- */

typedef struct kiln_mha_nvfp4_fwd_params {
    void *out;        /* [tokens, heads, head_dim] */
    float *lse;       /* [heads, tokens]; NULL: not written */
    const uint8_t *q; /* [tokens, heads, 8 * head_blocks]: codes; q, k and v are 16-byte aligned */
    const uint8_t *k; /* [kv_tokens, kv_heads, 8 * head_blocks]: codes; if kv_tokens is 0, all pointers of k and v may
                       * be NULL except v_scales, k_means and v_means */
    const uint8_t *v; /* [kv_heads, head_dim, 8 * v_blocks]: codes of v transposed, as written by mha_quantize_nvfp4 */
    const uint8_t *q_block_scales; /* [tokens, heads, head_blocks]: E4M3, 4-byte aligned, as k_block_scales and
                                    * v_block_scales */
    const uint8_t *k_block_scales; /* [kv_tokens, kv_heads, head_blocks] */
    const uint8_t *v_block_scales; /* [kv_heads, head_dim, v_blocks] */
    const float *q_scales;         /* [heads, q_scale_rows]: decode scales */
    const float *k_scales;         /* [kv_heads, k_scale_rows] */
    const float *v_scales;         /* [batch, kv_heads, head_dim] */
    const float *k_means; /* [batch, kv_heads, head_dim]: the means subtracted from k, which lse needs; NULL: none */
    const float *v_means; /* [batch, kv_heads, head_dim]: the means subtracted from v; NULL: none */
    const int32_t *cu_seqlens_q; /* this field to kv_tokens, and batch to head_dim: as in kiln_mha_params */
    const int32_t *cu_seqlens_k;
    const int32_t *seqlens_k;
    int64_t tokens;
    int64_t kv_tokens;
    int64_t batch;
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t head_blocks;  /* 4 * (head_dim / 64, rounded up); 0: that value */
    int64_t v_blocks;     /* as in kiln_mha_quantize_nvfp4_params */
    int64_t q_scale_rows; /* tokens (0: tokens); 1: one scale for all tokens */
    int64_t k_scale_rows; /* kv_tokens (0: kv_tokens); 1: one scale for all tokens */
    int64_t out_stride;   /* between tokens, in elements; 0: packed */
    int64_t max_seqlen_q; /* this field and all that follow: as in kiln_mha_params */
    int64_t max_seqlen_k;
    int64_t window_left;
    int64_t window_right;
    void *workspace;
    size_t workspace_size; /* 0, or at least kiln_mha_nvfp4_fwd_<precision>_workspace_size() */
    float scale;
    int32_t causal;
    int32_t kernel;   /* kiln_mha_kernel */
    int32_t reserved; /* must be 0 */
} kiln_mha_nvfp4_fwd_params;

/* Attention on tensors in NVFP4 (SageAttention3: Zhang et al., arXiv 2505.11594), with the result in the function's
 * precision: an element of q, k or v is E2M1 * E4M3 * its decode scale, and v_mean is added to the results.
 *
 * Weights are NVFP4 as well, along keys. For a block of 16 keys, the same blocks as in v, with weights w = 2^(x - m)
 * for scores x to the base 2 and an integer m that is at least the query's greatest score and less than 1 above it,
 *
 *     scale = E4M3(448 * max w),    code = E2M1(w * 2688 / scale)
 *
 * where code uses the rounded scale. m cancels, so that except for scales below 2^-6 the rounding does not depend on
 * the order of the keys. Results are sums of code * scale * v in f32 divided by the sum of code * scale: exact if all
 * values are equal or if one key has all the weight. lse is computed from the weights before rounding, plus the term
 * that mha_int8_x_fp8_fwd adds for k_means.
 *
 * Masks, lengths and clamping are as in mha. Decode scales must not be negative; if a decode scale of q or k is NaN, so
 * are the results of the queries that use it. The contents of v after a sequence's last key do not affect the result.
 *
 * In f16 and bf16, the image for sm_120 and its family uses products of E2M1 with block scales if the heads of out and
 * its strides are aligned to 16 bytes, scale is positive, and a head of k has more than 16 rows, which are its queries
 * times the heads that share it. All other calls convert the codes to f32. */
KILN_OPERATOR_FUNCTION(mha_nvfp4_fwd_f32, kiln_mha_nvfp4_fwd_params)
KILN_OPERATOR_FUNCTION(mha_nvfp4_fwd_f16, kiln_mha_nvfp4_fwd_params)
KILN_OPERATOR_FUNCTION(mha_nvfp4_fwd_bf16, kiln_mha_nvfp4_fwd_params)

/* Computes the workspace size in bytes, as for mha. */
KILN_WORKSPACE_FUNCTION(mha_nvfp4_fwd_f32, kiln_mha_nvfp4_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_nvfp4_fwd_f16, kiln_mha_nvfp4_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_nvfp4_fwd_bf16, kiln_mha_nvfp4_fwd_params)

#ifdef __cplusplus
}
#endif

#endif
