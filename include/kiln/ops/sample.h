/* From logits to tokens: argmax, top-k, sampling and the verification of draft tokens. ops.h has the rules for every
 * operator. */
#ifndef KILN_OPS_SAMPLE_H
#define KILN_OPS_SAMPLE_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- argmax: the column of each row's greatest element ----------------------------------------------------------- */

typedef struct kiln_argmax_params {
    int32_t *y;    /* [rows] */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;          /* rows and cols are at most 2^31 - 1 */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_argmax_<precision>_workspace_size() */
} kiln_argmax_params;

/* Returns the first of equal elements; 0 and -0 are equal. If a row contains NaN, the result is the column of the first
 * NaN. If cols is 0, nothing is written. */
KILN_OPERATOR_FUNCTION(argmax_f32, kiln_argmax_params)
KILN_OPERATOR_FUNCTION(argmax_f16, kiln_argmax_params)
KILN_OPERATOR_FUNCTION(argmax_bf16, kiln_argmax_params)

/* Computes the workspace size in bytes, which depends only on rows and cols; the pointers are ignored. 0 for rows of up
 * to 8192 elements. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(argmax_f32, kiln_argmax_params)
KILN_WORKSPACE_FUNCTION(argmax_f16, kiln_argmax_params)
KILN_WORKSPACE_FUNCTION(argmax_bf16, kiln_argmax_params)

/* ---- top_k: the k greatest elements of each row ------------------------------------------------------------------ */

enum { KILN_TOP_K_MOST = 1024 };

typedef struct kiln_top_k_params {
    void *values;     /* [rows, k], the greatest first; NULL: not written */
    int32_t *indices; /* [rows, k], their columns */
    const void *x;    /* [rows, cols] */
    int64_t rows;
    int64_t cols;          /* rows and cols are at most 2^31 - 1 */
    int64_t k;             /* at most cols and KILN_TOP_K_MOST */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_top_k_<precision>_workspace_size() */
} kiln_top_k_params;

/* Equal elements are ordered by column, the lowest first, and are selected in this order; 0 and -0 are equal. NaN ranks
 * above all numbers. Values are copied bit for bit. If rows or k is 0, nothing is written. */
KILN_OPERATOR_FUNCTION(top_k_f32, kiln_top_k_params)
KILN_OPERATOR_FUNCTION(top_k_f16, kiln_top_k_params)
KILN_OPERATOR_FUNCTION(top_k_bf16, kiln_top_k_params)

/* Computes the workspace size in bytes, which depends only on rows, cols and k; the pointers are ignored. 0 for rows of
 * up to 16384 elements. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(top_k_f32, kiln_top_k_params)
KILN_WORKSPACE_FUNCTION(top_k_f16, kiln_top_k_params)
KILN_WORKSPACE_FUNCTION(top_k_bf16, kiln_top_k_params)

/* ---- sample: draws a column of each row of logits ---------------------------------------------------------------- */

typedef struct kiln_sample_params {
    int32_t *y;    /* [rows], the columns drawn; -1 if a row contains only -inf and NaN */
    const void *x; /* [rows, cols] */
    /* One value per row (per request), [rows], read on the device when the kernel runs; NULL: the field of the same
     * name below applies to all rows */
    const float *row_temperature;
    const int32_t *row_top_k;
    const float *row_top_p;
    const float *row_min_p;
    const int64_t *row_seed;
    const void *row_position; /* of index_type */
    int64_t rows;
    int64_t cols;     /* at most 2^22 */
    int64_t x_stride; /* 0: cols */
    int64_t seed;     /* of the random numbers */
    int64_t position; /* index of the random number in the seed's sequence, such as the position of the token to draw */
    int64_t top_k;    /* keeps the top_k greatest logits; 0: all */
    float temperature;  /* divides the logits, 1e-6 to 1e6; 0: selects the greatest logit, the first of equals */
    float top_p;        /* from 0 to 1: keeps the likeliest that together have at least this probability; 0, 1: all */
    float min_p;        /* from 0 to 1: keeps those with at least this fraction of the greatest probability; 0: all */
    int32_t index_type; /* kiln_index_type of row_position */
} kiln_sample_params;

