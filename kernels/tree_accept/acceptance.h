/* What tree_accept decides by, one text for all backends. What is added up over a row is integers, so that the order
 * does not matter: all that have a fused multiply-add decide the same. The includer (device.h, cpu.h) defines what
 * math.h asks for. */
#ifndef KILN_KERNELS_TREE_ACCEPT_ACCEPTANCE_H
#define KILN_KERNELS_TREE_ACCEPT_ACCEPTANCE_H

#include "kernels/common/logarithm.h"
#include "kernels/common/total_order.h"
#include "kernels/tree_accept/tree_accept_args.h"

/* The tree of a sequence. */
KILN_INLINE const int32_t *kiln_parents_of(const kiln_tree_accept_args *args, uint32_t sequence) {
    uint32_t tree = sequence < args->trees ? sequence : args->trees - 1;
    return args->parents + (uint64_t)tree * args->nodes;
}

/* Whether node i can be accepted where its parent is: it has a token, and a parent before it. */
KILN_INLINE bool kiln_is_draft(const int32_t *tokens, const int32_t *parents, uint32_t i) {
    return i > 0 && tokens[i] >= 0 && (uint32_t)parents[i] < i;
}

/* Of a logit that can be chosen; 0 for -inf and NaN. */
KILN_INLINE uint32_t kiln_logit_key(float logit) {
    return logit > -KILN_INFINITY ? kiln_order_key(logit) : 0;
}

/* ln of a token's probability relative to the likeliest's; -88, for which kiln_exp gives 0, for what is less likely and
 * for what is not comparable. Where logits are infinite, these are the likeliest. */
KILN_INLINE float kiln_logit_exponent(float logit, float max, float inverse_temperature) {
    float exponent = (logit - max) * inverse_temperature;
    exponent = max == KILN_INFINITY ? (logit == KILN_INFINITY ? 0.0f : -88.0f) : exponent;
    return exponent > -88.0f ? exponent : -88.0f;
}

/* Over a row, in units of 2^-40, each rounded down: the sum of e^x and that of -x e^x, x being the exponents. */
typedef struct kiln_row_sums {
    uint64_t weight;
    uint64_t spread;
} kiln_row_sums;

KILN_INLINE float kiln_exponent_weight(float exponent) {
    return kiln_exp(exponent) * 0x1p40f;
}

/* What a token's probability must be above. */
typedef struct kiln_typical {
    float log_total; /* to be subtracted from an exponent: the logarithm of the probability */
    float threshold; /* of that logarithm: min(ln epsilon, ln delta - entropy) */
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

/* Accepted nodes in the order of preference: longer paths, then likelier ones, then lower numbers. */
KILN_INLINE uint64_t kiln_node_rank(uint32_t level, float score, uint32_t node) {
    return (uint64_t)level << 42 | (uint64_t)kiln_order_key(score) << 10 | (KILN_TREE_ACCEPT_NODES - 1 - node);
}
KILN_INLINE uint32_t kiln_ranked_node(uint64_t rank) {
    return KILN_TREE_ACCEPT_NODES - 1 - (uint32_t)(rank & (KILN_TREE_ACCEPT_NODES - 1));
}

#endif
