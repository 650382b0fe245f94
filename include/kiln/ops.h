/* kiln's operators.
 *
 * kiln_<op>_<precision>(stream, &params) checks its parameters, picks a kernel and launches it on the stream. The same
 * call works on every backend and gives the same answer within the operator's tolerance.
 *
 * Rules for every operator:
 *
 * - Pointers are device pointers of the stream's device, of memory that is the caller's and lives until the stream has
 *   done the call. Rows are contiguous; strides between rows are in elements, and 0 means packed. 16-byte aligned rows
 *   are the fast path; any element alignment works. 16-bit floats are uint16_t.
 * - The arithmetic is in f32, with one rounding to nearest even at the end. NaN propagates unless said otherwise.
 * - A size of 0 is a success that writes nothing. Sizes are int64_t; more than 2^31 elements work. What takes more
 *   blocks of 256 threads than one launch may have is refused: 2^23 - 1 of them are within the limits of every device.
 * - Outputs may alias inputs only where that is stated.
 * - Nothing allocates, waits or reads back, so that an operator can be captured in a CUDA graph once it is loaded
 *   (kiln_preload or a first call loads it).
 * - Zero in a field of params is its default. params may be a temporary.
 * - Any thread may call, but one stream is used by one thread at a time.
 * - On the CPU, too, no frame reaches 4 KB: what a kernel works with lies in memory of the stream and of the device.
 * - The exported functions carry the suffix _sized and take sizeof(params), so that structs can grow: a shorter struct
 *   of an older caller has a zero tail; a longer one with a non-zero tail is refused. A foreign-function interface
 *   calls those, as kiln_add_f16_sized(stream, params, size): the functions without the suffix are inline, and in no
 *   library. docs/foreign-functions.md lists every exported name.
 *
 * Each function returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT before anything is launched, with the parameter and the
 * rule in kiln_last_error(); what loading can return on first use (see kiln_module_get), KILN_ERROR_CAPTURING if that
 * first use is on a stream being captured; and what kiln_launch returns.
 */
#ifndef KILN_OPS_H
#define KILN_OPS_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declares kiln_<name>(stream, params) over its exported, sized form. */
#define KILN_OPERATOR_FUNCTION(name, params_type)                                                                 \
    KILN_API kiln_status kiln_##name##_sized(kiln_stream *stream, const params_type *params, size_t params_size); \
    static inline kiln_status kiln_##name(kiln_stream *stream, const params_type *params) {                       \
        return kiln_##name##_sized(stream, params, sizeof(params_type));                                          \
    }

/* The same for kiln_<name>_workspace_size(stream, params, &size): the exact bytes of workspace that the call would need
 * on the stream. It launches nothing and allocates no device memory; one that has to load the operator's image says so.
 * How work is divided may differ from device to device: the size is for streams of this one. */
#define KILN_WORKSPACE_FUNCTION(name, params_type)                                                          \
    KILN_API kiln_status kiln_##name##_workspace_size_sized(kiln_stream *stream, const params_type *params, \
                                                            size_t params_size, size_t *out_size);          \
    static inline kiln_status kiln_##name##_workspace_size(kiln_stream *stream, const params_type *params,  \
                                                           size_t *out_size) {                              \
        return kiln_##name##_workspace_size_sized(stream, params, sizeof(params_type), out_size);           \
    }

/* The integers of a tensor of ids, positions or slots: an operator that takes both has a field index_type, and their
 * tensors are of that type. */
typedef enum kiln_index_type { KILN_INDEX_I32, KILN_INDEX_I64 } kiln_index_type;

/* ---- add: y = a + b ---------------------------------------------------------------------------------------------- */

typedef struct kiln_add_params {
    void *y;       /* [count]; may be a or b */
    const void *a; /* [count] */
    const void *b; /* [count] */
    int64_t count;
} kiln_add_params;

KILN_OPERATOR_FUNCTION(add_f32, kiln_add_params)
KILN_OPERATOR_FUNCTION(add_f16, kiln_add_params)
KILN_OPERATOR_FUNCTION(add_bf16, kiln_add_params)

/* ---- add_gelu: y = gelu(x + bias) -------------------------------------------------------------------------------- */

/* Which function is meant by GELU (Hendrycks and Gimpel, arXiv 1606.08415); t = x + bias. */
typedef enum kiln_gelu {
    KILN_GELU_ERF,   /* 0.5 t (1 + erf(t / sqrt 2)) */
    KILN_GELU_TANH,  /* 0.5 t (1 + tanh(sqrt(2 / pi) (t + 0.044715 t^3))) */
    KILN_GELU_QUICK, /* t sigmoid(1.702 t) */
} kiln_gelu;

typedef struct kiln_add_gelu_params {
    void *y;          /* [rows, cols]; may be x, with the same stride */
    const void *x;    /* [rows, cols] */
    const void *bias; /* [cols]; NULL: 0 */
    int64_t rows;
    int64_t cols;
    int64_t y_stride; /* 0: cols */
    int64_t x_stride; /* 0: cols */
    int32_t approx;   /* kiln_gelu */
    int32_t reserved; /* must be 0 */
} kiln_add_gelu_params;

/* The bias is added in f32. gelu(-inf) is -0, gelu(+inf) is +inf. */
KILN_OPERATOR_FUNCTION(add_gelu_f32, kiln_add_gelu_params)
KILN_OPERATOR_FUNCTION(add_gelu_f16, kiln_add_gelu_params)
KILN_OPERATOR_FUNCTION(add_gelu_bf16, kiln_add_gelu_params)

/* ---- add_rmsnorm: sum = x + residual; y = sum / sqrt(mean of sum^2 + eps) * weight over each row ----------------- */