/* Draws one column per row. Temperature is applied first, then top_k and min_p (Nguyen et al., arXiv 2407.01082), then
 * top_p (Holtzman et al., arXiv 1904.09751) to the columns that those keep. The column is drawn from the softmax over
 * the remaining columns. Equal logits are ranked by column. -inf and NaN are never drawn; if a row contains +inf, a
 * +inf is drawn. Every backend draws the same column.
 *
 * Random numbers come from Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). With
 * row_seed a row's number depends only on its seed and its position, so a request gets the same tokens in any row of
 * any batch. With one seed for all rows it also depends on the row's index.
 *
 * Values that are read on the device cannot cause an error. A temperature per row that is NaN or below 1e-6 selects the
 * greatest logit, and one above 1e6 counts as 1e6. A top_k per row of 0 or less, a top_p that is NaN, 0 or less, or 1
 * or more, and a min_p that is NaN or 0 or less keep all columns; a min_p above 1 counts as 1. */
KILN_OPERATOR_FUNCTION(sample_f32, kiln_sample_params)
KILN_OPERATOR_FUNCTION(sample_f16, kiln_sample_params)
KILN_OPERATOR_FUNCTION(sample_bf16, kiln_sample_params)

/* ---- tree_accept: the nodes of draft trees that the model accepts ------------------------------------------------ */

/* The rule that decides which draft tokens with an accepted parent are accepted. */
typedef enum kiln_tree_rule {
    KILN_TREE_EXACT,   /* the token that the model itself selects: the target of the parent */
    KILN_TREE_TYPICAL, /* tokens to which the model assigns a sufficient probability */
} kiln_tree_rule;

typedef struct kiln_tree_accept_params {
    int32_t *path;       /* [batch, depth]: the accepted nodes, ascending from the root, 0, then -1 */
    int32_t *accepted;   /* [batch]: number of accepted nodes, at least 1 */
    int32_t *next;       /* [batch]: the token that follows the last accepted node: its target */
    const void *logits;  /* [batch, nodes, vocabulary], the model's logits after each node; may be NULL if the rule is
                          * EXACT and targets are given */
    const void *targets; /* [batch, nodes], of token_type: the token that the model selects after each node; NULL: the
                          * token with the greatest logit, the first of equals, or -1 if all logits are -inf or NaN */
    const void *tokens;  /* [batch, nodes], of token_type: the nodes' tokens; a node with a negative token is never
                          * accepted */
    const int32_t *parents; /* [trees, nodes], as in <kiln/tree.h>; the root's entry is not read, and a node whose
                             * parent is not from 0 to its own number - 1 is not accepted */
    int64_t batch;
    int64_t nodes;         /* at most KILN_TREE_NODES_MOST, 1024 */
    int64_t depth;         /* maximum number of nodes of a path; deeper nodes are not accepted */
    int64_t vocabulary;    /* at most 2^22; 0 without logits */
    int64_t trees;         /* sequence i uses tree i, or the last tree if i >= trees; 1: all use the same tree */
    int64_t logits_stride; /* between nodes; 0: vocabulary */
    float temperature;     /* with rule TYPICAL: divides the logits, 1e-6 to 1e6; 0: 1 */
    float epsilon;         /* with rule TYPICAL: see below, 1e-9 to 1; 0: 0.09 */
    float delta;           /* with rule TYPICAL: see below, 1e-9 to 1; 0: 0.3 */
    int32_t rule;          /* kiln_tree_rule */
    int32_t token_type;    /* kiln_index_type of targets and tokens; of 64-bit ids only the lower 32 bits are read */
    int32_t reserved;      /* must be 0 */
} kiln_tree_accept_params;

/* Verifies a tree of draft tokens for each sequence of a batch, on the device. path and accepted are inputs of
 * kiln_kv_compact, and next is the root of the next tree.
 *
 * EXACT is the rule of kiln_tree_verify_greedy; of siblings with the same token it accepts the first. The resulting
 * tokens are exactly those of decoding one token at a time. If the targets are the tokens with the greatest logits,
 * this is greedy decoding. If the targets were drawn by kiln_sample from each node's logits, it is sampling from the
 * model's distribution, whatever was drafted: a child is accepted with the probability that the model assigns to its
 * token, which is the highest possible rate for draft tokens that were selected rather than drawn, like EAGLE's and
 * Medusa's (Li et al., arXiv 2503.01840). If each target is drawn with its sequence's row_seed and its token's
 * row_position, the tokens are those that kiln_sample would draw one at a time.
 *
 * TYPICAL accepts a token if its probability p after the temperature is above min(epsilon, delta exp(-H)), where H is
 * the entropy of that distribution, and keeps the longest path; among equally long paths it keeps the likeliest, and
 * among equally likely ones the one whose last node has the lowest number (Cai et al., "Medusa", arXiv 2401.10774). It
 * accepts more tokens per step, but their distribution is not the model's. Tokens outside the vocabulary are not
 * accepted. If a row contains +inf, its infinite logits share the whole probability. Sums of probabilities are exact to
 * 2^-40 of the greatest, and every backend makes the same decisions; only x86-64-v2, which has no fused multiply-add,
 * may differ if a probability is within 1e-6 of the threshold.
 *
 * Only the logits of accepted nodes are read. */
