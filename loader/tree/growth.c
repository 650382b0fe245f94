/* Trees that a draft model grows, step by step. */
#include "loader/operator.h"
#include "loader/status.h"
#include "loader/tree/tree.h"
#include <stdlib.h>
#include <string.h>

/* A token that was named, in the order in which they were. */
typedef struct candidate {
    double score;   /* ln of its path's probability */
    int32_t parent; /* the candidate that it stands behind; -1: the root */
    int32_t token;
    int32_t node; /* its number in the tree that is made; 0: none */
} candidate;

struct kiln_tree_growth {
    int32_t depth, top_k, total;
    int32_t steps;                         /* so far */
    int32_t count;                         /* of candidates, with room for those of all steps */
    int32_t *frontier;                     /* [top_k], candidates */
    int32_t order[KILN_TREE_NODES_MOST];   /* of a tree: its candidates, the best first */
    int32_t parents[KILN_TREE_NODES_MOST]; /* of its nodes */
    candidate candidates[];
};

/* top_k behind the root, then top_k behind each of top_k. */
static int64_t candidates_of(int32_t depth, int32_t top_k) {
    return top_k + (int64_t)(depth - 1) * top_k * top_k;
}

kiln_status kiln_tree_growth_create(int32_t depth, int32_t top_k, int32_t total, kiln_tree_growth **out_growth) {
    static const char name[] = "kiln_tree_growth_create";
    KILN__REQUIRE(out_growth, "%s: out_growth is NULL", name);
    *out_growth = NULL;
    KILN__REQUIRE(depth >= 1 && depth < KILN_TREE_NODES_MOST, "%s: depth is %d: must be from 1 to %d", name, depth,
                  KILN_TREE_NODES_MOST - 1);
    KILN__REQUIRE(top_k >= 1 && top_k <= KILN_TREE_NODES_MOST, "%s: top_k is %d: must be from 1 to %d", name, top_k,
                  KILN_TREE_NODES_MOST);
    KILN__REQUIRE(total >= 1 && total < KILN_TREE_NODES_MOST, "%s: total is %d: must be from 1 to %d", name, total,
                  KILN_TREE_NODES_MOST - 1);
    int64_t most = candidates_of(depth, top_k);
    size_t bytes = (size_t)most * sizeof(candidate) + (size_t)top_k * sizeof(int32_t);
    kiln_tree_growth *growth = calloc(1, sizeof *growth + bytes);
    if (!growth)
        return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "%s: no memory for %lld candidates", name, (long long)most);
    growth->depth = depth;
    growth->top_k = top_k;
    growth->total = total;
    growth->frontier = (int32_t *)(growth->candidates + most);
    *out_growth = growth;
    return KILN_OK;
}

/* Whether candidate a is to be taken before b. */
static bool is_better(const kiln_tree_growth *growth, int32_t a, int32_t b) {
    double score_a = growth->candidates[a].score, score_b = growth->candidates[b].score;
    return score_a != score_b ? score_a > score_b : a < b;
}

/* Puts the best of the candidates from `first` on at the beginning of `best`, the best first, at most `most`: a sorted
 * list into which each is inserted. Returns how many. */
static int32_t take_best(const kiln_tree_growth *growth, int32_t first, int32_t most, int32_t *best) {
    int32_t count = 0;
    for (int32_t i = first; i < growth->count; i++) {
        int32_t at = count < most ? count++ : most;
        if (at == most && !is_better(growth, i, best[most - 1])) continue;
        if (at == most) at--;
        for (; at > 0 && is_better(growth, i, best[at - 1]); at--)
            best[at] = best[at - 1];
        best[at] = i;
    }
    return count;
}

kiln_status kiln_tree_growth_step(kiln_tree_growth *growth, const int32_t *tokens, const float *log_probabilities,
                                  int32_t *out_parents, int32_t *out_tokens) {
    static const char name[] = "kiln_tree_growth_step";
    KILN__REQUIRE(growth, "%s: growth is NULL", name);
    KILN__REQUIRE(tokens, "%s: tokens is NULL", name);
    KILN__REQUIRE(log_probabilities, "%s: log_probabilities is NULL", name);
    KILN__REQUIRE(growth->steps < growth->depth, "%s: there were %d steps already, which is the depth", name,
                  growth->steps);
    int32_t top_k = growth->top_k, width = growth->steps ? top_k : 1, first = growth->count;
    for (int32_t i = 0; i < width * top_k; i++)
        KILN__REQUIRE(log_probabilities[i] == log_probabilities[i], "%s: log_probabilities[%d] is NaN", name, i);
    for (int32_t i = 0; i < width * top_k; i++) {
        int32_t parent = growth->steps ? growth->frontier[i / top_k] : -1;
        double score = parent >= 0 ? growth->candidates[parent].score : 0;
        double added = log_probabilities[i] < 0 ? (double)log_probabilities[i] : 0;
        growth->candidates[growth->count++] = (candidate){.score = score + added, .parent = parent, .token = tokens[i]};
    }
    growth->steps++;
    take_best(growth, first, top_k, growth->frontier);
    for (int32_t i = 0; i < top_k; i++) {
        int32_t chosen = growth->frontier[i];
        if (out_parents) out_parents[i] = (chosen - first) / top_k;
        if (out_tokens) out_tokens[i] = growth->candidates[chosen].token;
    }
    return KILN_OK;
}

/* Numbers the chosen candidates in the order in which they were named. None is better than its parent, which was named
 * before: the parent has been chosen too. */
static int32_t number_nodes(kiln_tree_growth *growth, int32_t *parents, int32_t *out_tokens) {
    int32_t chosen = take_best(growth, 0, growth->total, growth->order), nodes = 1;
    candidate *candidates = growth->candidates;
    for (int32_t i = 0; i < growth->count; i++)
        candidates[i].node = 0;
    for (int32_t i = 0; i < chosen; i++)
        candidates[growth->order[i]].node = 1;
    parents[0] = -1;
    out_tokens[0] = -1;
    for (int32_t i = 0; i < growth->count; i++) {
        if (!candidates[i].node) continue;
        candidates[i].node = nodes;
        parents[nodes] = candidates[i].parent < 0 ? 0 : candidates[candidates[i].parent].node;
        out_tokens[nodes++] = candidates[i].token;
    }
    return nodes;
}

kiln_status kiln_tree_growth_finish(kiln_tree_growth *growth, const kiln_tree **out_tree, int32_t *out_tokens) {
    static const char name[] = "kiln_tree_growth_finish";
    KILN__REQUIRE(out_tree, "%s: out_tree is NULL", name);
    *out_tree = NULL;
    KILN__REQUIRE(growth, "%s: growth is NULL", name);
    KILN__REQUIRE(out_tokens, "%s: out_tokens is NULL", name);
    KILN__REQUIRE(growth->steps, "%s: there was no step", name);
    int32_t nodes = number_nodes(growth, growth->parents, out_tokens);
    growth->steps = growth->count = 0;
    return kiln__tree_make(name, growth->parents, NULL, nodes, out_tree);
}

void kiln_tree_growth_destroy(kiln_tree_growth *growth) {
    free(growth);
}
