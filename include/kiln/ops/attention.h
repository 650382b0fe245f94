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

/* The types in which the two products are computed. */
typedef enum kiln_mha_compute {
    KILN_MHA_COMPUTE_PRECISION,  /* the function's precision: q, k and v as they are */
    KILN_MHA_COMPUTE_INT8_X_FP8, /* q, and k minus its mean, as int8; v and the weights as E4M3 */
    KILN_MHA_COMPUTE_FP8,        /* all as E4M3, k minus its mean */
    KILN_MHA_COMPUTE_NVFP4,      /* all as NVFP4, k minus its mean */
} kiln_mha_compute;

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
    int64_t out_stride; /* elements between tokens; 0: packed. Heads are packed within a token */
    int64_t q_stride;   /* this field and the next two: likewise */
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
    int32_t compute;       /* kiln_mha_compute; all but PRECISION need the workspace and a softcap of 0 */
    int32_t reserved;      /* must be 0 */
    const void *mask;   /* [mask_batch, mask_heads, mask_rows, mask_cols]: what is added to the score of a query with a
                         * key, both numbered within their sequence; NULL: nothing. Must be NULL unless compute is
                         * PRECISION */
    int64_t mask_batch; /* with mask, as are the next three. 1: the same for all sequences; or batch */
    int64_t mask_heads; /* 1: the same for all heads; or heads */
    int64_t mask_rows;  /* at least the most queries of any sequence */
    int64_t mask_cols;  /* at least the most keys of any sequence */
} kiln_mha_params;

/* Attention (Vaswani et al., arXiv 1706.03762) with grouped heads (Ainslie et al., arXiv 2305.13245), in one pass over
 * the keys (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv 2205.14135). Positions are aligned at the end:
 * the last query of a sequence is at the position of its last key. A query that sees no key gives zeros, and -inf in
 * lse. A NaN or infinity in v may affect queries of its sequence that do not see its key, because it is multiplied by
 * 0; one in k does not. cu_seqlens_q and cu_seqlens_k, which must not decrease, and seqlens_k are read on the device
 * and may change between replays of a graph; values beyond the sizes given here are clamped. Rows of out and lse that
 * belong to no sequence, or that are clamped off, are left unchanged.
 *
 * The mask has the function's precision and is added to scores that are scaled and capped, as the attn_mask of
 * PyTorch's scaled_dot_product_attention and the mask of ggml's FLASH_ATTN_EXT are. A key whose mask is -inf is not
 * seen by the query, whatever its score; causal and the window exclude further keys.
 *
 * Matrix units are used in f16 and bf16 by images for sm_80 and later and for gfx90a, gfx942, gfx11 and gfx12; and in
 * f16 by those for sm_75. This requires that head_dim is a multiple of 8, that q, k, v and out and their strides are
 * aligned to 16 bytes, and that scale is positive or softcap is set. Sums are f32, but each weight, exp(score - the
 * row's maximum so far), is rounded to the precision, as in FlashAttention; gfx90a's matrix units treat subnormal
 * numbers as 0. All other calls, and KILN_MHA_KERNEL_PORTABLE, compute in f32 and round once.
 *
 * With compute INT8_X_FP8, FP8 or NVFP4 the call quantises q, k and v into the workspace (mha_quantize or
 * mha_quantize_nvfp4: a scale for each token of a head in q and k, keys minus their mean, a scale for each channel of a
 * sequence in v) and then computes attention on the codes (mha_int8_x_fp8_fwd, mha_fp8_fwd, mha_nvfp4_fwd), whose
 * comments describe the accuracy. */
KILN_OPERATOR_FUNCTION(mha_f32, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_f16, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_bf16, kiln_mha_params)

/* The bytes of workspace that let mha divide the keys among several blocks where queries are few, as in decoding; 0
 * where that does not pay. Of the pointers only whether cu_seqlens_q, cu_seqlens_k and mask are NULL matters. The
 * size depends on the kernels of the image for the stream's device, which this function loads unless it is already
 * loaded. Without workspace the keys are not divided: the call is slower and may differ in the last bits. With compute
 * other than PRECISION the size includes the codes, and the workspace is needed. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, and what loading can return. */
KILN_WORKSPACE_FUNCTION(mha_f32, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_f16, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_bf16, kiln_mha_params)