typedef struct kiln_add_rmsnorm_params {
    void *y;              /* [rows, cols]; may be x or residual, with the same stride */
    void *sum;            /* [rows, cols]; may be x or residual, with the same stride, but not y */
    const void *x;        /* [rows, cols] */
    const void *residual; /* [rows, cols] */
    const void *weight;   /* [cols]; NULL: 1 */
    int64_t rows;
    int64_t cols;
    int64_t y_stride;        /* 0: cols */
    int64_t sum_stride;      /* 0: cols */
    int64_t x_stride;        /* 0: cols */
    int64_t residual_stride; /* 0: cols */
    float eps;               /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t reserved;        /* must be 0 */
} kiln_add_rmsnorm_params;

/* y is of the sum in f32, before it is rounded to be stored. Otherwise as rmsnorm. */
KILN_OPERATOR_FUNCTION(add_rmsnorm_f32, kiln_add_rmsnorm_params)
KILN_OPERATOR_FUNCTION(add_rmsnorm_f16, kiln_add_rmsnorm_params)
KILN_OPERATOR_FUNCTION(add_rmsnorm_bf16, kiln_add_rmsnorm_params)

/* ---- argmax: where each row has its greatest element ------------------------------------------------------------ */

typedef struct kiln_argmax_params {
    int32_t *y;    /* [rows] */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;          /* at most 2^31 - 1, as rows */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_argmax_<precision>_workspace_size() */
} kiln_argmax_params;

/* Of equal elements the first; 0 and -0 are equal. The first NaN, if there is one. With cols 0 nothing is written. */
KILN_OPERATOR_FUNCTION(argmax_f32, kiln_argmax_params)
KILN_OPERATOR_FUNCTION(argmax_f16, kiln_argmax_params)
KILN_OPERATOR_FUNCTION(argmax_bf16, kiln_argmax_params)

/* The bytes of workspace that argmax needs for rows and cols (the pointers are not looked at): 0 for rows of up to 8192
 * elements. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(argmax_f32, kiln_argmax_params)
KILN_WORKSPACE_FUNCTION(argmax_f16, kiln_argmax_params)
KILN_WORKSPACE_FUNCTION(argmax_bf16, kiln_argmax_params)

/* ---- embedding: y = the rows of a table that ids name ------------------------------------------------------------ */

typedef struct kiln_embedding_params {
    void *y;           /* [rows, cols] */
    const void *table; /* [vocabulary, cols]; may be NULL if vocabulary is 0 */
    const void *ids;   /* [rows], of index_type */
    int64_t rows;
    int64_t cols;
    int64_t vocabulary;
    int64_t y_stride;     /* 0: cols */
    int64_t table_stride; /* 0: cols */
    int64_t first;        /* id of the table's first row: the table may be a part of a larger one. first + vocabulary is
                           * at most 2^63 - 1 */
    int32_t index_type;   /* kiln_index_type of ids */
    int32_t reserved;     /* must be 0 */
} kiln_embedding_params;

/* Rows are copied bit by bit; an id outside of [first, first + vocabulary) gives a row of zeros. */
KILN_OPERATOR_FUNCTION(embedding_f32, kiln_embedding_params)
KILN_OPERATOR_FUNCTION(embedding_f16, kiln_embedding_params)
KILN_OPERATOR_FUNCTION(embedding_bf16, kiln_embedding_params)

/* ---- gemm: d = activation(scale * a * b^T + c + bias) ------------------------------------------------------------ */

/* What is applied to the sum. */
typedef enum kiln_gemm_activation {
    KILN_GEMM_NONE,
    KILN_GEMM_GELU_ERF,
    KILN_GEMM_GELU_TANH,
    KILN_GEMM_GELU_QUICK,
    KILN_GEMM_SILU,
} kiln_gemm_activation;

/* The tile of d that a block does, where the image has kernels for several: those of matrix units (tensor cores) need
 * rows of a and b on 16 bytes. */
typedef enum kiln_gemm_tile {
    KILN_GEMM_TILE_AUTO,     /* by their predicted times */
    KILN_GEMM_TILE_PORTABLE, /* 64 x 64, in f32 arithmetic: every image has it */
    KILN_GEMM_TILE_SMALL,    /* on sm_80 and later 64 x 128, on gfx90a and gfx942 64 x 64 */
    KILN_GEMM_TILE_LARGE,    /* on sm_80 and later 128 x 256, on gfx90a and gfx942 256 x 128 */
} kiln_gemm_tile;

typedef struct kiln_gemm_params {
    void *d;          /* [batch, m, n]; may be c, with the same strides */
    const void *a;    /* [batch, m, k] */
    const void *b;    /* [batch, n, k]: the weights of a linear layer as they are stored, [out, in] */
    const void *c;    /* [batch, m, n]; NULL: 0 */
    const void *bias; /* [n]; NULL: 0 */
    int64_t batch;    /* 1 for a single product; it, m, n and k are at most 2^31 - 1 */
    int64_t m;
    int64_t n;
    int64_t k;              /* 0: the product is 0, and a and b may be NULL */
    int64_t d_stride;       /* 0: n */
    int64_t a_stride;       /* 0: k */
    int64_t b_stride;       /* 0: k */
    int64_t c_stride;       /* 0: n */
    int64_t d_batch_stride; /* between matrices; 0: packed. At least a row: matrices may lie in each other's gaps */
    int64_t a_batch_stride;
    int64_t b_batch_stride;
    int64_t c_batch_stride;
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1. What BLAS calls alpha */
    int32_t activation;    /* kiln_gemm_activation */
    int32_t tile;          /* kiln_gemm_tile; the portable one where the image or the tensors do not allow it */
    int32_t reserved;      /* must be 0 */
} kiln_gemm_params;

/* Products are added in f32: one by one, or as the chip's matrix units add them. Up to 8 rows of a are done by a kernel
 * that reads b once; up to 16 where the image has matrix units, rows of a and b are on 16 bytes and k is a multiple of
 * 8. The matrix units of gfx90a take subnormal numbers of f16 and bf16 for zeros. */
