/* tree_accept on the CPU: the operator's definition, with acceptance.h. tree_accept_gpu.c says what its blocks do.
 *
 * Floor: one read of the accepted nodes' rows of logits at memory bandwidth.
 * Test: build/tests/ops/tree_accept_test. Bench: build/kiln bench tree_accept --device cpu */
#include "kernels/common/cpu.h"

#include "kernels/tree_accept/acceptance.h"

/* The accepted nodes of a tree, and room for a tile of a row. */
typedef struct tree_state {
    uint32_t levels[KILN_TREE_ACCEPT_NODES]; /* nodes on the path to each, including itself; 0: not accepted */
    float scores[KILN_TREE_ACCEPT_NODES];    /* ln of the path's probability */
    float tile[KILN_TILE], spreads[KILN_TILE];
    uint32_t keys[KILN_TILE];
} tree_state;
_Static_assert(sizeof(tree_state) <= KILN_CPU_SCRATCH, "fits");

/* A sequence and its tree. */
typedef struct sequence {
    const kiln_tree_accept_args *args;
    uint32_t number;
    const int32_t *parents;
    const void *logits;
    tree_state *state;
    kiln_cpu_dtype dtype;
} sequence;

KILN_INLINE const void *row_of(const sequence *s, uint32_t node) {
    return kiln_at(s->logits, node * (uint64_t)s->args->logits_stride, s->dtype);
}

/* The column of a row's greatest logit and its key, 0 if there is none. */
KILN_INLINE uint32_t greatest_of(const sequence *s, const void *row, uint32_t *out_col) {
    tree_state *state = s->state;
    uint32_t best = 0;
    for (uint32_t col = 0; col < s->args->vocabulary; col += KILN_TILE) {
        size_t count = kiln_min(s->args->vocabulary - col, KILN_TILE), i = 0;
        const float *values = kiln_tile_read(state->tile, kiln_at(row, col, s->dtype), count, s->dtype);
        uint32_t greatest = 0;
        KILN_INDEPENDENT
        for (size_t k = 0; k < count; k++)
            state->keys[k] = kiln_logit_key(values[k]);
        for (size_t k = 0; k < count; k++)
            greatest = state->keys[k] > greatest ? state->keys[k] : greatest;
        if (greatest <= best) continue;
        while (state->keys[i] != greatest)
            i++;
        best = greatest;
        *out_col = col + (uint32_t)i;
    }
    return best;
}

KILN_INLINE kiln_row_sums sums_of(const sequence *s, const void *row, float max) {
    const float inverse_temperature = s->args->inverse_temperature;
    tree_state *state = s->state;
    kiln_row_sums sums = {0, 0};
    for (uint32_t col = 0; col < s->args->vocabulary; col += KILN_TILE) {
        size_t count = kiln_min(s->args->vocabulary - col, KILN_TILE);
        const float *values = kiln_tile_load(state->tile, kiln_at(row, col, s->dtype), count, s->dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++) {
            float exponent = kiln_logit_exponent(values[i], max, inverse_temperature);
            state->tile[i] = kiln_exponent_weight(exponent);
            state->spreads[i] = state->tile[i] * -exponent;
        }
        for (size_t i = 0; i < count; i++) {
            sums.weight += (uint64_t)(int64_t)state->tile[i];
            sums.spread += (uint64_t)(int64_t)state->spreads[i];
        }
    }
    return sums;
}

KILN_INLINE bool is_child(const sequence *s, uint32_t node, uint32_t i) {
    return kiln_is_draft(kiln_token_of(s->args, s->number, i), s->parents, i) && (uint32_t)s->parents[i] == node;
}

/* The token that the model chooses after a node. */
KILN_INLINE int32_t target_of(const sequence *s, uint32_t node) {
    uint32_t col = 0;
    if (s->args->targets) return kiln_given_target(s->args, s->number, node);
    return greatest_of(s, row_of(s, node), &col) ? (int32_t)col : -1;
}

/* Accepts the first child that has the target. */
KILN_INLINE void accept_target(const sequence *s, uint32_t node, int32_t target) {
    for (uint32_t i = node + 1; i < s->args->nodes; i++) {
        if (!is_child(s, node, i) || kiln_token_of(s->args, s->number, i) != target) continue;
        s->state->levels[i] = s->state->levels[node] + 1;
        return;
    }
}

/* Accepts the children whose probability is above the threshold. */
KILN_INLINE void accept_typical(const sequence *s, uint32_t node) {
    const kiln_tree_accept_args *args = s->args;
    const void *row = row_of(s, node);
    uint32_t col = 0, key = greatest_of(s, row, &col);
    if (!key) return;
    float max = kiln_order_value(key);
    kiln_typical typical = kiln_typical_of(sums_of(s, row, max), args->epsilon, args->delta);
    for (uint32_t i = node + 1; i < args->nodes; i++) {
        uint32_t token = (uint32_t)kiln_token_of(args, s->number, i);
        if (!is_child(s, node, i) || token >= args->vocabulary) continue;
        float logit = kiln_element_load(kiln_at(row, token, s->dtype), s->dtype);
        float log_chance = kiln_logit_exponent(logit, max, args->inverse_temperature) - typical.log_total;
        if (!(log_chance > typical.threshold)) continue;
        s->state->levels[i] = s->state->levels[node] + 1;
        s->state->scores[i] = s->state->scores[node] + log_chance;
    }
}

KILN_INLINE bool has_child(const sequence *s, uint32_t node) {
    for (uint32_t i = node + 1; i < s->args->nodes; i++)
        if (is_child(s, node, i)) return true;
    return false;
}

/* Goes down the tree. Returns the last node of the accepted path. */
KILN_INLINE uint32_t last_accepted(const sequence *s) {
    tree_state *state = s->state;
    uint64_t best = 0;
    memset(state->levels, 0, sizeof state->levels);
    state->levels[0] = 1;
    state->scores[0] = 0.0f;
    for (uint32_t node = 0; node < s->args->nodes; node++) {
        uint32_t level = state->levels[node];
        if (!level) continue;
        uint64_t rank = kiln_node_rank(level, s->args->typical ? state->scores[node] : 0.0f, node);
        best = rank > best ? rank : best;
        if (level >= s->args->depth || !has_child(s, node)) continue;
        if (s->args->typical)
            accept_typical(s, node);
        else
            accept_target(s, node, target_of(s, node));
    }
    return kiln_ranked_node(best);
}

KILN_OUTLINED void tree_accept(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_tree_accept_args args =
        *(const kiln_tree_accept_args *)arguments; /* a copy, which no store can change */
    for (uint64_t number = span->begin; number < span->end && number < (uint64_t)args.batch; number++) {
        uint64_t first = number * args.nodes;
        const sequence s = {.args = &args,
                            .number = (uint32_t)number,
                            .parents = kiln_parents_of(&args, (uint32_t)number),
                            .logits = kiln_at(args.logits, first * (uint64_t)args.logits_stride, dtype),
                            .state = span->scratch,
                            .dtype = dtype};
        uint32_t last = last_accepted(&s), accepted = s.state->levels[last], node = last;
        int32_t *path = args.path + number * args.depth;
        for (uint32_t i = accepted; i < args.depth; i++)
            path[i] = -1;
        for (uint32_t i = accepted; i-- > 0; node = (uint32_t)s.parents[node])
            path[i] = (int32_t)node;
        args.accepted[number] = (int32_t)accepted;
        args.next[number] = target_of(&s, last);
    }
}
KILN_CPU_KERNEL(tree_accept)
