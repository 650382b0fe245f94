/* Trees by their paths, as Medusa has them. */
#include "loader/operator.h"
#include "loader/status.h"
#include "loader/tree/tree.h"
#include <stdlib.h>
#include <string.h>

#define NAME "kiln_tree_create_from_choices"

/* A path: its numbers among all choices, and which of the caller's it is. */
typedef struct path {
    const int32_t *choices;
    int32_t length;
    int32_t number;
} path;

/* What nodes are ordered by: length, then lexicographic. */
static int compare(const path *a, const path *b) {
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    for (int32_t i = 0; i < a->length; i++)
        if (a->choices[i] != b->choices[i]) return a->choices[i] < b->choices[i] ? -1 : 1;
    return 0;
}

static int compare_any(const void *a, const void *b) {
    return compare(a, b);
}

/* Finds where each path lies in choices. */
static kiln_status take_paths(const int32_t *choices, const int32_t *lengths, int32_t count, int32_t top_k,
                              path *paths) {
    for (int32_t i = 0; i < count; i++) {
        KILN__REQUIRE(lengths[i] >= 1 && lengths[i] < KILN_TREE_NODES_MOST,
                      NAME ": lengths[%d] is %d: must be from 1 to %d", i, lengths[i], KILN_TREE_NODES_MOST - 1);
        for (int32_t d = 0; d < lengths[i]; d++)
            KILN__REQUIRE(choices[d] >= 0 && choices[d] < top_k,
                          NAME ": number %d of path %d is %d: must be from 0 to top_k - 1, which is %d", d, i,
                          choices[d], top_k - 1);
        paths[i] = (path){choices, lengths[i], i};
        choices += lengths[i];
    }
    return KILN_OK;
}

/* Sorts the paths and finds each node's parent and token. */
static kiln_status find_nodes(path *paths, int32_t count, int32_t top_k, int32_t *parents, int32_t *tokens) {
    qsort(paths, (size_t)count, sizeof *paths, compare_any);
    parents[0] = -1;
    tokens[0] = 0;
    for (int32_t i = 0; i < count; i++) {
        const path *p = &paths[i], before = {p->choices, p->length - 1, 0};
        KILN__REQUIRE(!i || compare(p - 1, p) != 0, NAME ": paths %d and %d are the same", p[-1].number, p->number);
        const path *parent = before.length ? bsearch(&before, paths, (size_t)i, sizeof before, compare_any) : NULL;
        KILN__REQUIRE(parent || !before.length, NAME ": path %d lacks its parent: its first %d numbers are no path",
                      p->number, before.length);
        parents[i + 1] = parent ? (int32_t)(parent - paths) + 1 : 0;
        tokens[i + 1] = p->choices[p->length - 1] + top_k * (p->length - 1) + 1;
    }
    return KILN_OK;
}

kiln_status kiln_tree_create_from_choices(const int32_t *choices, const int32_t *lengths, int32_t count, int32_t top_k,
                                          const kiln_tree **out_tree) {
    KILN__REQUIRE(out_tree, NAME ": out_tree is NULL");
    *out_tree = NULL;
    KILN__REQUIRE(count >= 0 && count < KILN_TREE_NODES_MOST, NAME ": count is %d: must be from 0 to %d", count,
                  KILN_TREE_NODES_MOST - 1);
    KILN__REQUIRE(choices || !count, NAME ": choices is NULL");
    KILN__REQUIRE(lengths || !count, NAME ": lengths is NULL");
    KILN__REQUIRE(top_k >= 1 && top_k <= 1 << 20, NAME ": top_k is %d: must be from 1 to 2^20", top_k);

    size_t nodes = (size_t)count + 1;
    path *paths = malloc(nodes * sizeof *paths);
    int32_t *numbers = malloc(2 * nodes * sizeof *numbers);
    kiln_status status = paths && numbers
                             ? take_paths(choices, lengths, count, top_k, paths)
                             : kiln__fail(KILN_ERROR_OUT_OF_MEMORY, NAME ": no memory for %d paths", count);
    if (!status) status = find_nodes(paths, count, top_k, numbers, numbers + nodes);
    if (!status) status = kiln__tree_make(NAME, numbers, numbers + nodes, count + 1, out_tree);
    free(numbers);
    free(paths);
    return status;
}