KILN_OPERATOR_FUNCTION(gemm_f32, kiln_gemm_params)
KILN_OPERATOR_FUNCTION(gemm_f16, kiln_gemm_params)
KILN_OPERATOR_FUNCTION(gemm_bf16, kiln_gemm_params)

/* The bytes of workspace with which gemm divides a long k among blocks where d alone would occupy few of them (the
 * pointers are not looked at: it is enough for aligned and other tensors); 0 where that does not pay. It depends on the
 * kernels of the image for the stream's device, which is loaded if no call has done so. Without workspace the product
 * is not divided: slower, and other in the last bits. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, and what loading
 * can return. */
KILN_WORKSPACE_FUNCTION(gemm_f32, kiln_gemm_params)
KILN_WORKSPACE_FUNCTION(gemm_f16, kiln_gemm_params)
KILN_WORKSPACE_FUNCTION(gemm_bf16, kiln_gemm_params)

/* ---- kv_compact: the accepted tokens of draft trees, moved together in a cache -------------------------------------
 */

typedef struct kiln_kv_compact_params {
    void *key_cache;          /* [capacity, cols], all blocks one behind the other: block * block size + offset */
    void *value_cache;        /* [capacity, cols] */
    const void *slot_mapping; /* [batch, nodes], of index_type: as kiln_kv_store had it when it stored the trees */
    const int32_t *path;      /* [batch, depth], ascending nodes: the root, 0, and those that were accepted behind it */
    const int32_t *accepted;  /* [batch], how many of a path count, the root included; at most depth and nodes */
    int64_t batch;
    int64_t nodes;
    int64_t depth;
    int64_t cols; /* kv heads * head_dim */
    int64_t capacity;
    int64_t key_cache_stride;   /* 0: cols */
    int64_t value_cache_stride; /* 0: cols */
    int32_t index_type;         /* kiln_index_type of slot_mapping */
    int32_t reserved;           /* must be 0 */
} kiln_kv_compact_params;

/* For each sequence and each i below its accepted: the rows of node path[i] are copied, bit by bit, to those of node i,
 * so that what was accepted stands where the next tokens of the sequence belong, and kiln_blocks_truncate takes back
 * the rest. A node or a slot that is not there is skipped. <kiln/tree.h> makes trees and finds paths. Slots of one call
 * are different from each other. */
KILN_OPERATOR_FUNCTION(kv_compact_f32, kiln_kv_compact_params)
KILN_OPERATOR_FUNCTION(kv_compact_f16, kiln_kv_compact_params)
KILN_OPERATOR_FUNCTION(kv_compact_bf16, kiln_kv_compact_params)

/* ---- kv_copy_blocks: blocks of a cache, copied within it --------------------------------------------------------- */

typedef struct kiln_kv_copy_blocks_params {
    void *key_cache;   /* [blocks, cols]: cols is block size * kv heads * head_dim */
    void *value_cache; /* [blocks, cols] */
    const void *pairs; /* [count, 2], of index_type: from which block to which */
    int64_t count;
    int64_t blocks;
    int64_t cols;
    int32_t index_type; /* kiln_index_type of pairs */
    int32_t reserved;   /* must be 0 */
} kiln_kv_copy_blocks_params;

/* Copy-on-write of paged caches (Kwon et al., arXiv 2309.06180): a sequence that is about to write into a block that
 * others share gets its own. Pairs with a block outside of the cache are skipped. A block that is written must not be
 * read or written by another pair. */
KILN_OPERATOR_FUNCTION(kv_copy_blocks_f32, kiln_kv_copy_blocks_params)
KILN_OPERATOR_FUNCTION(kv_copy_blocks_f16, kiln_kv_copy_blocks_params)
KILN_OPERATOR_FUNCTION(kv_copy_blocks_bf16, kiln_kv_copy_blocks_params)

/* ---- kv_store: the keys and values of tokens into the slots of a cache ------------------------------------------- */

typedef struct kiln_kv_store_params {
    void *key_cache;          /* [capacity, cols]: a paged cache is [blocks * block size, kv heads * head_dim] */
    void *value_cache;        /* [capacity, cols] */
    const void *key;          /* [tokens, cols] */
    const void *value;        /* [tokens, cols] */
    const void *slot_mapping; /* [tokens], of index_type: row of the caches; one outside, as -1, skips its token */
    int64_t tokens;
    int64_t cols;
    int64_t capacity;
    int64_t key_stride;         /* 0: cols */
    int64_t value_stride;       /* 0: cols */
    int64_t key_cache_stride;   /* 0: cols */
    int64_t value_cache_stride; /* 0: cols */
    int32_t index_type;         /* kiln_index_type of slot_mapping */
    int32_t reserved;           /* must be 0 */
} kiln_kv_store_params;

/* Copied bit by bit; rows of the caches that no slot names stay. Which of two tokens with the same slot stays is not
 * defined. */
KILN_OPERATOR_FUNCTION(kv_store_f32, kiln_kv_store_params)
KILN_OPERATOR_FUNCTION(kv_store_f16, kiln_kv_store_params)
KILN_OPERATOR_FUNCTION(kv_store_bf16, kiln_kv_store_params)

/* ---- mha: out = softmax(mask(scale * q k^T)) v, attention of several heads --------------------------------------- */

/* By which kernel a call is done. */
typedef enum kiln_mha_kernel {
    KILN_MHA_KERNEL_AUTO,     /* matrix units (tensor cores) where the image has kernels of them for the call */
    KILN_MHA_KERNEL_PORTABLE, /* f32 arithmetic, with one rounding: every image has it */
} kiln_mha_kernel;

