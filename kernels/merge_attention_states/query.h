/* A query's parts in merge_attention_states, one source for all backends. An includer that defines KILN_QUERY_QUICKLY
 * includes special.h before, whose functions then take the place of math.h's: each weight has an error of 4e-7 of the
 * greatest, and lse one of 7e-7, besides its rounding. */
#ifndef KILN_KERNELS_MERGE_ATTENTION_STATES_QUERY_H
#define KILN_KERNELS_MERGE_ATTENTION_STATES_QUERY_H

#include "kernels/common/reduce/online_softmax.h"
#include "kernels/merge_attention_states/merge_attention_states_args.h"

typedef struct kiln_query {
    const float *lse; /* of the first part; heads * tokens further of the next */
    uint64_t lse_step;
    uint64_t x;     /* element of the first part */
    uint64_t out;   /* element */
    float first[2]; /* the weights of the first two parts */
    float origin;   /* the greatest lse */
    float total;    /* the sum of the parts' weights relative to it */
} kiln_query;

/* Where a head of a token has its parts; row is token * heads + head. */
KILN_INLINE kiln_query kiln_query_at(const kiln_merge_attention_states_args *args, uint32_t row) {
    uint32_t token = row / args->heads, head = row - token * args->heads;
    uint64_t cols = (uint64_t)args->shape.cols, index = (uint64_t)head * args->tokens + token;
    return (kiln_query){.lse = args->x_lse + index,
                        .lse_step = (uint64_t)args->heads * args->tokens,
                        .x = token * (uint64_t)args->x_stride + head * cols,
                        .out = token * (uint64_t)args->out_stride + head * cols};
}

#if defined(KILN_QUERY_QUICKLY)

KILN_INLINE float kiln_query_weight_of(float lse, float origin) {
    const float weight = kiln_fast_exp2((lse - origin) * KILN_LOG2_E);
    return lse == origin ? 1.0f : weight;
}
KILN_INLINE float kiln_query_reciprocal(float total) {
    return kiln_fast_reciprocal(total);
}
KILN_INLINE float kiln_query_lse(float total, float origin) {
    const float log_total = kiln_fast_log2(total) * 0x1.62e43p-1f; /* ln 2 */
    return total == 0.0f ? -KILN_INFINITY : origin + log_total;
}
KILN_INLINE void kiln_query_weigh_two(kiln_query *q, const float *lse, uint32_t parts) {
    q->first[0] = kiln_query_weight_of(lse[0], q->origin);
    q->first[1] = kiln_query_weight_of(lse[1], q->origin);
    q->total = parts > 1 ? q->first[0] + q->first[1] : q->first[0];
}

#else

KILN_INLINE float kiln_query_weight_of(float lse, float origin) {
    return kiln_online_weight(lse, origin);
}
KILN_INLINE float kiln_query_reciprocal(float total) {
    return kiln_reciprocal(total);
}
KILN_INLINE float kiln_query_lse(float total, float origin) {
    const kiln_online_sum sum = {total, 0.0f};
    return kiln_online_lse(sum, origin);
}

/* The weights of one part or two. The greatest lse has 1, so that one exponential does. Neither is the origin where
 * both are -inf, or one is NaN; their sum is the same then. */
KILN_INLINE void kiln_query_weigh_two(kiln_query *q, const float *lse, uint32_t parts) {
    const float origin = q->origin;
    float other = lse[0] == origin ? lse[1] : lse[1] == origin ? lse[0] : lse[0] + lse[1];
    float weight = kiln_online_weight(other, origin);
    q->first[0] = lse[0] == origin ? 1.0f : weight;
    q->first[1] = lse[1] == origin ? 1.0f : weight;
    q->total = parts > 1 ? q->first[0] + q->first[1] : q->first[0];
}

#endif

/* The origin, the weights and their total. */
KILN_INLINE void kiln_query_weigh(kiln_query *q, uint32_t parts) {
    const float lse[2] = {q->lse[0], q->lse[parts > 1 ? q->lse_step : 0]};
    q->origin = kiln_max(lse[1], kiln_max(lse[0], -KILN_INFINITY));
    KILN_LOOP
    for (uint32_t i = 2; i < parts; i++)
        q->origin = kiln_max(q->lse[i * q->lse_step], q->origin);
    q->origin = kiln_online_origin(q->origin);
    if (parts <= 2) {
        kiln_query_weigh_two(q, lse, parts);
        return;
    }
    q->total = 0.0f;
    KILN_LOOP
    for (uint32_t i = 0; i < parts; i++) {
        float weight = kiln_query_weight_of(q->lse[i * q->lse_step], q->origin);
        q->first[0] = i == 0 ? weight : q->first[0];
        q->first[1] = i == 1 ? weight : q->first[1];
        q->total += weight;
    }
}

/* By what a part is multiplied before the sum is divided by the total. */
KILN_INLINE float kiln_query_weight(const kiln_query *q, uint32_t i) {
    return kiln_query_weight_of(q->lse[i * q->lse_step], q->origin);
}

/* What the sum is then multiplied by; 0 where no part saw a key. */
KILN_INLINE float kiln_query_scale(const kiln_query *q) {
    return q->total == 0.0f ? 0.0f : kiln_query_reciprocal(q->total);
}

KILN_INLINE void kiln_query_put_lse(const kiln_merge_attention_states_args *args, const kiln_query *q) {
    if (args->lse) args->lse[q->lse - args->x_lse] = kiln_query_lse(q->total, q->origin);
}

#endif
