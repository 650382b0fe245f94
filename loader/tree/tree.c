/* Trees by the parents of their nodes. */
#include "loader/tree/tree.h"
#include "loader/operator.h"
#include "loader/status.h"
#include <stdlib.h>
#include <string.h>

static kiln_status check_parents(const char *name, const int32_t *parents, int32_t nodes) {
    KILN__REQUIRE(parents, "%s: parents is NULL", name);
    KILN__REQUIRE(nodes >= 1 && nodes <= KILN_TREE_NODES_MOST, "%s: nodes is %d: must be from 1 to %d", name, nodes,
                  KILN_TREE_NODES_MOST);
    KILN__REQUIRE(parents[0] == -1, "%s: parents[0] is %d: must be -1, node 0 is the root", name, parents[0]);
    for (int32_t i = 1; i < nodes; i++)
        KILN__REQUIRE(parents[i] >= 0 && parents[i] < i, "%s: parents[%d] is %d: must be from 0 to %d", name, i,
                      parents[i], i - 1);
    return KILN_OK;
}

/* Counts leaves and the longest path's nodes, and gives each node its distance from the root. */
static void measure(const int32_t *parents, int32_t nodes, int32_t *positions, kiln_tree *tree) {
    tree->nodes = nodes;
    tree->depth = 1;
    tree->leaves = nodes;
    tree->mask_words = (nodes + 31) / 32;
    bool is_parent[KILN_TREE_NODES_MOST] = {false};
    positions[0] = 0;
    for (int32_t i = 1; i < nodes; i++) {
        int32_t parent = parents[i];
        positions[i] = positions[parent] + 1;
        if (positions[i] >= tree->depth) tree->depth = positions[i] + 1;
        tree->leaves -= !is_parent[parent];
        is_parent[parent] = true;
    }
}

static void fill_mask(const kiln_tree *tree, uint32_t *mask) {
    for (int32_t i = 0; i < tree->nodes; i++) {
        uint32_t *row = mask + (ptrdiff_t)i * tree->mask_words;
        if (i)
            memcpy(row, mask + (ptrdiff_t)tree->parents[i] * tree->mask_words, sizeof *row * (size_t)tree->mask_words);
        else
            memset(row, 0, sizeof *row * (size_t)tree->mask_words);
        row[i / 32] |= UINT32_C(1) << i % 32;
    }
}

/* Going down from the greatest number, a node that no path has yet is a leaf. */
static void fill_paths(const kiln_tree *tree, int32_t *paths) {
    bool on_path[KILN_TREE_NODES_MOST] = {false};
    for (int32_t leaf = tree->nodes - 1; leaf >= 0; leaf--) {
        if (on_path[leaf]) continue;
        for (int32_t i = tree->positions[leaf] + 1; i < tree->depth; i++)
            paths[i] = -1;
        for (int32_t node = leaf; node >= 0; node = tree->parents[node]) {
            paths[tree->positions[node]] = node;
            on_path[node] = true;
        }
        paths += tree->depth;
    }
}

/* The tree's arrays, of which those of the nodes are one allocation, which begins with the parents, and the paths
 * another. */
static bool fill(kiln_tree *tree, const int32_t *parents, const int32_t *tokens, int32_t nodes) {
    size_t count = (size_t)nodes, words = count * ((count + 31) / 32);
    int32_t *numbers = malloc((3 * count + words) * sizeof *numbers);
    if (!numbers) return false;
    int32_t *positions = numbers + count;
    memcpy(numbers, parents, count * sizeof *numbers);
    tree->parents = numbers;
    tree->positions = positions;
    measure(numbers, nodes, positions, tree);
    if (tokens) tree->tokens = memcpy(positions + count, tokens, count * sizeof *tokens);
    uint32_t *mask = (uint32_t *)positions + 2 * count;
    fill_mask(tree, mask);
    tree->mask = mask;
    int32_t *paths = malloc((size_t)tree->leaves * (size_t)tree->depth * sizeof *paths);
    if (!paths) return false;
    fill_paths(tree, paths);
    tree->paths = paths;
    return true;
}

kiln_status kiln__tree_make(const char *name, const int32_t *parents, const int32_t *tokens, int32_t nodes,
                            const kiln_tree **out_tree) {
    kiln_tree *tree = calloc(1, sizeof *tree);
    if (tree && fill(tree, parents, tokens, nodes)) {
        *out_tree = tree;
        return KILN_OK;
    }
    kiln_tree_destroy(tree);
    return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "%s: no memory for %d nodes", name, nodes);
}

kiln_status kiln_tree_create(const int32_t *parents, int32_t nodes, const kiln_tree **out_tree) {
    KILN__REQUIRE(out_tree, "kiln_tree_create: out_tree is NULL");
    *out_tree = NULL;
    KILN__TRY(check_parents("kiln_tree_create", parents, nodes));
    return kiln__tree_make("kiln_tree_create", parents, NULL, nodes, out_tree);
}

void kiln_tree_destroy(const kiln_tree *tree) {
    if (!tree) return;
    free((void *)tree->parents);
    free((void *)tree->paths);
    free((void *)tree);
}