typedef struct kiln_mha_params {
    void *out;                   /* [tokens, heads, head_dim] */
    float *lse;                  /* [heads, tokens]: ln of the sum of exp of each query's scores; NULL: not wanted */
    const void *q;               /* [tokens, heads, head_dim] */
    const void *k;               /* [kv_tokens, kv_heads, head_dim]; may be NULL if kv_tokens is 0, as v */
    const void *v;               /* [kv_tokens, kv_heads, head_dim] */
    const int32_t *cu_seqlens_q; /* [batch + 1], from 0: row of q with which each sequence begins, and the end of the
                                  * last; NULL: tokens / batch rows for each */
    const int32_t *cu_seqlens_k; /* [batch + 1], from 0: the same of k and v; NULL: kv_tokens / batch rows for each */
    const int32_t *seqlens_k;    /* [batch]: how many keys of its room each sequence has; NULL: all */
    int64_t tokens;              /* at most 2^31 - 1, as kv_tokens */
    int64_t kv_tokens;
    int64_t batch; /* sequences, at most 2^24 */
    int64_t heads; /* a multiple of kv_heads, at most 2^16: head h has the keys of head h / (heads / kv_heads) */
    int64_t kv_heads;
    int64_t head_dim;   /* at most 256 */
    int64_t out_stride; /* between tokens; 0: packed. Heads are packed within a token */
    int64_t q_stride;
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_q;  /* with cu_seqlens_q the most queries of a sequence, 0: tokens; without them 0. Times heads /
                            * kv_heads at most 2^31 - 1 */
    int64_t max_seqlen_k;  /* with cu_seqlens_k the most keys of a sequence, 0: kv_tokens; without them 0 */
    int64_t window_left;   /* a query sees so many keys up to its own place, which counts; 0: all. At most 2^31 - 1.
                            * FlashAttention's w of window_size, which does not count it, is w + 1; its -1 is 0 */
    int64_t window_right;  /* a query sees so many keys from its own place on, which counts; 0: all. At most 2^31 - 1.
                            * FlashAttention's w is w + 1, its -1 is 0 */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_mha_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 / sqrt(head_dim) */
    float softcap;         /* scores become softcap * tanh(score / softcap) before the mask; 1e-6 to 1e6. 0: off */
    int32_t causal;        /* 0, or 1: window_right 1 */
    int32_t kernel;        /* kiln_mha_kernel */
} kiln_mha_params;

/* Attention (Vaswani et al., arXiv 1706.03762) with grouped heads (Ainslie et al., arXiv 2305.13245), in one pass over
 * the keys (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv 2205.14135). A query's own place is counted
 * from the end: the last query of a sequence stands at its last key. A query that sees no key gives zeros, and -inf in
 * lse. A NaN or an infinity in v may reach queries of its sequence that do not see its key, as 0 times it; one in k
 * does not. cu_seqlens, which never descend, and seqlens_k are read on the device: they may change between replays of a
 * graph; what they say beyond the sizes here is cut. What stands in out and lse for queries that no sequence has, or
 * that were cut, stays as it is.
 *
 * In f16 and bf16 images of sm_80 and later use matrix units, if head_dim is a multiple of 8, q, k, v and out and their
 * strides are on 16 bytes, and scale is positive or there is a softcap: products and sums in f32, but each weight, exp
 * of a score less the row's maximum so far, is rounded to the precision before it is multiplied with v, as in
 * FlashAttention. All others, and KILN_MHA_KERNEL_PORTABLE, compute in f32 with one rounding. */
KILN_OPERATOR_FUNCTION(mha_f32, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_f16, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_bf16, kiln_mha_params)

/* The bytes of workspace with which mha divides the keys among blocks where queries are few, as when tokens are
 * generated (of the pointers only cu_seqlens_q and cu_seqlens_k are looked at, whether they are NULL); 0 where that
 * does not pay. It depends on the kernels of the image for the stream's device, which is loaded if no call has done so.
 * Without workspace keys are not divided: slower, and other in the last bits. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, and what loading can return. */
KILN_WORKSPACE_FUNCTION(mha_f32, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_f16, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_bf16, kiln_mha_params)

/* ---- mha_paged: mha with keys and values in the blocks of a cache ------------------------------------------------ */

typedef struct kiln_mha_paged_params {
    void *out;                   /* [tokens, heads, head_dim] */
    float *lse;                  /* [heads, tokens]; NULL: not wanted */
    const void *q;               /* [tokens, heads, head_dim] */
    const void *k_cache;         /* [blocks, block_size, kv_heads, head_dim], as kv_store writes it */
    const void *v_cache;         /* [blocks, block_size, kv_heads, head_dim] */
    const int32_t *block_table;  /* [batch, max_blocks_per_seq]: blocks of each sequence, in order; only as many as
                                  * its keys need are read, and a block that the cache does not have counts as its
                                  * last one */
    const int32_t *seqlens_k;    /* [batch]: keys of each sequence */
    const int32_t *cu_seqlens_q; /* [batch + 1], from 0: row of q with which each sequence begins, and the end of the
                                  * last; NULL: tokens / batch rows for each */
    int64_t tokens;              /* it, batch, heads, kv_heads and head_dim as in kiln_mha_params */
    int64_t blocks;              /* at most 2^31 - 1 */
    int64_t block_size;          /* a power of two, at most 2^20 */
    int64_t batch;
    int64_t max_blocks_per_seq; /* the most blocks of a sequence; their keys are at most 2^31 - 1 */
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;   /* at most 256 */
    int64_t out_stride; /* between tokens; 0: packed */
    int64_t q_stride;
    int64_t k_cache_stride; /* between keys; 0: packed. A block is block_size of them */
    int64_t v_cache_stride;
    int64_t max_seqlen_q; /* with cu_seqlens_q the most queries of a sequence, 0: tokens; without them 0 */
    int64_t window_left;  /* from here on as in kiln_mha_params */
    int64_t window_right;
    void *workspace;
    size_t workspace_size; /* 0, or at least kiln_mha_paged_<precision>_workspace_size() */
    float scale;
    float softcap;
    int32_t causal;
    int32_t kernel; /* kiln_mha_kernel */
} kiln_mha_paged_params;

