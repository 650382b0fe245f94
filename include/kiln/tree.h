/* Trees of draft tokens, for speculative decoding.
 *
 * A draft proposes a tree of tokens behind the newest token of a sequence, and the model looks at all of its nodes in
 * one step: each node sees what is in the cache, the root, and its own ancestors (Miao et al., "SpecInfer", arXiv
 * 2305.09781; Cai et al., "Medusa", arXiv 2401.10774; Li et al., "EAGLE-2", arXiv 2406.16858). These functions make
 * what that step needs of the tree's shape: positions, the mask, and the paths that are verified.
 *
 *   kiln_tree_create               a tree by the parents of its nodes, as EAGLE's dynamic trees are
 *   kiln_tree_create_from_choices  a tree by its paths, as Medusa's fixed ones are
 *   kiln_tree_verify_greedy        the nodes that greedy decoding would have come to
 *   kiln_tree_verify_sampled       the nodes that sampling comes to, of draft tokens that were drawn or chosen
 *   kiln_tree_destroy
 *   kiln_tree_growth_...           the tokens of a tree that a draft model grows where it is most certain
 *
 * The keys and values of the nodes that are accepted are moved together by kiln_kv_compact.
 *
 * This is host code alone: it knows no device. A tree does not change once it is made: any number of threads may read
 * it. kiln_tree_accept, of <kiln/ops.h>, verifies a batch of trees on the device.
 */
#ifndef KILN_TREE_H
#define KILN_TREE_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most nodes of a tree, with its root. */
enum { KILN_TREE_NODES_MOST = 1024 };

/* Node 0 is the root, the newest token of the sequence, which is no draft. A node has a greater number than its parent.
 * The arrays belong to the tree. */
typedef struct kiln_tree {
    int32_t nodes;            /* with the root */
    int32_t depth;            /* nodes of the longest path, with the root */
    int32_t leaves;           /* paths */
    int32_t mask_words;       /* of a row of the mask: (nodes + 31) / 32 */
    const int32_t *parents;   /* [nodes]; the root's is -1 */
    const int32_t *positions; /* [nodes], how far behind the root: to be added to its position */
    const uint32_t *mask;  /* [nodes, mask_words]; bit j % 32 of word j / 32 of row i: node i sees node j, which is i or
                            * one of its ancestors */
    const int32_t *paths;  /* [leaves, depth], the nodes from the root to each leaf, then -1; the leaf with the greatest
                            * number first */
    const int32_t *tokens; /* [nodes], where a node's token stands among Medusa's candidates, which are the root and
                            * then top_k of each head; NULL for a tree by its parents */
} kiln_tree;