/* ---- mha_paged: mha with keys and values in a paged cache -------------------------------------------------------- */

typedef struct kiln_mha_paged_params {
    void *out;                  /* [tokens, heads, head_dim] */
    float *lse;                 /* [heads, tokens]; NULL: not wanted */
    const void *q;              /* [tokens, heads, head_dim] */
    const void *k_cache;        /* [blocks, block_size, kv_heads, head_dim], as kv_store writes it */
    const void *v_cache;        /* [blocks, block_size, kv_heads, head_dim] */
    const int32_t *block_table; /* [batch, max_blocks_per_seq]: the blocks of each sequence, in order. Only as many as
                                 * its keys need are read; a number outside the cache counts as its last block */
    const int32_t *seqlens_k; /* [batch]: number of keys of each sequence, those of this call's queries included: store
                               * them in the cache first */
    const int32_t *cu_seqlens_q; /* [batch + 1], from 0: the row of q at which each sequence begins, and the end of the
                                  * last; NULL: tokens / batch rows each */
    int64_t tokens;              /* tokens, batch, heads, kv_heads and head_dim: as in kiln_mha_params */
    int64_t blocks;              /* at most 2^31 - 1 */
    int64_t block_size;          /* a power of two, at most 2^20 */
    int64_t batch;
    int64_t max_blocks_per_seq; /* columns of block_table; their keys are at most 2^31 - 1 */
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;       /* at most 256 */
    int64_t out_stride;     /* elements between tokens; 0: packed */
    int64_t q_stride;       /* likewise */
    int64_t k_cache_stride; /* elements between keys; 0: packed. A block is block_size keys */
    int64_t v_cache_stride; /* likewise */
    int64_t max_seqlen_q;   /* with cu_seqlens_q: the most queries of any sequence, 0: tokens; without: 0 */
    int64_t window_left;    /* this field and all that follow: as in kiln_mha_params */
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
    const uint32_t *tree_mask; /* [tokens, tree_words]: bit j % 32 of word j / 32 of a query's row says whether it sees
                                * key j of its sequence's tree; NULL: there are no trees */
    int64_t tree_words;        /* at least 1 for each 32 nodes of a tree; with tree_mask */
    int64_t tree_nodes; /* number of keys at the end of each sequence that form its tree; 0: as many as its queries */
} kiln_mha_paged_params;

/* Equals mha on the keys and values gathered from the cache (Kwon et al., arXiv 2309.06180), bit for bit if both divide
 * the keys in the same way.
 *
 * In a cache of E4M3, as kiln_kv_store writes it, keys and values are code * scale. Codes, which every precision holds
 * exactly, are multiplied by queries and weights as they are; scores are then multiplied by k_scale and results by
 * v_scale. Matrix units are used under the conditions of mha, with head_dim a multiple of 16.
 *
 * Trees of draft tokens are verified in one call (Miao et al., "SpecInfer", arXiv 2305.09781): the keys and values of a
 * sequence's tree are the last ones in its cache, in the order of the nodes, and its queries are those of all nodes, or
 * of some with tree_nodes. Every query of the sequence sees all keys before the tree, and those keys of the tree whose
 * bit is set in its row. A query's row is the row of kiln_tree's mask (<kiln/tree.h>), which has mask_words words.
 * Sequences may have different trees; one without a tree has the rows of a chain, with bits 0 to i set in row i. causal
 * and the window exclude further keys, counting nodes as consecutive tokens. Every kernel supports the mask. */
KILN_OPERATOR_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

/* As for mha, assuming that the longest sequence fills its row of block_table. */
KILN_WORKSPACE_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

/* ---- mha_quantize: q, k and v as codes with scales, for attention on them ---------------------------------------- */