/* The same as mha on the keys and values gathered from the cache (Kwon et al., arXiv 2309.06180), bit for bit where
 * both divide the keys alike. */
KILN_OPERATOR_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

/* As for mha; the longest sequence is taken to fill its table. */
KILN_WORKSPACE_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

/* ---- mul_add: y = a * b + c -------------------------------------------------------------------------------------- */

typedef struct kiln_mul_add_params {
    void *y;       /* [count]; may be a, b or c */
    const void *a; /* [count] */
    const void *b; /* [count] */
    const void *c; /* [count] */
    int64_t count;
} kiln_mul_add_params;

/* One fused multiply-add in f32 (a single rounding), then one rounding to the precision. */
KILN_OPERATOR_FUNCTION(mul_add_f32, kiln_mul_add_params)
KILN_OPERATOR_FUNCTION(mul_add_f16, kiln_mul_add_params)
KILN_OPERATOR_FUNCTION(mul_add_bf16, kiln_mul_add_params)

/* ---- quantize_fp8: x as E4M3 with decode scales ------------------------------------------------------------------ */

typedef struct kiln_quantize_fp8_params {
    uint8_t *codes;     /* [rows, cols], OCP E4M3 on every device */
    float *scales;      /* [scale_rows, scale_cols], written; NULL: not wanted */
    const void *x;      /* [rows, cols] */
    const float *given; /* [scale_rows, scale_cols], the scales; NULL: amax / smax */
    const float *amax;  /* [scale_rows, scale_cols], the greatest magnitudes; NULL: found in x. Not read if given is not
                         * NULL */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* 1, rows / 128 rounded up, or rows, as 0: how many rows share a scale */
    int64_t scale_cols;   /* 1, as 0, or cols / 128 rounded up: how many columns do */
    int64_t codes_stride; /* 0: cols */
    int64_t x_stride;     /* 0: cols */
    float smax;           /* what the greatest magnitude becomes: from 1 to 448; 0: 448 */
    int32_t reserved;     /* must be 0 */
} kiln_quantize_fp8_params;

/* The numbers of scales say which elements share one: 1 x 1 the tensor, rows x 1 each row (a token), rows x cols / 128
 * each group of 1 x 128, rows / 128 x cols / 128 each block of 128 x 128. Groups at the ends may be smaller. Scales of
 * more than one row and of more than 128 x 128 elements, as a tensor's, need given or amax, which is on the device:
 * nothing is read back.
 *
 *     scale = amax / smax     where that is at least 2^-126, else 1
 *     code = E4M3(x * (1 / scale))
 *
 * in IEEE arithmetic, each operation rounded once: codes and scales are the same bits on every device, and those of a
 * call with the scales given. E4M3() rounds to nearest even and bounds magnitudes by smax. So zeros have the scale 1
 * and codes 0 with their signs. amax passes over NaN, whose code is 0x7f; of infinities it is the greatest f32, and
 * their codes are +-smax. A given scale below 2^-126, as 0, or NaN is taken for 1. */
KILN_OPERATOR_FUNCTION(quantize_fp8_f32, kiln_quantize_fp8_params)
KILN_OPERATOR_FUNCTION(quantize_fp8_f16, kiln_quantize_fp8_params)
KILN_OPERATOR_FUNCTION(quantize_fp8_bf16, kiln_quantize_fp8_params)

/* ---- quantize_int8: x as int8 with decode scales ----------------------------------------------------------------- */

typedef struct kiln_quantize_int8_params {
    int8_t *codes;      /* [rows, cols], from -127 to 127 */
    float *scales;      /* [scale_rows, scale_cols], written; NULL: not wanted */
    const void *x;      /* [rows, cols] */
    const float *given; /* [scale_rows, scale_cols], the scales; NULL: amax / smax */
    const float *amax;  /* [scale_rows, scale_cols], the greatest magnitudes; NULL: found in x. Not read if given is not
                         * NULL */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* 1, rows / 128 rounded up, or rows, as 0: how many rows share a scale */
    int64_t scale_cols;   /* 1, as 0, or cols / 128 rounded up: how many columns do */
    int64_t codes_stride; /* 0: cols */
    int64_t x_stride;     /* 0: cols */
    float smax;           /* what the greatest magnitude becomes: from 1 to 127; 0: 127 */
    int32_t reserved;     /* must be 0 */
} kiln_quantize_int8_params;

/* As quantize_fp8, with code = the integer nearest to x * (1 / scale), of two the even one, bounded by smax. The code
 * of NaN is 0. */
KILN_OPERATOR_FUNCTION(quantize_int8_f32, kiln_quantize_int8_params)
KILN_OPERATOR_FUNCTION(quantize_int8_f16, kiln_quantize_int8_params)
KILN_OPERATOR_FUNCTION(quantize_int8_bf16, kiln_quantize_int8_params)

/* ---- rmsnorm: y = x / sqrt(mean of x^2 + eps) * weight over each row --------------------------------------------- */

typedef struct kiln_rmsnorm_params {
    void *y;            /* [rows, cols]; may be x, with the same stride */
    const void *x;      /* [rows, cols] */
    const void *weight; /* [cols]; NULL: 1 */
    int64_t rows;
    int64_t cols;
    int64_t y_stride; /* 0: cols */
    int64_t x_stride; /* 0: cols */
    float eps;        /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t reserved; /* must be 0 */
} kiln_rmsnorm_params;

