/* Trees of draft tokens, for speculative decoding.
 *
 * A draft model proposes a tree of tokens that may follow the newest token of a sequence, and the target model
 * evaluates all of its nodes in one step: each node attends to the cache, the root and its own ancestors (Miao et al.,
 * "SpecInfer", arXiv 2305.09781; Cai et al., "Medusa", arXiv 2401.10774; Li et al., "EAGLE-2", arXiv 2406.16858). These
 * functions derive the inputs of that step from the shape of the tree: positions, the attention mask, and the paths to
 * verify.
 *
 *   kiln_tree_create               builds a tree from the parents of its nodes, as EAGLE's dynamic trees are given
 *   kiln_tree_create_from_choices  builds a tree from its paths, as Medusa's static trees are given
 *   kiln_tree_verify_greedy        finds the nodes that greedy decoding would have produced
 *   kiln_tree_verify_sampled       accepts nodes so that the tokens are distributed as the target model's own samples
 *   kiln_tree_destroy              releases a tree
 *   kiln_tree_growth_...           grows a tree step by step from the draft model's likeliest paths
 *
 * kiln_kv_compact then moves the keys and values of the accepted nodes together.
 *
 * These functions run on the host and use no device. A tree is immutable after creation, so any number of threads may
 * read it. kiln_tree_accept, in <kiln/ops.h>, verifies a batch of trees on the device.
 */
#ifndef KILN_TREE_H
#define KILN_TREE_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of nodes of a tree, including its root. */
enum { KILN_TREE_NODES_MOST = 1024 };

/* A tree. Node 0 is the root: the newest token of the sequence, which is not a draft token. Every node has a higher
 * number than its parent. The arrays belong to the tree and are valid until it is destroyed. */
typedef struct kiln_tree {
    int32_t nodes;            /* including the root */
    int32_t depth;            /* nodes of the longest path, including the root */
    int32_t leaves;           /* the number of paths */
    int32_t mask_words;       /* words per row of the mask: (nodes + 31) / 32 */
    const int32_t *parents;   /* [nodes]; the root's is -1 */
    const int32_t *positions; /* [nodes], relative to the root: add the root's position */
    const uint32_t *mask; /* [nodes, mask_words]; bit j % 32 of word j / 32 of row i: node i attends to node j, which is
                           * i itself or one of its ancestors */
    const int32_t *paths; /* [leaves, depth], the nodes from the root to each leaf, padded with -1; the leaf with the
                           * highest number comes first */
    const int32_t *tokens; /* [nodes], the index of each node's token among Medusa's candidates, which are the root
                            * followed by the top_k of each head; NULL for a tree created from parents */
} kiln_tree;

