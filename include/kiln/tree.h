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
 *   kiln_tree_destroy
 *
 * The keys and values of the nodes that are accepted are moved together by kiln_kv_compact.
 *
 * This is host code alone: it knows no device. A tree does not change once it is made: any number of threads may read
 * it.
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

/* Releases a tree. NULL is accepted. */
KILN_API void kiln_tree_destroy(const kiln_tree *tree);

#ifdef __cplusplus
}
#endif

#endif