/* Root mean square normalisation (Zhang and Sennrich, arXiv 1910.07467). Rows may be of any length up to 2^32 - 2^13
 * elements. A row whose sum of squares is beyond the range of f32 gives zeros; with a NaN it is NaN. */
KILN_OPERATOR_FUNCTION(rmsnorm_f32, kiln_rmsnorm_params)
KILN_OPERATOR_FUNCTION(rmsnorm_f16, kiln_rmsnorm_params)
KILN_OPERATOR_FUNCTION(rmsnorm_bf16, kiln_rmsnorm_params)

/* ---- rope: each pair of a head's elements turned by the position times the pair's frequency ---------------------- */

/* Which elements are pair i of a head (Su et al., arXiv 2104.09864). */
typedef enum kiln_rope_layout {
    KILN_ROPE_INTERLEAVED, /* 2i and 2i + 1 */
    KILN_ROPE_HALF,        /* i and pairs + i */
} kiln_rope_layout;

/* The elements of a table of cosines and sines. */
typedef enum kiln_rope_table { KILN_ROPE_TABLE_PART /* those of x */, KILN_ROPE_TABLE_F32 } kiln_rope_table;

typedef struct kiln_rope_params {
    void *y;                    /* [tokens, heads, 2 * pairs]; may be x, with the same strides */
    const void *x;              /* [tokens, heads, 2 * pairs] */
    const void *positions;      /* [tokens], of index_type; NULL: 0, 1, 2 and so on */
    const int64_t *frequencies; /* [pairs]: turns for each step of the position, times 2^64: kiln_rope_frequencies.
                                 * NULL: the table is used */
    const void *cosines;        /* [table_rows, pairs], of table_type: row p is position p's */
    const void *sines;          /* [table_rows, pairs] */
    int64_t tokens;
    int64_t heads; /* at most 2^20, as pairs */
    int64_t pairs;
    int64_t y_stride;      /* between tokens; 0: packed */
    int64_t y_head_stride; /* between heads; 0: 2 * pairs. Where only a part of each head is turned it is the whole */
    int64_t x_stride;      /* between tokens; 0: packed */
    int64_t x_head_stride; /* between heads; 0: 2 * pairs */
    int64_t table_rows;    /* tokens whose position is not in the table are not turned */
    int64_t table_stride;  /* between rows of cosines and of sines; 0: pairs */
    float scale;           /* what cosines and sines are multiplied with, as YaRN's attention factor; 0: 1 */
    int32_t layout;        /* kiln_rope_layout */
    int32_t index_type;    /* kiln_index_type of positions */
    int32_t table_type;    /* kiln_rope_table */
} kiln_rope_params;

/* By frequencies angles are exact at every position, and sine and cosine have an error of at most 1.2e-7; a table is as
 * good as it was made. vLLM's cos_sin_cache, [positions, 2 * pairs], is a table with sines = cosines + pairs and
 * table_stride 2 * pairs; Hugging Face's cos and sin, of each token and with every column twice, are one with positions
 * NULL and the same stride, and mean KILN_ROPE_HALF. */
KILN_OPERATOR_FUNCTION(rope_f32, kiln_rope_params)
KILN_OPERATOR_FUNCTION(rope_f16, kiln_rope_params)
KILN_OPERATOR_FUNCTION(rope_bf16, kiln_rope_params)

/* How a longer context than the trained one is made to fit. */
typedef enum kiln_rope_scaling_kind {
    KILN_ROPE_UNSCALED,
    KILN_ROPE_LINEAR, /* all frequencies divided by factor (Chen et al., arXiv 2306.15595) */
    KILN_ROPE_LLAMA3, /* those with fewer than low_factor waves in original_length divided by factor, those with more
                       * than high_factor kept, those between blended (Llama 3.1) */
    KILN_ROPE_YARN,   /* the same by number of the pair: linear from the pair with high_factor waves, which is kept, to
                       * the one with low_factor, which is divided (YaRN: Peng et al., arXiv 2309.00071) */
} kiln_rope_scaling_kind;

typedef struct kiln_rope_scaling {
    int32_t kind;            /* kiln_rope_scaling_kind */
    int32_t reserved;        /* must be 0 */
    double factor;           /* from 1 to 1e6 */
    double low_factor;       /* positive; it and the next two are of KILN_ROPE_LLAMA3 and KILN_ROPE_YARN alone. YaRN: 0
                              * is 1; what Hugging Face calls beta_slow */
    double high_factor;      /* greater than low_factor, up to 1e6. YaRN: 0 is 32; beta_fast */
    int64_t original_length; /* positions */
    double mscale; /* this and the next are YaRN's, of DeepSeek's models: from 0 to 1e6; both 0: as the paper */
    double mscale_all_dim;
    int32_t untruncated; /* YaRN: not 0: the two pairs' numbers are not rounded outwards to whole ones */
    int32_t reserved_2;  /* must be 0 */
} kiln_rope_scaling;

/* Writes the frequencies theta^(-i / pairs) radians, i from 0 on, in the units of kiln_rope_params, into host memory of
 * the caller: [pairs], at most 2^20, to be copied to the device. theta is from 1 to 1e30, or 0 for 10000. scaling may
 * be NULL. After an error nothing is written. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_rope_frequencies(double theta, const kiln_rope_scaling *scaling, int64_t pairs,
                                           int64_t *out_frequencies);

/* What a scaling multiplies cosines and sines with: the scale of kiln_rope_params. For YaRN 0.1 ln(factor) + 1, or with
 * mscale and mscale_all_dim (0.1 mscale ln(factor) + 1) / (0.1 mscale_all_dim ln(factor) + 1); else 1. After an error
 * *out_factor is 0. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_rope_attention_factor(const kiln_rope_scaling *scaling, float *out_factor);

/* ---- rope3d: rope on three axes, for the tokens of a video ------------------------------------------------------- */