typedef struct kiln_mha_quantize_params {
    void *q_codes;    /* [tokens, heads, head_dim], packed: int8_t, or E4M3 as uint8_t. If tokens or heads is 0, this,
                       * q_scales and q are not used; if batch or kv_heads is 0, nothing of k and v is */
    void *k_codes;    /* [kv_tokens, kv_heads, head_dim], packed: of the same type as q_codes */
    uint8_t *v_codes; /* [kv_tokens, kv_heads, head_dim], packed: E4M3 */
    float *q_scales;  /* [heads, q_scale_rows] */
    float *k_scales;  /* [kv_heads, k_scale_rows] */
    float *v_scales;  /* [batch, kv_heads, head_dim] */
    float *k_means;   /* [batch, kv_heads, head_dim]: the means that are subtracted from keys before quantising */
    float *v_means;   /* [batch, kv_heads, head_dim]: likewise from values; NULL: nothing is subtracted */
    const void *q;    /* [tokens, heads, head_dim] */
    const void *k;    /* [kv_tokens, kv_heads, head_dim] */
    const void *v;    /* [kv_tokens, kv_heads, head_dim] */
    const int32_t *cu_seqlens_k; /* [batch + 1], from 0: the row of k and v at which each sequence begins, and the end
                                  * of the last; NULL: kv_tokens / batch rows each */
    const int32_t *seqlens_k;    /* [batch]: how many of its rows each sequence uses; NULL: all */
    int64_t tokens;              /* tokens and kv_tokens are at most 2^31 - 1 */
    int64_t kv_tokens;
    int64_t batch; /* sequences, at most 2^24 */
    int64_t heads; /* at most 2^16, and kv_heads as well */
    int64_t kv_heads;
    int64_t head_dim;     /* at most 256 */
    int64_t q_scale_rows; /* scales of a head of q: tokens (0: tokens); tokens / 128, rounded up; tokens / 32, rounded
                           * up; or 8 times the latter */
    int64_t k_scale_rows; /* scales of a head of k: kv_tokens (0: kv_tokens); kv_tokens / 64, rounded up; or 4 times
                           * the latter */
    int64_t q_stride;     /* between tokens; 0: packed */
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_k;  /* with cu_seqlens_k: the most keys of any sequence, 0: kv_tokens; without: 0 */
    void *workspace;       /* 16-byte aligned; may be NULL where its size is 0 */
    size_t workspace_size; /* at least kiln_mha_quantize_<precision>_workspace_size() */
    int32_t code_type;     /* kiln_mha_code_type: of q_codes and k_codes */
    int32_t reserved;      /* must be 0 */
} kiln_mha_quantize_params;

typedef enum kiln_mha_code_type {
    KILN_MHA_CODE_INT8, /* for mha_int8_x_fp8_fwd */
    KILN_MHA_CODE_E4M3, /* for mha_fp8_fwd */
} kiln_mha_code_type;

/* Quantises for attention as SageAttention does (Zhang et al., arXiv 2410.02367, and 2411.10958, whose
 * granularities per block, warp and thread correspond to the numbers of scales). Tokens of one head share a scale by
 * their place in the whole tensor: with a scale for every 128 (of q) or 64 (of k) tokens, token t has scale t / 128 or
 * t / 64; with 8 for every 32 tokens of q it is t / 32 * 8 + t % 8, with 4 for every 64 of k it is t / 64 * 4 + t % 8
 * / 2. If a number could mean several of these, it means the first in the order of the field's comment.
 *
 *     scale = amax / greatest     where that is at least 2^-126, else 1; greatest is 127 for int8, 448 for E4M3
 *     code = round((x - mean) * (1 / scale))
 *
 * in IEEE arithmetic, each operation rounded once: codes, scales and means are bit-identical on every device. amax
 * ignores NaN; an infinity makes it the greatest f32. v has a scale for each channel of each sequence and head,
 * from the least and the greatest of its values minus their mean. A mean is that of a channel over a sequence's keys:
 * their sum in f32, in an order that depends only on head_dim and max_seqlen_k, divided by their number; 0 if there are
 * none. Subtracting the mean from the keys changes all scores of a query by the same amount, which does not change
 * their softmax; it keeps channels that are large in every key from costing the other channels' precision. Rows of k
 * and v that belong to no sequence get codes of 0 and do not affect scales. cu_seqlens_k and seqlens_k are clamped as
 * mha clamps them. */
KILN_OPERATOR_FUNCTION(mha_quantize_f32, kiln_mha_quantize_params)
KILN_OPERATOR_FUNCTION(mha_quantize_f16, kiln_mha_quantize_params)
KILN_OPERATOR_FUNCTION(mha_quantize_bf16, kiln_mha_quantize_params)