KILN_OPERATOR_FUNCTION(tree_accept_f32, kiln_tree_accept_params)
KILN_OPERATOR_FUNCTION(tree_accept_f16, kiln_tree_accept_params)
KILN_OPERATOR_FUNCTION(tree_accept_bf16, kiln_tree_accept_params)

/* ---- tree_verify_sampled: the nodes of draft trees that speculative sampling accepts ----------------------------- */

typedef struct kiln_tree_verify_sampled_params {
    int32_t *path;      /* [batch, depth]: the accepted nodes, ascending from the root, 0, then -1 */
    int32_t *accepted;  /* [batch]: number of accepted nodes, at least 1 */
    int32_t *next;      /* [batch]: the token that follows the last accepted node; -1 if its row of target is all 0 */
    const void *target; /* [batch, nodes, vocabulary], the model's probabilities after each node */
    const void *draft;  /* [batch, nodes, vocabulary], the probabilities from which the children of each node were drawn
                         * independently; NULL: they were not drawn but selected, for example the likeliest ones, and
                         * siblings differ */
    const void *tokens; /* [batch, nodes], of token_type: the nodes' tokens; a node with a negative token is never
                         * accepted */
    const int32_t *parents;   /* [trees, nodes], as for tree_accept */
    const int64_t *row_seed;  /* [batch], the seed of each sequence; NULL: seed for all */
    const void *row_position; /* [batch], of index_type, the position of each sequence; NULL: position for all */
    int64_t batch;
    int64_t nodes;         /* at most KILN_TREE_NODES_MOST, 1024 */
    int64_t depth;         /* maximum number of nodes of a path; deeper nodes are not accepted */
    int64_t vocabulary;    /* at most 2^22 */
    int64_t trees;         /* sequence i uses tree i, or the last tree if i >= trees; 1: all use the same tree */
    int64_t target_stride; /* between nodes; 0: vocabulary */
    int64_t draft_stride;  /* between nodes; 0: vocabulary */
    int64_t seed;          /* of the random numbers */
    int64_t position;      /* index of the step in the seed's sequence; must differ from step to step */
    int32_t index_type;    /* kiln_index_type of row_position */
    int32_t token_type;    /* kiln_index_type of tokens; of 64-bit ids only the lower 32 bits are read */
} kiln_tree_verify_sampled_params;

/* Verifies a tree of draft tokens for each sequence by speculative sampling, on the device: the tokens of a path and
 * the token that follows it have the model's own distribution, whatever was drafted (Leviathan et al., arXiv
 * 2211.17192; for several siblings, Miao et al., arXiv 2305.09781). Each sequence is processed by the rule of
 * kiln_tree_verify_sampled, stated in <kiln/tree.h>; the results are the same on every backend. path and accepted are
 * inputs of kiln_kv_compact.
 *
 * Rows are probabilities that add up to 1, such as the output of kiln_softmax, with temperature and all other sampling
 * parameters already applied. The resulting distribution is as accurate as these probabilities: to about 1e-7 in f32.
 * Random numbers come from the same generator as those of kiln_sample, with separate counters: with row_seed, a
 * sequence's numbers depend only on its seed and its position, which must differ from step to step. Only rows of
 * accepted nodes are read: two elements for each accepted child, and a whole row where a child is rejected or the path
 * ends. */
KILN_OPERATOR_FUNCTION(tree_verify_sampled_f32, kiln_tree_verify_sampled_params)
KILN_OPERATOR_FUNCTION(tree_verify_sampled_f16, kiln_tree_verify_sampled_params)
KILN_OPERATOR_FUNCTION(tree_verify_sampled_bf16, kiln_tree_verify_sampled_params)

#ifdef __cplusplus
}
#endif

#endif