typedef struct kiln_rope3d_params {
    void *y;                    /* [batch, tokens, heads, 2 * pairs]; may be x, with the same strides */
    const void *x;              /* [batch, tokens, heads, 2 * pairs] */
    const int32_t *grids;       /* [batch, 3]: frames, rows and columns of each sequence */
    const int64_t *frequencies; /* [pairs]: turns for each step on the pair's axis, times 2^64 */
    int64_t batch;
    int64_t tokens; /* of a sequence; batch * tokens is at most 2^31 - 1 */
    int64_t heads;  /* at most 2^20, as pairs */
    int64_t pairs;
    int64_t y_stride;      /* between tokens; 0: packed. Sequences follow each other */
    int64_t y_head_stride; /* between heads; 0: 2 * pairs */
    int64_t x_stride;
    int64_t x_head_stride;
    int64_t frame_pairs; /* the first pairs turn by the frame, the next by the row, the others by the column; */
    int64_t row_pairs;   /* both 0: pairs / 3 for rows and columns each */
    int32_t layout;      /* kiln_rope_layout */
    int32_t reserved;    /* must be 0 */
} kiln_rope3d_params;

/* Rotary embedding of Wan 2.1 and its like. Tokens lie in the order of frames, rows and columns; those behind the
 * grid's last are copied. The frequencies of an axis are those of kiln_rope_frequencies for its number of pairs, one
 * axis after the other; what models with tables of angles have is the same, without the tables. */
KILN_OPERATOR_FUNCTION(rope3d_f32, kiln_rope3d_params)
KILN_OPERATOR_FUNCTION(rope3d_f16, kiln_rope3d_params)
KILN_OPERATOR_FUNCTION(rope3d_bf16, kiln_rope3d_params)

/* ---- sample: a random column of each row of logits --------------------------------------------------------------- */

typedef struct kiln_sample_params {
    int32_t *y;    /* [rows]; -1 where a row has nothing but -inf and NaN */
    const void *x; /* [rows, cols] */
    /* For each row, [rows] on the device, read when the kernel runs; NULL: the field of this name below, for all rows
     */
    const float *row_temperature;
    const int32_t *row_top_k;
    const float *row_top_p;
    const float *row_min_p;
    const int64_t *row_seed;
    const void *row_position; /* of index_type */
    int64_t rows;
    int64_t cols;       /* at most 2^22 */
    int64_t x_stride;   /* 0: cols */
    int64_t seed;       /* of the random numbers */
    int64_t position;   /* how many numbers have been drawn with the seed before, as a token's place in its sequence */
    int64_t top_k;      /* only so many of the greatest logits are chosen from; 0: all */
    float temperature;  /* what logits are divided by, 1e-6 to 1e6; 0: the greatest is taken, of equals the first */
    float top_p;        /* from 0 to 1: only the greatest that have at least this probability together; 0, 1: all */
    float min_p;        /* from 0 to 1: only those that have at least this part of the greatest's probability; 0: all */
    int32_t index_type; /* kiln_index_type of row_position */
} kiln_sample_params;

/* The probability of a column is that of the softmax over what is left: by temperature, then top_k and min_p (Nguyen et
 * al., arXiv 2407.01082), then top_p (Holtzman et al., arXiv 1904.09751) of what these leave. Equal logits are ranked
 * by their column. -inf and NaN are never chosen; +inf, if there is one, is. Every backend chooses the same.
 *
 * Random numbers are Philox's (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). With row_seed a
 * row's number depends on its seed and its position alone: a request gets the same tokens in whichever row of whichever
 * batch it stands. Rows that share the one seed are told apart by their numbers.
 *
 * What the device reads cannot be refused: there a temperature that is NaN or below 1e-6 takes the greatest, one above
 * 1e6 counts as 1e6; a top_k of 0 or less, a top_p that is NaN, 0 or less, or 1 or more, and a min_p that is NaN, 0 or
 * less leave all; a min_p above 1 counts as 1. */
KILN_OPERATOR_FUNCTION(sample_f32, kiln_sample_params)
KILN_OPERATOR_FUNCTION(sample_f16, kiln_sample_params)
KILN_OPERATOR_FUNCTION(sample_bf16, kiln_sample_params)

/* ---- silu_mul: y = act(gate) * up, the gated activation of an MLP ------------------------------------------------ */

/* The gate's function (Shazeer, arXiv 2002.05202). */
typedef enum kiln_glu {
    KILN_GLU_SILU,      /* g sigmoid(g) */
    KILN_GLU_GELU_TANH, /* gelu of g, tanh form */
} kiln_glu;

typedef struct kiln_silu_mul_params {
    void *y;          /* [rows, cols]; may be gate or up, with the same stride */
    const void *gate; /* [rows, cols]; with up NULL [rows, 2 * cols]: gate, then up in each row */
    const void *up;   /* [rows, cols] or NULL */
    int64_t rows;
    int64_t cols;        /* of y */
    int64_t y_stride;    /* 0: cols */
    int64_t gate_stride; /* 0: packed */
    int64_t up_stride;   /* 0: cols; with up NULL it must be 0 */
    int32_t activation;  /* kiln_glu */
    int32_t reserved;    /* must be 0 */
} kiln_silu_mul_params;

/* The gate is computed in f32. A gate below -80 gives 0 by SILU, where the true value is above -1.5e-33 (by the GELUs
 * below -9.7 for tanh and -47 for quick); gemm's activations and add_gelu do the same. */
KILN_OPERATOR_FUNCTION(silu_mul_f32, kiln_silu_mul_params)
KILN_OPERATOR_FUNCTION(silu_mul_f16, kiln_silu_mul_params)
KILN_OPERATOR_FUNCTION(silu_mul_bf16, kiln_silu_mul_params)

/* ---- softmax: y = exp(x - max x) / sum exp(x - max x) over each row ---------------------------------------------- */