/* Creates a tree of `nodes` nodes, 1 to KILN_TREE_NODES_MOST, from their parents: parents[0] is -1, and parents[i] is
 * in 0 to i - 1. Release it with kiln_tree_destroy. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT,
 * KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_create(const int32_t *parents, int32_t nodes, const kiln_tree **out_tree);

/* Creates a tree from `count` paths, 0 to KILN_TREE_NODES_MOST - 1, which are concatenated in `choices`: path i has
 * lengths[i] numbers, at least one. The d-th number of a path is the rank, from 0, of the token that it takes among the
 * top_k candidates of head d. Every node except the root is the end of exactly one path, and every prefix of a path
 * must be a path too. Nodes are numbered by the length of their path, and in lexicographic order within a length:
 * positions, mask, paths and tokens equal the buffers that Medusa's generate_medusa_buffers (medusa/model/utils.py)
 * creates from the same choices, if top_k is 10. Release it with kiln_tree_destroy. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_create_from_choices(const int32_t *choices, const int32_t *lengths, int32_t count,
                                                   int32_t top_k, const kiln_tree **out_tree);

/* Finds the path that greedy decoding takes through a tree. tokens [nodes] are the nodes' tokens; targets [nodes] are
 * the tokens that the target model predicts after each node, those with the greatest logit. A node is accepted if its
 * parent is accepted and its token equals the parent's target; of siblings with equal tokens, only the first can be
 * accepted. out_path [tree->depth] receives the accepted nodes in ascending order from the root, padded with -1;
 * *out_accepted their number, at least 1; *out_next the target of the last one. The sequence continues with the tokens
 * of out_path[1] onwards, and *out_next is the root of the next tree: exactly the tokens that decoding one at a time
 * would have produced. On an error *out_accepted and *out_next are 0. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_tree_verify_greedy(const kiln_tree *tree, const int32_t *tokens, const int32_t *targets,
                                             int32_t *out_path, int32_t *out_accepted, int32_t *out_next);

/* Samples a path through a tree by speculative sampling: whatever was drafted, its tokens are distributed as if the
 * target model had been sampled (Leviathan et al., arXiv 2211.17192; with several siblings, Miao et al., arXiv
 * 2305.09781). target [nodes, vocabulary] are the target model's probabilities after each node, with temperature and
 * all other sampling parameters already applied. draft [nodes, vocabulary] are the probabilities from which the
 * children of each node were sampled, independently of each other; NULL means that they were not sampled but selected,
 * for example the likeliest tokens, and that siblings differ. Rows add up to 1; draft rows of nodes without children
 * are not read. vocabulary is at most 2^22.
 *
 * A child with token x is accepted with probability min(1, p(x) / q(x)), where p is the target's distribution and q the
 * draft's; for selected children q is 1. If it is rejected, p is replaced with the positive part of p - q, scaled to
 * add up to 1, and the next sibling is tried or, after the last one, the next token is sampled. Probabilities are
 * rounded down to multiples of 2^-40, so that sums are exact. Random numbers come from Philox and depend on seed,
 * position and node: use a different position for each step of a sequence. For the same seed and position the operator
 * kiln_tree_verify_sampled_f32 of <kiln/ops.h> returns the same result on every device.
 *
 * The outputs are as in kiln_tree_verify_greedy; *out_next is -1 if the row to be sampled is all 0. The call
 * temporarily allocates 4 bytes per node. On an error *out_accepted and *out_next are 0. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_verify_sampled(const kiln_tree *tree, const int32_t *tokens, const float *target,
                                              const float *draft, int32_t vocabulary, int64_t seed, int64_t position,
                                              int32_t *out_path, int32_t *out_accepted, int32_t *out_next);

/* Releases a tree. NULL is accepted. */
KILN_API void kiln_tree_destroy(const kiln_tree *tree);

/* A tree under construction, grown as EAGLE-2 and EAGLE-3 do (Li et al., arXiv 2406.16858 and 2503.01840). In each of
 * `depth` steps the draft model runs on the frontier, which is initially the root, and proposes the top_k likeliest
 * next tokens for each of its nodes. The top_k likeliest of all paths extended in this way, by the sum of their
 * log-probabilities, form the next frontier. The finished tree consists of the root and the `total` likeliest of all
 * proposed tokens. Ties are broken in favour of the token that was proposed first. A growth may be used by only one
 * thread at a time. */
typedef struct kiln_tree_growth kiln_tree_growth;

/* Creates a growth and allocates all memory that it will need. depth and total, the number of nodes in addition to the
 * root, are from 1 to KILN_TREE_NODES_MOST - 1; top_k is from 1 to KILN_TREE_NODES_MOST. A tree has fewer nodes if
 * there are fewer candidates. EAGLE's defaults are a depth of 5 to 7, a top_k of 8 to 10 and a total of about 60.
 * Release it with kiln_tree_growth_destroy. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_growth_create(int32_t depth, int32_t top_k, int32_t total,
                                             kiln_tree_growth **out_growth);

/* Performs one step. tokens and log_probabilities, [frontier, top_k], are the candidates for each node of the frontier,
 * which has 1 node in the first step and top_k nodes thereafter; applying kiln_top_k to the output of kiln_log_softmax
 * produces them. A log-probability above 0 counts as 0; none may be NaN. The next frontier is written to out_parents
 * [top_k], the index in this frontier of each new node's parent, and out_tokens [top_k]; either may be NULL. Returns
 * KILN_OK, KILN_ERROR_INVALID_ARGUMENT (also after `depth` steps). */
KILN_API kiln_status kiln_tree_growth_step(kiln_tree_growth *growth, const int32_t *tokens,
                                           const float *log_probabilities, int32_t *out_parents, int32_t *out_tokens);

/* Creates the tree of the steps so far, of which there must be at least one, and writes the tokens of its nodes to
 * out_tokens [total + 1]; the root's is -1. Nodes are in the order in which they were proposed. The growth is then
 * empty again: the next step starts another tree. Release the tree with kiln_tree_destroy. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_growth_finish(kiln_tree_growth *growth, const kiln_tree **out_tree, int32_t *out_tokens);

/* Releases a growth. NULL is accepted. */
KILN_API void kiln_tree_growth_destroy(kiln_tree_growth *growth);

#ifdef __cplusplus
}
#endif

#endif
