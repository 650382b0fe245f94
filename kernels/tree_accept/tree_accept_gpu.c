/* tree_accept: which nodes of draft trees the model accepts; acceptance.h has the rules.
 *
 * A block processes a sequence. It visits the nodes in their order, in which parents come first, and decides at each
 * accepted node which of its children are accepted. Since this is done node by node, only the rows of accepted nodes
 * are read from the logits. Its threads share a row, and the children. By target, a row is read for its greatest
 * element, and threads that have it look up its column; by probability, it is read once more for the sums. Sums
 * are of integers, and paths are chosen by rank, so that the result does not depend on the order of the threads.
 *
 * If the targets are given, from argmax or sample, no logits are read, and only the walk remains: four barriers for
 * each accepted node that has children.
 *
 * Floor: one read of the accepted nodes' rows by one block for each sequence; if targets are given, the launch. Not
 * measured.
 * Test: build/tests/ops/tree_accept_test. Bench: build/kiln bench tree_accept */
#include "kernels/common/math/pairs.h"
#include "kernels/common/reduce/atomic.h"
#include "kernels/common/reduce/combine.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/tree_accept/acceptance.h"

#define NOTHING 0xffffffffu

typedef struct tree_state {
    uint64_t exchange[KILN_SUBGROUPS];
    uint32_t levels[KILN_TREE_ACCEPT_NODES];    /* nodes on the path to each, including itself; 0: not accepted */
    float scores[KILN_TREE_ACCEPT_NODES];       /* ln of the path's probability */
    uint32_t childless[KILN_TREE_ACCEPT_NODES]; /* 0 or 1 */
    uint32_t first;                             /* column or node that threads look for */
} tree_state;

/* ---- What belongs to a sequence: looked up at each use, since registers are more precious ---- */

KILN_INLINE uint64_t first_node(const kiln_tree_accept_args *args, uint32_t sequence) {
    return (uint64_t)sequence * args->nodes;
}

KILN_INLINE bool is_child(int32_t token, const int32_t *parents, uint32_t node, uint32_t i) {
    return kiln_is_draft(token, parents, i) && (uint32_t)parents[i] == node;
}

/* ---- A row of logits ---- */

KILN_INLINE const kiln_element *row_of(const kiln_tree_accept_args *args, uint32_t sequence, uint32_t node) {
    return (const kiln_element *)args->logits + (first_node(args, sequence) + node) * (uint64_t)args->logits_stride;
}

/* The whole block shares a row. */
KILN_INLINE kiln_span span_of(const kiln_tree_accept_args *args) {
    kiln_span span = {0,         0, args->vocabulary, args->wide ? args->vocabulary / KILN_VECTOR : 0, kiln_thread(),
                      KILN_BLOCK};
    return span;
}

/* The greater of max and the elements of the thread's vectors. Maxima ignore NaN. */
KILN_INLINE float greatest_of_whole(kiln_span span, const kiln_element *row, float max) {
#if KILN_PAIRS_COMPARED && __CUDA_ARCH__ >= 1000 /* two elements at once */
    const uint32_t none = KILN_ELEMENT_NEGATIVE_INFINITY * 0x10001u;
    uint32_t pairs[2] = {none, none};
    float pair[2];
    KILN_LOOP
    KILN_FOR_WHOLE(span, vector) {
        const kiln_vector v = kiln_vector_load(row + vector * KILN_VECTOR);
        KILN_UNROLL
        for (int i = 0; i < 4; i++)
            pairs[i % 2] = kiln_pair_max(pairs[i % 2], v.words[i]);
    }
    kiln_pair_values(pair, kiln_pair_max(pairs[0], pairs[1]));
    max = kiln_fast_max(pair[0], kiln_fast_max(pair[1], max));
#else
    float values[KILN_VECTOR];
    KILN_LOOP
    KILN_FOR_WHOLE(span, vector) {
        kiln_vector_values(values, kiln_vector_load(row + vector * KILN_VECTOR));
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            max = kiln_fast_max(values[i], max);
    }
#endif
    return max;
}

