/* Conditional memory by n-grams (Cheng et al., Conditional Memory via Scalable Lookup, arXiv 2601.07372): Engram's hash
 * and gate. kiln_embedding runs between them and kiln_causal_conv1d after them; docs/engram.md assembles a complete
 * layer. ops.h has the rules for every operator. */
#ifndef KILN_OPS_ENGRAM_H
#define KILN_OPS_ENGRAM_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- engram_hash: the rows of Engram's tables that tokens and those before them hash to ------------------------- */

typedef struct kiln_engram_hash_params {
    int64_t *rows;             /* [layers, tokens, orders, heads]: ids for kiln_embedding, of KILN_INDEX_I64 */
    const void *ids;           /* [tokens], of index_type: of all sequences, concatenated */
    const void *history;       /* [batch, orders], of index_type: the ids before each sequence's first one, in order;
                                * NULL: pad_id */
    const int32_t *cu_seqlens; /* [batch + 1], from 0: the token at which each sequence begins, and the end of the last;
                                * NULL: tokens / batch tokens each */
    const int32_t *lookup;     /* [vocabulary]: the id that replaces each id; NULL: no replacement */
    const int64_t *multipliers; /* [layers, orders + 1] */
    const int64_t *primes;      /* [layers, orders, heads]: the number of rows of each head's table */
    const int64_t *offsets;     /* [layers, orders, heads]: the row of the layer's table at which each head's table
                                 * begins; NULL: 0 */
    int64_t tokens;             /* at most 2^31 - 1 */
    int64_t batch;              /* 0: 1 */
    int64_t layers;             /* at most 32768 */
    int64_t orders;             /* n-grams of 2 to orders + 1 tokens; orders * heads is at most 256 */
    int64_t heads;              /* heads of each order */
    int64_t vocabulary;         /* at most 2^31 - 1 */
    int64_t pad_id;             /* the id before a sequence's beginning; replaced by lookup like any other */
    int32_t index_type;         /* kiln_index_type of ids and history */
    int32_t reserved;           /* must be 0 */
} kiln_engram_hash_params;

/* rows = offsets + mix modulo primes, where the mix of an n-gram is the exclusive or of multipliers[k] times the id k
 * tokens before, for k from 0 to n - 1, in 64-bit integers that wrap around; a negative mix modulo a prime is from 0 to
 * prime - 1; both are as in NumPy and PyTorch. An id outside lookup, such as a negative one, is not replaced. If a
 * prime is below 1, or if a token belongs to no sequence, the row is -1, for which kiln_embedding produces zeros.
 *
 * Decoding continues a sequence: given the last ids of the preceding tokens as history, the rows are the same as for
 * the whole sequence. Pad a shorter history at its beginning with pad_id.
 *
 * No tensor has the function's precision: the three functions compute the same result. */
KILN_OPERATOR_FUNCTION(engram_hash_f32, kiln_engram_hash_params)
KILN_OPERATOR_FUNCTION(engram_hash_f16, kiln_engram_hash_params)
KILN_OPERATOR_FUNCTION(engram_hash_bf16, kiln_engram_hash_params)

/* ---- engram_gate: how much of the embeddings goes into the hidden state ------------------------------------------ */

typedef struct kiln_engram_gate_params {
    void *y;                /* [tokens, groups, cols] */
    void *normed;           /* [tokens, groups, cols]: the norm of y, the input of the convolution; NULL: not written */
    const void *key;        /* [tokens, groups, cols]: the product of each group's Wk and the embeddings */
    const void *query;      /* [tokens, groups, cols]: the hidden state of each hyper-connection. May be y */
    const void *value;      /* [tokens, cols]: the product of Wv and the embeddings */
    const void *key_weight; /* [groups, cols], of key's norm; NULL: 1 */
    const void *query_weight; /* [groups, cols], of query's norm; NULL: 1 */
    const void *norm_weight;  /* [groups, cols], of y's norm; NULL: 1 */
    int64_t tokens;
    int64_t groups; /* hyper-connections */
    int64_t cols;
    int64_t y_stride;      /* elements between tokens; 0: groups * cols */
    int64_t normed_stride; /* 0: groups * cols */
    int64_t key_stride;    /* 0: groups * cols; more if key and value come from one product with Wk and Wv in one
                            * matrix */
    int64_t query_stride;  /* 0: groups * cols */
    int64_t value_stride;  /* 0: cols */
    float eps;             /* of key's norm and query's; 0: 1e-6 */
    float norm_eps;        /* of y's norm; 0: 1e-5 */
} kiln_engram_gate_params;

/* For each token and group: g is the dot product of RMSNorm(key) and RMSNorm(query), divided by sqrt(cols); g becomes
 * sign(g) sqrt(max(|g|, 1e-6)), or 0 if it is 0; y = sigmoid(g) value. normed is RMSNorm(y), computed from y before
 * rounding. A norm is x / sqrt(mean of x^2 + eps) * weight. y and normed must be different tensors. */
KILN_OPERATOR_FUNCTION(engram_gate_f32, kiln_engram_gate_params)
KILN_OPERATOR_FUNCTION(engram_gate_f16, kiln_engram_gate_params)
KILN_OPERATOR_FUNCTION(engram_gate_bf16, kiln_engram_gate_params)

#ifdef __cplusplus
}
#endif

#endif