/* The bytes of workspace for the sizes; 0 without keys. Of the pointers only whether cu_seqlens_k is NULL matters.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(mha_quantize_f32, kiln_mha_quantize_params)
KILN_WORKSPACE_FUNCTION(mha_quantize_f16, kiln_mha_quantize_params)
KILN_WORKSPACE_FUNCTION(mha_quantize_bf16, kiln_mha_quantize_params)

/* ---- mha_int8_x_fp8_fwd: attention on q and k in int8 and v in E4M3 ---------------------------------------------- */

typedef struct kiln_mha_int8_x_fp8_fwd_params {
    void *out;             /* [tokens, heads, head_dim] */
    float *lse;            /* [heads, tokens]; NULL: not wanted */
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

/* mha on quantised tensors (SageAttention: Zhang et al., arXiv 2410.02367 and 2411.10958), with the result in
 * the function's precision:
 *
 *     out = softmax(mask(scale * (q * q_scale) (k * k_scale)^T)) (v * v_scale) + v_mean
 *
 * Weights are rounded to E4M3 as well: w = E4M3(2^(x - m + 8)), for a score x to the base 2 and a whole number m that
 * is at least the query's greatest score, less than 1 above it. m cancels, so that except for weights below 2^-14 the
 * rounding does not depend on the order of the keys. Results are sums of w * v in f32 divided by the sum of w: exact if
 * all values are equal or one key has all the weight. lse is that of the weights before they are rounded, plus
 * scale * (q * q_scale) . k_mean, which the scores of keys minus their mean lack.
 *
 * Compared with attention on the tensors before mha_quantize, the cosine similarity of results is 0.999 on Gaussian
 * data (relative error 0.034 to 0.038, nearly all of it from E4M3 in v and in the weights). Masks, lengths and clamping
 * are as for mha. Scales must not be negative; if one of q or k is NaN, so are the results of the queries that use it.
 *
 * In f16 and bf16, images for sm_80 and later use matrix units if head_dim is a multiple of 16, scale is positive, and
 * q, k, v and out and their strides are aligned to 16 bytes. From sm_89 on, sums of 32 products of E4M3 (on sm_90a up
 * to 128) keep 13 bits below the greatest and are added up in f32; sm_80 and sm_86 multiply the codes' values in 16
 * bits with sums in f32. */
KILN_OPERATOR_FUNCTION(mha_int8_x_fp8_fwd_f32, kiln_mha_int8_x_fp8_fwd_params)
KILN_OPERATOR_FUNCTION(mha_int8_x_fp8_fwd_f16, kiln_mha_int8_x_fp8_fwd_params)
KILN_OPERATOR_FUNCTION(mha_int8_x_fp8_fwd_bf16, kiln_mha_int8_x_fp8_fwd_params)

/* As for mha. */
KILN_WORKSPACE_FUNCTION(mha_int8_x_fp8_fwd_f32, kiln_mha_int8_x_fp8_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_int8_x_fp8_fwd_f16, kiln_mha_int8_x_fp8_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_int8_x_fp8_fwd_bf16, kiln_mha_int8_x_fp8_fwd_params)

/* ---- mha_fp8_fwd: attention on q, k and v in E4M3 ---------------------------------------------------------------- */

typedef struct kiln_mha_fp8_fwd_params {
    void *out;             /* [tokens, heads, head_dim] */
    float *lse;            /* [heads, tokens]; NULL: not wanted */
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

/* mha_int8_x_fp8_fwd with q and k in E4M3: cosine similarity 0.9986 on Gaussian data (relative error 0.052), and less
 * accurate than int8 where scores are large, since E4M3 has 4 significant bits. */
KILN_OPERATOR_FUNCTION(mha_fp8_fwd_f32, kiln_mha_fp8_fwd_params)
KILN_OPERATOR_FUNCTION(mha_fp8_fwd_f16, kiln_mha_fp8_fwd_params)
KILN_OPERATOR_FUNCTION(mha_fp8_fwd_bf16, kiln_mha_fp8_fwd_params)

/* As for mha. */
KILN_WORKSPACE_FUNCTION(mha_fp8_fwd_f32, kiln_mha_fp8_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_fp8_fwd_f16, kiln_mha_fp8_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_fp8_fwd_bf16, kiln_mha_fp8_fwd_params)

/* ---- merge_attention_states: attention to all keys, from attention to parts of them ------------------------------ */

typedef struct kiln_merge_attention_states_params {
    void *out;          /* [tokens, heads, head_dim]; may be x, with the same stride */
    float *lse;         /* [heads, tokens]: of all parts; NULL: not wanted; may be x_lse */
    const void *x;      /* [parts, tokens, heads, head_dim], each part's out */
    const float *x_lse; /* [parts, heads, tokens], each part's lse, as kiln_mha and kiln_mha_paged give it */
    int64_t parts;      /* at least 1 */
    int64_t tokens;     /* tokens * heads is at most 2^31 - 1 */
    int64_t heads;
    int64_t head_dim;
    int64_t out_stride; /* between tokens; 0: heads * head_dim */
    int64_t x_stride;   /* between tokens, the same in all parts; 0: heads * head_dim */
} kiln_merge_attention_states_params;

/* Merges attention results over different keys: a shared prefix and the rest (cascade inference), or the parts that
 * the devices of context-parallel attention hold. out is the sum of exp(lse_i - lse) out_i, where lse = log sum
 * exp(lse_i), in f32 with one rounding. A part without keys has an lse of -inf and any finite out, and adds nothing; if
 * no part has a key, out is 0 and lse -inf. A NaN makes both NaN. If some lse are +inf, each of those has weight 1 and
 * all others 0. */
KILN_OPERATOR_FUNCTION(merge_attention_states_f32, kiln_merge_attention_states_params)
KILN_OPERATOR_FUNCTION(merge_attention_states_f16, kiln_merge_attention_states_params)
KILN_OPERATOR_FUNCTION(merge_attention_states_bf16, kiln_merge_attention_states_params)

/* ---- mha_quantize_nvfp4: q, k and v in NVFP4, for attention on them ---------------------------------------------- */

typedef struct kiln_mha_quantize_nvfp4_params {
    uint8_t *q_codes;        /* [tokens, heads, 8 * head_blocks]: pairs of E2M1, the first of a pair in the low half.
                              * Nothing of q is used if tokens or heads is 0, nothing of k and v if batch or kv_heads
                              * is 0 */
    uint8_t *k_codes;        /* [kv_tokens, kv_heads, 8 * head_blocks] */
    uint8_t *v_codes;        /* [kv_heads, head_dim, 8 * v_blocks]: v transposed, pairs of keys. These three are 16-byte
                              * aligned, the next three 4-byte */
    uint8_t *q_block_scales; /* [tokens, heads, head_blocks]: E4M3, a scale for each 16 elements of a head */
    uint8_t *k_block_scales; /* [kv_tokens, kv_heads, head_blocks] */
    uint8_t *v_block_scales; /* [kv_heads, head_dim, v_blocks]: a scale for each 16 keys of a channel */
    float *q_scales;         /* [heads, tokens]: decode scales */
    float *k_scales;         /* [kv_heads, kv_tokens] */
    float *v_scales;         /* [batch, kv_heads, head_dim] */
    float *k_means; /* [batch, kv_heads, head_dim]: the means that are subtracted from keys before quantising */
    float *v_means; /* [batch, kv_heads, head_dim]: likewise from values; NULL: nothing is subtracted */
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
    int64_t head_blocks; /* 4 * (head_dim / 64, rounded up); 0: that */
    int64_t v_blocks;    /* a multiple of 4, at least 4 * ((kv_tokens / 64, rounded down) + batch); 0: that */
    int64_t q_stride;    /* between tokens; 0: packed */
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_k;  /* with cu_seqlens_k: the most keys of any sequence, 0: kv_tokens; without: 0 */
    void *workspace;       /* 16-byte aligned; may be NULL where its size is 0 */
    size_t workspace_size; /* at least kiln_mha_quantize_nvfp4_<precision>_workspace_size() */
} kiln_mha_quantize_nvfp4_params;

/* Quantises for mha_nvfp4_fwd, as SageAttention3 does (Zhang et al., arXiv 2505.11594), except that it does not
 * subtract means from queries.
 *
 * A head of a token of q, or of k minus its mean, is quantised as quantize_nvfp4 quantises a row: one decode scale in
 * f32, amax / 2688, a scale in E4M3 for each 16 elements, and an E2M1 code for each element. Codes beyond head_dim are
 * 0.
 *
 * v is transposed and quantised along keys: a channel of a sequence has a decode scale, each 16 of its keys a scale in
 * E4M3. Sequence b, whose keys begin at row t of v, begins at key (t / 64, rounded down, + b) * 64 of v_codes, so that
 * a block of 16 or of 64 keys belongs to one sequence. The rest of v_codes is 0.
 *
 * Codes, scales and means are bit-identical on every device; means, NaN, infinities, and rows that belong to no
 * sequence are as for mha_quantize. */
KILN_OPERATOR_FUNCTION(mha_quantize_nvfp4_f32, kiln_mha_quantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(mha_quantize_nvfp4_f16, kiln_mha_quantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(mha_quantize_nvfp4_bf16, kiln_mha_quantize_nvfp4_params)

/* As for mha_quantize. */
KILN_WORKSPACE_FUNCTION(mha_quantize_nvfp4_f32, kiln_mha_quantize_nvfp4_params)
KILN_WORKSPACE_FUNCTION(mha_quantize_nvfp4_f16, kiln_mha_quantize_nvfp4_params)
KILN_WORKSPACE_FUNCTION(mha_quantize_nvfp4_bf16, kiln_mha_quantize_nvfp4_params)

/* ---- mha_nvfp4_fwd: attention on q, k and v in NVFP4 ------------------------------------------------------------- */

typedef struct kiln_mha_nvfp4_fwd_params {
    void *out;        /* [tokens, heads, head_dim] */
    float *lse;       /* [heads, tokens]; NULL: not wanted */
    const uint8_t *q; /* [tokens, heads, 8 * head_blocks]: codes; q, k and v are 16-byte aligned */
    const uint8_t *k; /* [kv_tokens, kv_heads, 8 * head_blocks]; if kv_tokens is 0, all pointers of k and v may be NULL
                       * except v_scales, k_means and v_means */
    const uint8_t *v; /* [kv_heads, head_dim, 8 * v_blocks]: codes of v transposed, as mha_quantize_nvfp4 has it */
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
    int64_t head_blocks;  /* 4 * (head_dim / 64, rounded up); 0: that */
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

/* mha on tensors in NVFP4 (SageAttention3: Zhang et al., arXiv 2505.11594), with the result in the function's
 * precision: an element of q, k or v is E2M1 * E4M3 * its decode scale, and v_mean is added to results.
 *
 * Weights are NVFP4 as well, along keys: of 16 keys, as v has them, whose weights are w = 2^(x - m) for scores x to the
 * base 2 and a whole number m that is at least the query's greatest score, less than 1 above it,
 *
 *     scale = E4M3(448 * max w),    code = E2M1(w * 2688 / scale)
 *
 * with the scale as rounded. m cancels, so that except for scales below 2^-6 the rounding does not depend on the order
 * of the keys. Results are sums of code * scale * v in f32 divided by the sum of code * scale: exact if all values are
 * equal or one key has all the weight. lse is that of the weights before they are rounded, plus what
 * mha_int8_x_fp8_fwd adds for k_means.
 *
 * Masks, lengths and clamping are as for mha. Decode scales must not be negative; if one of q or k is NaN, so are the
 * results of the queries that use it. What v contains after a sequence's last key does not matter.
 *
 * In f16 and bf16, the image for sm_120 and its family uses products of E2M1 with block scales if the heads of out and
 * its strides are aligned to 16 bytes, scale is positive, and a head of k has more than 16 rows: queries times heads
 * that share it. Everywhere else codes become f32. */
KILN_OPERATOR_FUNCTION(mha_nvfp4_fwd_f32, kiln_mha_nvfp4_fwd_params)
KILN_OPERATOR_FUNCTION(mha_nvfp4_fwd_f16, kiln_mha_nvfp4_fwd_params)
KILN_OPERATOR_FUNCTION(mha_nvfp4_fwd_bf16, kiln_mha_nvfp4_fwd_params)

/* As for mha. */
KILN_WORKSPACE_FUNCTION(mha_nvfp4_fwd_f32, kiln_mha_nvfp4_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_nvfp4_fwd_f16, kiln_mha_nvfp4_fwd_params)
KILN_WORKSPACE_FUNCTION(mha_nvfp4_fwd_bf16, kiln_mha_nvfp4_fwd_params)

#ifdef __cplusplus
}
#endif

#endif