/* The greatest key of the thread's elements; 0 if there is none. */
KILN_INLINE uint32_t own_greatest(kiln_span span, const kiln_element *row) {
    float max = greatest_of_whole(span, row, -KILN_INFINITY);
    KILN_LOOP
    KILN_FOR_REST(span, i)
    max = kiln_fast_max(kiln_element_to_f32(row[i]), max);
    return kiln_logit_key(max);
}

/* The least of all threads' values, by way of `first`. */
KILN_INLINE uint32_t meet_at_first(tree_state *state, uint32_t mine) {
    kiln_barrier(); /* all threads have read the previous value */
    if (kiln_thread() == 0) state->first = NOTHING;
    kiln_barrier();
    if (mine != NOTHING) kiln_shared_min(&state->first, mine);
    kiln_barrier();
    return state->first;
}

/* The first column of the thread's elements that has a key. */
KILN_INLINE uint32_t own_first(kiln_span span, const kiln_element *row, uint32_t key) {
    float values[KILN_VECTOR], max = kiln_order_value(key);
    KILN_LOOP
    KILN_FOR_WHOLE(span, vector) {
        uint32_t first = KILN_VECTOR;
        kiln_vector_values(values, kiln_vector_load(row + vector * KILN_VECTOR));
        KILN_UNROLL
        for (uint32_t i = KILN_VECTOR; i-- > 0;)
            first = values[i] == max ? i : first;
        if (first < KILN_VECTOR) return vector * KILN_VECTOR + first;
    }
    KILN_LOOP
    KILN_FOR_REST(span, i) {
        if (kiln_element_to_f32(row[i]) == max) return i;
    }
    return NOTHING;
}

/* Element by element, from a cache: the exponentials of a whole vector would take more registers than there are. */
KILN_INLINE kiln_row_sums sums_of(kiln_span span, const kiln_element *row, float max, float inverse_temperature,
                                  tree_state *state) {
    kiln_row_sums sums = {0, 0};
    KILN_LOOP
    for (uint32_t i = span.first; i < span.count; i += span.lanes) {
        float exponent = kiln_logit_exponent(kiln_element_to_f32(row[i]), max, inverse_temperature);
        float weight = kiln_exponent_weight(exponent);
        sums.weight += (uint64_t)weight;
        sums.spread += (uint64_t)(weight * -exponent);
    }
    sums.weight = kiln_combine_64(state->exchange, sums.weight, KILN_REDUCE_SUM);
    sums.spread = kiln_combine_64(state->exchange, sums.spread, KILN_REDUCE_SUM);
    return sums;
}

/* ---- A node ---- */

/* Accepts the first child that has the target. */
KILN_INLINE void accept_target(const kiln_tree_accept_args *args, uint32_t sequence, uint32_t node, int32_t target,
                               tree_state *state) {
    const int32_t *parents = kiln_parents_of(args, sequence);
    uint32_t mine = NOTHING;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < args->nodes && mine == NOTHING; i += KILN_BLOCK) {
        int32_t token = kiln_token_of(args, sequence, i);
        mine = is_child(token, parents, node, i) && token == target ? i : NOTHING;
    }
    uint32_t child = meet_at_first(state, mine);
    if (child != NOTHING && kiln_thread() == 0) state->levels[child] = state->levels[node] + 1;
    kiln_barrier();
}