/* Makes a tree of `nodes` nodes, 1 to KILN_TREE_NODES_MOST, by their parents: parents[0] is -1, and parents[i] is from
 * 0 to i - 1. Release it with kiln_tree_destroy. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT,
 * KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_create(const int32_t *parents, int32_t nodes, const kiln_tree **out_tree);

/* Makes the tree of `count` paths, 0 to KILN_TREE_NODES_MOST - 1, which lie in `choices` one behind the other: path i
 * has lengths[i] numbers, at least one. The d-th number of a path says which of the top_k candidates of head d it
 * takes, the likeliest first. Every node but the root has one path, whose beginning must be a path too. Nodes are
 * numbered by length, and those of a length in lexicographic order: positions, mask, paths and tokens are the buffers
 * of Medusa's generate_medusa_buffers (medusa/model/utils.py) for the same choices, in which top_k is 10. Release it
 * with kiln_tree_destroy. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_create_from_choices(const int32_t *choices, const int32_t *lengths, int32_t count,
                                                   int32_t top_k, const kiln_tree **out_tree);

/* Finds the path that greedy decoding takes through a tree: tokens [nodes] are those of the nodes, and targets [nodes]
 * what the model chose behind each, the greatest of its logits. A node is accepted if its parent is and its token is
 * the parent's target; of siblings with the same token the first. out_path [tree->depth] gets the accepted nodes,
 * ascending from the root, then -1; *out_accepted how many they are, at least 1; *out_next the last one's target. Then
 * the sequence goes on by the tokens of out_path[1] and on, and *out_next is the root of the next tree: just the tokens
 * that decoding one by one would have given. On an error *out_accepted and *out_next are 0. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_tree_verify_greedy(const kiln_tree *tree, const int32_t *tokens, const int32_t *targets,
                                             int32_t *out_path, int32_t *out_accepted, int32_t *out_next);

/* Draws a path through a tree so that its tokens are distributed as the model's own, whatever was drafted (Leviathan et
 * al., arXiv 2211.17192; of several siblings, Miao et al., arXiv 2305.09781). target [nodes, vocabulary] are the
 * model's probabilities behind each node, after temperature and all else that sampling does to them. draft [nodes,
 * vocabulary] are the probabilities with which the children of each node were drawn, each for itself; NULL: they were
 * not drawn but chosen, as the likeliest are, and siblings differ. Rows need not add up to 1, nor must they be of nodes
 * without children in draft; they have no negative numbers. random [nodes] are numbers of [0, 1), independent and
 * uniform: that of a node decides whether it is accepted, the root's which token is drawn behind the last one.
 *
 * A child with the token x is accepted with probability min(1, p(x) / q(x)), p being the target's and q the draft's, or
 * 1 if chosen; if it is not, the next sibling is tried, or the next token drawn, with p less q and of that the positive
 * part in place of p. The results are those of kiln_tree_verify_greedy. Memory of 8 vocabulary bytes is allocated while
 * it works. On an error *out_accepted and *out_next are 0. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, also where
 * there is nothing to draw since a row that it came to is 0, and KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_verify_sampled(const kiln_tree *tree, const int32_t *tokens, const float *target,
                                              const float *draft, int32_t vocabulary, const float *random,
                                              int32_t *out_path, int32_t *out_accepted, int32_t *out_next);

/* Releases a tree. NULL is accepted. */
KILN_API void kiln_tree_destroy(const kiln_tree *tree);

/* A tree that grows as EAGLE-2's and EAGLE-3's do (Li et al., arXiv 2406.16858 and 2503.01840). In each of `depth`
 * steps the draft model is run on the frontier, which at first is the root, and says of each of its nodes the top_k
 * likeliest next tokens. The top_k paths that are likeliest of all, by the sum of the logarithms of their
 * probabilities, are the next frontier. In the end the `total` likeliest of all tokens that were named, and the root,
 * are the tree. Of equally likely ones the first is taken. One thread at a time. */
typedef struct kiln_tree_growth kiln_tree_growth;

/* Allocates all that the growth of trees needs: depth steps, at least 1, of top_k candidates, from 1 to
 * KILN_TREE_NODES_MOST, and `total` nodes beside the root in the end, from 1 to KILN_TREE_NODES_MOST - 1; a tree has
 * fewer where there are not so many candidates. EAGLE's defaults are depths of 5 to 7, a top_k of 8 to 10 and totals of
 * about 60. Release it with kiln_tree_growth_destroy. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT,
 * KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_growth_create(int32_t depth, int32_t top_k, int32_t total,
                                             kiln_tree_growth **out_growth);

/* Takes a step. tokens and log_probabilities, [frontier, top_k], are the candidates behind each node of the frontier, 1
 * node at first and top_k then: as kiln_top_k gives them of kiln_log_softmax. A log-probability above 0 counts as 0;
 * none is NaN. The next frontier is written to out_parents [top_k], the node of this frontier that each stands behind,
 * and out_tokens [top_k]; either may be NULL. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, also after `depth` steps.
 */
KILN_API kiln_status kiln_tree_growth_step(kiln_tree_growth *growth, const int32_t *tokens,
                                           const float *log_probabilities, int32_t *out_parents, int32_t *out_tokens);

/* Makes the tree of the steps so far, at least one, and writes the tokens of its nodes to out_tokens [total + 1]; the
 * root's is -1. The nodes are in the order in which they were named. The growth is as new: the next step begins another
 * tree. Release the tree with kiln_tree_destroy. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT,
 * KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_tree_growth_finish(kiln_tree_growth *growth, const kiln_tree **out_tree, int32_t *out_tokens);

/* Releases a growth. NULL is accepted. */
KILN_API void kiln_tree_growth_destroy(kiln_tree_growth *growth);

#ifdef __cplusplus
}
#endif

#endif
