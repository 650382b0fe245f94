/* The walk through a tree in tree_verify_sampled, one source for all backends.
 *
 * The includer, tree_verify_sampled_gpu.c or tree_verify_sampled_cpu.c, defines after it the functions kiln_walk_* that
 * are declared first, which go over rows and trees with many threads or with one. */
#ifndef KILN_KERNELS_TREE_VERIFY_SAMPLED_WALK_H
#define KILN_KERNELS_TREE_VERIFY_SAMPLED_WALK_H

#include "kernels/common/sampling/residual.h"
#include "kernels/common/token.h"
#include "kernels/tree_verify_sampled/tree_verify_sampled_args.h"

/* A sequence, and the node that the walk has reached. */
typedef struct kiln_walk {
    const kiln_tree_verify_sampled_args *args;
    const int32_t *parents;
    uint64_t seed, position;
    uint32_t sequence;
    uint32_t node;
} kiln_walk;

/* The units (residual.h) of a token after the node: the model's, and the draft's, which may be absent. */
KILN_INLINE uint64_t kiln_walk_target(const kiln_walk *w, uint32_t token);
KILN_INLINE uint64_t kiln_walk_draft(const kiln_walk *w, uint32_t token);
/* The first child of the node whose number is above `after` and whose token is in the vocabulary; 0 if there is none.
 */
KILN_INLINE uint32_t kiln_walk_child(const kiln_walk *w, uint32_t after);
/* The tokens from begin on and before end: the whole row, or a part of it that the token is in. */
typedef struct kiln_walk_tokens {
    uint32_t begin, end;
    bool whole;
} kiln_walk_tokens;

/* The sum of the remaining units of the tokens; of a part of the row, some number above 0. */
KILN_INLINE uint64_t kiln_walk_sum(const kiln_walk *w, const kiln_residual *r, kiln_walk_tokens tokens);
/* The first token such that more than *rest units remain of the tokens up to and including it, which kiln_walk_sum has
 * just summed: true if it is the first of those that are left of them. Otherwise *rest has changed with them, and they
 * are to be summed next. */
KILN_INLINE bool kiln_walk_find(const kiln_walk *w, const kiln_residual *r, kiln_walk_tokens *tokens, uint64_t *rest);
/* Records what was taken. */
KILN_INLINE void kiln_walk_take(const kiln_walk *w, kiln_residual *r, uint32_t taken);
/* Writes a node of the path. */
KILN_INLINE void kiln_walk_put(const kiln_walk *w, uint32_t level, uint32_t node);

KILN_INLINE kiln_walk kiln_walk_of(const kiln_tree_verify_sampled_args *args, uint32_t sequence) {
    uint32_t tree = sequence < args->trees ? sequence : args->trees - 1;
    kiln_walk w = {args, args->parents + (uint64_t)tree * args->nodes, args->seed, args->position, sequence, 0};
    if (args->row_seed) w.seed = (uint64_t)args->row_seed[sequence];
    if (args->row_position && args->positions_64)
        w.position = (uint64_t)((const int64_t *)args->row_position)[sequence];
    else if (args->row_position)
        w.position = (uint64_t)((const int32_t *)args->row_position)[sequence];
    return w;
}

KILN_INLINE uint32_t kiln_walk_token(const kiln_walk *w, uint32_t i) {
    return (uint32_t)kiln_token(w->args->tokens, w->args->tokens_64, (uint64_t)w->sequence * w->args->nodes + i);
}

KILN_INLINE bool kiln_walk_is_child(const kiln_walk *w, uint32_t i) {
    return (uint32_t)w->parents[i] == w->node && kiln_walk_token(w, i) < w->args->vocabulary;
}

KILN_INLINE uint64_t kiln_walk_bits(const kiln_walk *w, uint32_t node) {
    return kiln_node_bits(w->seed, w->position, w->args->row_seed ? 0 : w->sequence, node);
}

/* Records a rejected child, whose remaining units are given. */
KILN_INLINE void kiln_walk_reject(const kiln_walk *w, kiln_residual *r, uint32_t token, uint64_t units) {
    kiln_walk_take(w, r, r->drawn ? kiln_bits(r->scale) : token);
    if (!r->drawn) r->total = r->total > units ? r->total - units : 0;
}

/* Whether a child is accepted. If not, it is recorded. */
KILN_INLINE bool kiln_walk_accepts(const kiln_walk *w, kiln_residual *r, uint32_t child) {
    uint32_t token = kiln_walk_token(w, child);
    uint64_t q = r->drawn ? kiln_walk_draft(w, token) : 0;
    uint64_t units = kiln_residual_units(r, token, kiln_walk_target(w, token), q);
    if (kiln_residual_accepts(r, kiln_walk_bits(w, child), units, q)) return true;
    kiln_walk_reject(w, r, token, units);
    return false;
}

/* Goes down the tree, child by child. Returns how many nodes are accepted; *out_next is the token after them. taken has
 * room for a word for each node. What remains is summed after each rejection of a drawn child, and at last if it has
 * not been; then parts of it, until the token is found. If nothing remains, which only rounding brings about where
 * draft and model are the same, the child is accepted. The code that sums exists once. */
KILN_INLINE uint32_t kiln_walk_down(kiln_walk *w, uint32_t *taken, int32_t *out_next) {
    uint32_t accepted = 1, child = 0;
    kiln_walk_tokens tokens = {0, w->args->vocabulary, true};
    uint64_t total = 0, rest = 0;
    kiln_residual r = kiln_residual_of(taken, w->args->draft != 0);
    kiln_walk_put(w, 0, 0);
    *out_next = -1;
    KILN_LOOP
    for (;;) {
        bool accepts = false;
        if (tokens.whole) {
            child = accepted < w->args->depth ? kiln_walk_child(w, child) : 0;
            accepts = child && kiln_walk_accepts(w, &r, child);
        }
        if (!accepts && (!tokens.whole || (r.drawn ? child || !r.count : !child))) total = kiln_walk_sum(w, &r, tokens);
        if (tokens.whole && child) {
            if (!accepts && r.drawn) {
                r.total = total;
                r.scale = 0x1p40f / (float)total;
            }
            if (!accepts && r.total) continue;
            w->node = child;
            r = kiln_residual_of(taken, r.drawn);
            kiln_walk_put(w, accepted++, child);
            continue;
        }
        if (!total) return accepted;
        if (tokens.whole) rest = kiln_scaled(kiln_walk_bits(w, 0), total);
        if (kiln_walk_find(w, &r, &tokens, &rest)) break;
    }
    *out_next = (int32_t)tokens.begin;
    return accepted;
}

#endif