typedef struct kiln_softmax_params {
    void *y;       /* [rows, cols]; may be x, with the same stride */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;
    int64_t y_stride;      /* 0: cols */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_softmax_<precision>_workspace_size() */
} kiln_softmax_params;

/* Rows of up to 32 KiB are read once and need no workspace; longer rows are read twice, by many blocks. A row of -inf
 * gives zeros; a +inf or NaN entry makes its row NaN. What is below the least normal number of f32, 1.2e-38, is 0, in
 * bf16 too, which has denormals there. The result does not depend on the device's size. */
KILN_OPERATOR_FUNCTION(softmax_f32, kiln_softmax_params)
KILN_OPERATOR_FUNCTION(softmax_f16, kiln_softmax_params)
KILN_OPERATOR_FUNCTION(softmax_bf16, kiln_softmax_params)

/* The bytes of workspace that softmax needs for rows and cols (the pointers are not looked at): 0 for short rows.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(softmax_f32, kiln_softmax_params)
KILN_WORKSPACE_FUNCTION(softmax_f16, kiln_softmax_params)
KILN_WORKSPACE_FUNCTION(softmax_bf16, kiln_softmax_params)

/* ---- top_k: the k greatest elements of each row ------------------------------------------------------------------ */

enum { KILN_TOP_K_MOST = 1024 };

typedef struct kiln_top_k_params {
    void *values;     /* [rows, k], the greatest first; NULL: not wanted */
    int32_t *indices; /* [rows, k], their columns */
    const void *x;    /* [rows, cols] */
    int64_t rows;
    int64_t cols;          /* at most 2^31 - 1, as rows */
    int64_t k;             /* at most cols and KILN_TOP_K_MOST */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_top_k_<precision>_workspace_size() */
} kiln_top_k_params;

/* Of equal elements the lower column comes first, and where not all of them are among the k the lower columns are; 0
 * and -0 are equal. NaN comes before all numbers. Values are copied bit by bit. With rows or k 0 nothing is written. */
KILN_OPERATOR_FUNCTION(top_k_f32, kiln_top_k_params)
KILN_OPERATOR_FUNCTION(top_k_f16, kiln_top_k_params)
KILN_OPERATOR_FUNCTION(top_k_bf16, kiln_top_k_params)

/* The bytes of workspace that top_k needs for rows, cols and k (the pointers are not looked at): 0 for rows of up to
 * 4096 elements. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(top_k_f32, kiln_top_k_params)
KILN_WORKSPACE_FUNCTION(top_k_f16, kiln_top_k_params)
KILN_WORKSPACE_FUNCTION(top_k_bf16, kiln_top_k_params)

/* ---- Descriptions: the operators as data, for tools and bindings ------------------------------------------------- */

typedef enum kiln_field_role {
    KILN_FIELD_INPUT,          /* tensor, read */
    KILN_FIELD_OUTPUT,         /* tensor, written */
    KILN_FIELD_UPDATE,         /* tensor, of which a part is written and the rest stays */
    KILN_FIELD_SIZE,           /* int64_t, taken from the tensors' shapes */
    KILN_FIELD_STRIDE,         /* int64_t, of the tensor that shape names */
    KILN_FIELD_OPTION,         /* int32_t, one of the named choices */
    KILN_FIELD_INTEGER,        /* int64_t, any number */
    KILN_FIELD_REAL,           /* float, finite */
    KILN_FIELD_WORKSPACE,      /* pointer */
    KILN_FIELD_WORKSPACE_SIZE, /* size_t */
} kiln_field_role;

/* One field of an operator's params. */
typedef struct kiln_field {
    const char *name;
    kiln_field_role role;
    uint32_t offset;     /* in the params struct */
    uint32_t size;       /* of the field */
    uint32_t optional;   /* non-zero: a tensor that may be NULL */
    const char *dtype;   /* tensors: "part" (the function's precision), a fixed one ("i32"), or the option whose choice
                          * is the dtype ("index_type"); else "" */
    const char *shape;   /* tensors: names of size fields, "rows,cols", also "2*cols" and "batch+1";
                          * "rows,cols|rows,2*cols": what stands after the bar holds where an optional input is NULL.
                          * Strides: the tensor's name. Sizes: "", or the tensor whose leading dimensions, where there
                          * are several, begin with it if no other tensor has it */
    const char *choices; /* options: "erf,tanh,quick", in the order of their numbers; else "" */
    int64_t typical;     /* sizes: what a bench takes; 0: as much as makes the tensors as large as is asked for */
    const char *text;    /* one line for help */
    const char *instead; /* tensors: the optional tensor that is needed where this one is NULL; else NULL */
} kiln_field;

typedef kiln_status (*kiln_operator_call)(kiln_stream *stream, const void *params, size_t params_size);
typedef kiln_status (*kiln_workspace_call)(kiln_stream *stream, const void *params, size_t params_size,
                                           size_t *out_size);

/* One typed function of an operator. */
typedef struct kiln_operator_function {
    const char *name; /* "softmax_f16" */
    const char *part; /* "f16" */
    kiln_operator_call call;
    kiln_workspace_call workspace_size; /* NULL: needs none */
} kiln_operator_function;

typedef struct kiln_operator {
    const char *name;    /* "softmax" */
    const char *summary; /* one line */
    const kiln_bundle *bundle;
    const kiln_field *fields;
    const kiln_operator_function *functions;
    uint32_t field_count;
    uint32_t function_count;
    uint32_t params_size;
    uint32_t reserved;
} kiln_operator;

/* Every operator of this library, in the order of kernels/ops.def. *out_operators points to static storage. Referring
 * to this function links all images; only tools want that. Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_all_operators(const kiln_operator *const **out_operators, size_t *out_count);

#ifdef __cplusplus
}
#endif

#endif
