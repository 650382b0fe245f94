/* Which nodes of a tree sampling comes to. */
#include "loader/operator.h"
#include "loader/status.h"
#include <kiln/tree.h>
#include <stdlib.h>

#define NAME "kiln_tree_verify_sampled"

/* What is left of a node's distribution: weights, and their sum. */
typedef struct residue {
    double *weights;
    double total;
    int32_t vocabulary;
} residue;

static void take_row(residue *r, const float *row) {
    r->total = 0;
    for (int32_t i = 0; i < r->vocabulary; i++)
        r->total += r->weights[i] = (double)row[i];
}

static double sum_of(const float *row, int32_t count) {
    double sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += (double)row[i];
    return sum;
}

/* Takes a row of the draft, whose sum is given, from the distribution. */
static void subtract(residue *r, const float *row, double sum) {
    double total = r->total, left = 0;
    for (int32_t i = 0; i < r->vocabulary; i++) {
        double weight = r->weights[i] / total - (double)row[i] / sum;
        left += r->weights[i] = weight > 0 ? weight : 0;
    }
    r->total = left;
}

/* Takes a token that was chosen from the distribution. */
static void remove_token(residue *r, int32_t token) {
    r->weights[token] = 0;
    r->total = 0;
    for (int32_t i = 0; i < r->vocabulary; i++)
        r->total += r->weights[i];
}

/* The token at a fraction of the sum; the last that has a weight where rounding leaves none. */
static int32_t draw(const residue *r, double fraction) {
    double rest = fraction * r->total;
    int32_t last = 0;
    for (int32_t i = 0; i < r->vocabulary; i++) {
        if (!(r->weights[i] > 0)) continue;
        last = i;
        if (rest < r->weights[i]) return i;
        rest -= r->weights[i];
    }
    return last;
}

/* The first child of a node that is accepted, -1 if none is. In the end r is what the next token is drawn from. */
static int32_t accepted_child(const kiln_tree *tree, const int32_t *tokens, const float *draft, const float *random,
                              int32_t node, residue *r) {
    const float *row = draft ? draft + (size_t)node * (size_t)r->vocabulary : NULL;
    double sum = 0;
    for (int32_t i = node + 1; i < tree->nodes; i++) {
        if (tree->parents[i] != node || tokens[i] < 0 || tokens[i] >= r->vocabulary) continue;
        if (row && sum == 0) sum = sum_of(row, r->vocabulary);
        double chance = row ? (double)row[tokens[i]] / sum : 1;
        if ((double)random[i] * chance * r->total < r->weights[tokens[i]]) return i;
        if (row)
            subtract(r, row, sum);
        else
            remove_token(r, tokens[i]);
        /* Only rounding leaves nothing, where draft and target are the same: then any draw is the target's. */
        if (!(r->total > 0)) return i;
    }
    return -1;
}

static kiln_status verify(const kiln_tree *tree, const int32_t *tokens, const float *target, const float *draft,
                          const float *random, residue *r, int32_t *out_path, int32_t *out_accepted,
                          int32_t *out_next) {
    int32_t accepted = 0, node = 0;
    while (node >= 0) {
        out_path[accepted++] = node;
        take_row(r, target + (size_t)node * (size_t)r->vocabulary);
        KILN__REQUIRE(r->total > 0 && r->total - r->total == 0, NAME ": the sum of row %d of target is %g", node,
                      r->total);
        node = accepted_child(tree, tokens, draft, random, node, r);
    }
    *out_accepted = accepted;
    *out_next = draw(r, (double)random[0]);
    return KILN_OK;
}

kiln_status kiln_tree_verify_sampled(const kiln_tree *tree, const int32_t *tokens, const float *target,
                                     const float *draft, int32_t vocabulary, const float *random, int32_t *out_path,
                                     int32_t *out_accepted, int32_t *out_next) {
    if (out_accepted) *out_accepted = 0;
    if (out_next) *out_next = 0;
    KILN__REQUIRE(tree, NAME ": tree is NULL");
    KILN__REQUIRE(tokens, NAME ": tokens is NULL");
    KILN__REQUIRE(target, NAME ": target is NULL");
    KILN__REQUIRE(vocabulary >= 1, NAME ": vocabulary is %d: must be at least 1", vocabulary);
    KILN__REQUIRE(random, NAME ": random is NULL");
    for (int32_t i = 0; i < tree->nodes; i++)
        KILN__REQUIRE(random[i] >= 0 && random[i] < 1, NAME ": random[%d] is %g: must be from 0 to below 1", i,
                      (double)random[i]);
    KILN__REQUIRE(out_path, NAME ": out_path is NULL");
    KILN__REQUIRE(out_accepted, NAME ": out_accepted is NULL");
    KILN__REQUIRE(out_next, NAME ": out_next is NULL");
    for (int32_t i = 0; i < tree->depth; i++)
        out_path[i] = -1;
    residue r = {.weights = malloc((size_t)vocabulary * sizeof(double)), .vocabulary = vocabulary};
    kiln_status status = r.weights ? verify(tree, tokens, target, draft, random, &r, out_path, out_accepted, out_next)
                                   : kiln__fail(KILN_ERROR_OUT_OF_MEMORY, NAME ": no memory for %d tokens", vocabulary);
    free(r.weights);
    return status;
}
