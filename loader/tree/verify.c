/* Which nodes of a tree decoding would have come to. */
#include "loader/operator.h"
#include "loader/status.h"
#include <kiln/tree.h>

#define NAME "kiln_tree_verify_greedy"

/* The first child of a node that has the token; -1 if there is none. Children have greater numbers than their parent.
 */
static int32_t child_with(const kiln_tree *tree, const int32_t *tokens, int32_t parent, int32_t token) {
    for (int32_t i = parent + 1; i < tree->nodes; i++)
        if (tree->parents[i] == parent && tokens[i] == token) return i;
    return -1;
}

kiln_status kiln_tree_verify_greedy(const kiln_tree *tree, const int32_t *tokens, const int32_t *targets,
                                    int32_t *out_path, int32_t *out_accepted, int32_t *out_next) {
    if (out_accepted) *out_accepted = 0;
    if (out_next) *out_next = 0;
    KILN__REQUIRE(tree, NAME ": tree is NULL");
    KILN__REQUIRE(tokens, NAME ": tokens is NULL");
    KILN__REQUIRE(targets, NAME ": targets is NULL");
    KILN__REQUIRE(out_path, NAME ": out_path is NULL");
    KILN__REQUIRE(out_accepted, NAME ": out_accepted is NULL");
    KILN__REQUIRE(out_next, NAME ": out_next is NULL");
    for (int32_t i = 0; i < tree->depth; i++)
        out_path[i] = -1;
    for (int32_t node = 0; node >= 0; node = child_with(tree, tokens, node, targets[node])) {
        out_path[(*out_accepted)++] = node;
        *out_next = targets[node];
    }
    return KILN_OK;
}