/* Accepts the children whose probability is above the threshold, the row's greatest logit being max. */
KILN_INLINE void accept_typical(const kiln_tree_accept_args *args, uint32_t sequence, uint32_t node, float max,
                                tree_state *state) {
    const int32_t *parents = kiln_parents_of(args, sequence);
    const kiln_element *row = row_of(args, sequence, node);
    kiln_row_sums sums = sums_of(span_of(args), row, max, args->inverse_temperature, state);
    kiln_typical typical = kiln_typical_of(sums, args->epsilon, args->delta);
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < args->nodes; i += KILN_BLOCK) {
        int32_t token = kiln_token_of(args, sequence, i);
        if (!is_child(token, parents, node, i) || (uint32_t)token >= args->vocabulary) continue;
        float logit = kiln_element_to_f32(row[token]);
        float log_chance = kiln_logit_exponent(logit, max, args->inverse_temperature) - typical.log_total;
        if (!(log_chance > typical.threshold)) continue;
        state->levels[i] = state->levels[node] + 1;
        state->scores[i] = state->scores[node] + log_chance;
    }
    kiln_barrier();
}

/* ---- A tree ---- */

KILN_INLINE void begin(const kiln_tree_accept_args *args, uint32_t sequence, tree_state *state) {
    const int32_t *parents = kiln_parents_of(args, sequence);
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < args->nodes; i += KILN_BLOCK) {
        state->levels[i] = i == 0;
        state->scores[i] = 0.0f;
        state->childless[i] = 1;
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < args->nodes; i += KILN_BLOCK)
        if (kiln_is_draft(kiln_token_of(args, sequence, i), parents, i))
            kiln_shared_min(&state->childless[parents[i]], 0);
    kiln_barrier();
}

/* The last node of the accepted path. */
KILN_INLINE uint32_t best_of(const kiln_tree_accept_args *args, tree_state *state) {
    uint64_t best = 0;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < args->nodes; i += KILN_BLOCK) {
        uint64_t rank = state->levels[i] ? kiln_node_rank(state->levels[i], state->scores[i], i) : 0;
        best = rank > best ? rank : best;
    }
    return kiln_ranked_node(kiln_combine_64(state->exchange, best, KILN_REDUCE_MAX));
}

KILN_INLINE void put(const kiln_tree_accept_args *args, uint32_t sequence, uint32_t accepted, uint32_t node,
                     int32_t next) {
    int32_t *path = args->path + (uint64_t)sequence * args->depth;
    KILN_LOOP
    for (uint32_t i = accepted + kiln_thread(); i < args->depth; i += KILN_BLOCK)
        path[i] = -1;
    if (kiln_thread() != 0) return;
    args->accepted[sequence] = (int32_t)accepted;
    args->next[sequence] = next;
    KILN_LOOP
    for (uint32_t i = accepted; i-- > 0; node = (uint32_t)kiln_parents_of(args, sequence)[node])
        path[i] = (int32_t)node;
}

/* The last iteration visits the last accepted node once more, for the token after it, so that the code that reads a row
 * exists once. */
KILN_ENTRY(tree_accept, kiln_tree_accept_args) {
    KILN_SHARED tree_state state;
    uint32_t sequence = (uint32_t)kiln_block();
    if (sequence >= (uint64_t)args.batch) return; /* the whole block */
    begin(&args, sequence, &state);
    KILN_LOOP
    for (uint32_t step = 0; step <= args.nodes; step++) {
        bool last = step == args.nodes, by_target = last || !args.typical;
        uint32_t node = last ? best_of(&args, &state) : step, level = state.levels[node], key = 0;
        if (!last && (!level || level >= args.depth || state.childless[node])) continue;
        const kiln_element *row = row_of(&args, sequence, node);
        int32_t target = by_target && args.targets ? kiln_given_target(&args, sequence, node) : -1;
        if (!by_target || !args.targets) {
            uint32_t own = own_greatest(span_of(&args), row), first = NOTHING;
            key = (uint32_t)kiln_combine_64(state.exchange, own, KILN_REDUCE_MAX);
            if (by_target && key && own == key) first = own_first(span_of(&args), row, key);
            if (by_target && key) target = (int32_t)meet_at_first(&state, first);
        }
        if (last)
            put(&args, sequence, level, node, target);
        else if (by_target)
            accept_target(&args, sequence, node, target, &state);
        else if (key)
            accept_typical(&args, sequence, node, kiln_order_value(key), &state);
    }
}
