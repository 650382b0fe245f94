/* Conditional memory by n-grams (Cheng et al., Conditional Memory via Scalable Lookup, arXiv 2601.07372): Engram's hash
 * and gate. Between them stands kiln_embedding, behind them kiln_causal_conv1d; docs/engram.md puts a layer together.
 * ops.h has the rules for every operator. */
#ifndef KILN_OPS_ENGRAM_H
#define KILN_OPS_ENGRAM_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- engram_hash: the rows of Engram's tables that tokens and those before them hash to ------------------------- */

typedef struct kiln_engram_hash_params {
    int64_t *rows;              /* [layers, tokens, orders, heads]: ids for kiln_embedding, of KILN_INDEX_I64 */
    const void *ids;            /* [tokens], of index_type: all sequences', one behind the other */
    const void *history;        /* [batch, orders], of index_type: the ids before each sequence's first, the last of
                                 * them last; NULL: pad_id */
    const int32_t *cu_seqlens;  /* [batch + 1]: where each sequence begins, and the end of the last; NULL: all have
                                 * tokens / batch */
    const int32_t *lookup;      /* [vocabulary]: the id that stands for each; NULL: itself */
    const int64_t *multipliers; /* [layers, orders + 1] */
    const int64_t *primes;      /* [layers, orders, heads]: rows of each head's table */
    const int64_t *offsets;     /* [layers, orders, heads]: where that begins in the layer's; NULL: 0 */
    int64_t tokens;             /* at most 2^31 - 1 */
    int64_t batch;              /* 0: 1 */
    int64_t layers;             /* at most 32768 */
    int64_t orders;             /* n-grams of 2 to orders + 1 tokens; orders * heads is at most 256 */
    int64_t heads;              /* of each order */
    int64_t vocabulary;         /* at most 2^31 - 1 */
    int64_t pad_id;             /* what stands before a sequence; looked up as ids are */
    int32_t index_type;         /* kiln_index_type of ids and history */
    int32_t reserved;           /* must be 0 */
} kiln_engram_hash_params;

/* rows = offsets + mix modulo primes, where the mix of an n-gram is the exclusive or of multipliers[k] times the id k
 * tokens before, k from 0 to n - 1: integers of 64 bits, the same on every device. A product beyond 64 bits loses what
 * is beyond, as NumPy's and PyTorch's do, and a mix that is thereby negative has a modulus from 0 to the prime less 1,
 * as theirs has. An id that lookup does not have, such as a negative one, stays as it is. A prime below 1, and a token
 * that cu_seqlens gives to no sequence, have row -1, for which kiln_embedding gives zeros.
 *
 * Decoding continues a sequence: with the last ids of what was hashed before as its history, tokens have the rows that
 * they would have in the whole sequence. The history of one that is shorter has pad_id in front.
 *
 * No tensor is of the function's precision: the three compute the same. */
KILN_OPERATOR_FUNCTION(engram_hash_f32, kiln_engram_hash_params)
KILN_OPERATOR_FUNCTION(engram_hash_f16, kiln_engram_hash_params)
KILN_OPERATOR_FUNCTION(engram_hash_bf16, kiln_engram_hash_params)

/* ---- engram_gate: how much of what the tables gave goes into the hidden state ------------------------------------ */

typedef struct kiln_engram_gate_params {
    void *y;                  /* [tokens, groups, cols] */
    void *normed;             /* [tokens, groups, cols]: the norm of y, which the convolution takes; NULL: not wanted */
    const void *key;          /* [tokens, groups, cols]: the product of each group's Wk and the embeddings */
    const void *query;        /* [tokens, groups, cols]: the hidden state of each hyper-connection. May be y */
    const void *value;        /* [tokens, cols]: the product of Wv and the embeddings */
    const void *key_weight;   /* [groups, cols], of key's norm; NULL: 1 */
    const void *query_weight; /* [groups, cols], of query's norm; NULL: 1 */
    const void *norm_weight;  /* [groups, cols], of y's norm; NULL: 1 */
    int64_t tokens;
    int64_t groups; /* hyper-connections */
    int64_t cols;
    int64_t y_stride;      /* from token to token; 0: groups * cols */
    int64_t normed_stride; /* 0: groups * cols */
    int64_t key_stride;    /* 0: groups * cols; what it has beyond them, as behind a product with Wk and Wv in one
                            * matrix, is value's */
    int64_t query_stride;  /* 0: groups * cols */
    int64_t value_stride;  /* 0: cols */
    float eps;             /* of key's norm and query's; 0: 1e-6 */
    float norm_eps;        /* of y's norm; 0: 1e-5 */
} kiln_engram_gate_params;

/* For each token and group: g = the dot product of RMSNorm(key) and RMSNorm(query), divided by sqrt(cols); g becomes
 * sign(g) sqrt(max(|g|, 1e-6)), 0 where it is 0; y = sigmoid(g) value. normed is RMSNorm(y) of y before it is rounded.
 * A norm is x / sqrt(mean of x^2 + eps) * weight. y and normed must be different tensors. */
KILN_OPERATOR_FUNCTION(engram_gate_f32, kiln_engram_gate_params)
KILN_OPERATOR_FUNCTION(engram_gate_f16, kiln_engram_gate_params)
KILN_OPERATOR_FUNCTION(engram_gate_bf16, kiln_engram_gate_params)

#ifdef __cplusplus
}
#endif

#endif
