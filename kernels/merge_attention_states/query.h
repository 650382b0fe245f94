/* A query's parts in merge_attention_states, one source for all backends. */
#ifndef KILN_KERNELS_MERGE_ATTENTION_STATES_QUERY_H
#define KILN_KERNELS_MERGE_ATTENTION_STATES_QUERY_H

#include "kernels/common/online_softmax.h"
#include "kernels/merge_attention_states/merge_attention_states_args.h"

typedef struct kiln_query {
    const float *lse; /* of the first part; heads * tokens further of the next */
    uint64_t lse_step;
    uint64_t x;   /* element of the first part */
    uint64_t out; /* element */
    float origin; /* the greatest lse */
    float total;  /* the sum of the parts' weights relative to it */
} kiln_query;

/* Of a head of a token; row is token * heads + head. */
KILN_INLINE kiln_query kiln_query_of(const kiln_merge_attention_states_args *args, uint32_t row) {
    uint32_t token = row / args->heads, head = row - token * args->heads;
    uint64_t cols = (uint64_t)args->shape.cols, index = (uint64_t)head * args->tokens + token;
    kiln_query q = {args->x_lse + index,
                    (uint64_t)args->heads * args->tokens,
                    token * (uint64_t)args->x_stride + head * cols,
                    token * (uint64_t)args->out_stride + head * cols,
                    -KILN_INFINITY,
                    0.0f};
    KILN_LOOP
    for (uint32_t i = 0; i < args->parts; i++)
        q.origin = kiln_max(q.lse[i * q.lse_step], q.origin);
    q.origin = kiln_online_origin(q.origin);
    KILN_LOOP
    for (uint32_t i = 0; i < args->parts; i++)
        q.total += kiln_online_weight(q.lse[i * q.lse_step], q.origin);
    return q;
}

/* By what a part is multiplied before the sum is divided by the total. */
KILN_INLINE float kiln_query_weight(const kiln_query *q, uint32_t i) {
    return kiln_online_weight(q->lse[i * q->lse_step], q->origin);
}

/* What the sum is then multiplied by; 0 where no part saw a key. */
KILN_INLINE float kiln_query_scale(const kiln_query *q) {
    return q->total == 0.0f ? 0.0f : kiln_reciprocal(q->total);
}

KILN_INLINE void kiln_query_put_lse(const kiln_merge_attention_states_args *args, const kiln_query *q) {
    kiln_online_sum sum = {q->total, 0.0f};
    if (args->lse) args->lse[q->lse - args->x_lse] = kiln_online_lse(sum, q->origin);
}

#endif
