/* How tree_accept decides, one source for all backends. The sums over a row are of integers, so that their order does
 * not matter: all backends that have a fused multiply-add decide alike. The includer (device.h, cpu.h) defines what
 * math.h asks for. */
#ifndef KILN_KERNELS_TREE_ACCEPT_ACCEPTANCE_H
#define KILN_KERNELS_TREE_ACCEPT_ACCEPTANCE_H

#include "kernels/common/math/logarithm.h"
#include "kernels/common/reduce/total_order.h"
#include "kernels/common/token.h"
#include "kernels/tree_accept/tree_accept_args.h"

/* The parents of the nodes of a sequence's tree. */
KILN_INLINE const int32_t *kiln_parents_of(const kiln_tree_accept_args *args, uint32_t sequence) {
    uint32_t tree = sequence < args->trees ? sequence : args->trees - 1;
    return args->parents + (uint64_t)tree * args->nodes;
}

/* The token of node i of a sequence. */
KILN_INLINE int32_t kiln_token_of(const kiln_tree_accept_args *args, uint32_t sequence, uint32_t i) {
    return kiln_token(args->tokens, args->tokens_64, (uint64_t)sequence * args->nodes + i);
}

/* The token that the model takes after node i, where targets are given. */
KILN_INLINE int32_t kiln_given_target(const kiln_tree_accept_args *args, uint32_t sequence, uint32_t i) {
    return kiln_token(args->targets, args->tokens_64, (uint64_t)sequence * args->nodes + i);
}

/* Whether node i can be accepted if its parent is: it has a token, and its parent precedes it. */
KILN_INLINE bool kiln_is_draft(int32_t token, const int32_t *parents, uint32_t i) {
    return i > 0 && token >= 0 && (uint32_t)parents[i] < i;
}

/* The key of a logit; 0 for -inf and NaN, which cannot be chosen. */
KILN_INLINE uint32_t kiln_logit_key(float logit) {
    return logit > -KILN_INFINITY ? kiln_order_key(logit) : 0;
}

/* ln of a token's probability relative to the likeliest token's, at least -88, for which kiln_exp gives 0; -88 for NaN
 * too. If a row has infinite logits, those tokens are the likeliest. */
KILN_INLINE float kiln_logit_exponent(float logit, float max, float inverse_temperature) {
    float exponent = (logit - max) * inverse_temperature;
    exponent = max == KILN_INFINITY ? (logit == KILN_INFINITY ? 0.0f : -88.0f) : exponent;
    return exponent > -88.0f ? exponent : -88.0f;
}

/* Sums over a row, whose terms are rounded down to units of 2^-40: of e^x, and of -x e^x, where x are the exponents. */
typedef struct kiln_row_sums {
    uint64_t weight;
    uint64_t spread;
} kiln_row_sums;

KILN_INLINE float kiln_exponent_weight(float exponent) {
    return kiln_exp(exponent) * 0x1p40f;
}

/* The threshold that a token's probability must exceed. */
typedef struct kiln_typical {
    float log_total; /* subtracted from an exponent it gives the logarithm of the probability */
    float threshold; /* for that logarithm: min(ln epsilon, ln delta - entropy) */
} kiln_typical;

/* The entropy of the row is ln(sum of e^x) + (sum of -x e^x) / (sum of e^x). The likeliest token's e^x is 1. */
KILN_INLINE kiln_typical kiln_typical_of(kiln_row_sums sums, float epsilon, float delta) {
    float total = (float)sums.weight * 0x1p-40f, spread = (float)sums.spread * 0x1p-40f;
    kiln_typical typical;
    typical.log_total = kiln_log(total);
    float low = kiln_log(delta) - (typical.log_total + spread * kiln_reciprocal(total)), high = kiln_log(epsilon);
    typical.threshold = low < high ? low : high;
    return typical;
}

/* Ranks accepted nodes: longer paths first, then likelier ones, then lower numbers. */
KILN_INLINE uint64_t kiln_node_rank(uint32_t level, float score, uint32_t node) {
    return (uint64_t)level << 42 | (uint64_t)kiln_order_key(score) << 10 | (KILN_TREE_ACCEPT_NODES - 1 - node);
}
KILN_INLINE uint32_t kiln_ranked_node(uint64_t rank) {
    return KILN_TREE_ACCEPT_NODES - 1 - (uint32_t)(rank & (KILN_TREE_ACCEPT_NODES - 1));
}

#endif
