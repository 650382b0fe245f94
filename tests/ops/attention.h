/* What the tests of mha and mha_paged share: shapes, tensors of queries, keys and values, and what f64 makes of them.
 */
#ifndef KILN_TESTS_OPS_ATTENTION_H
#define KILN_TESTS_OPS_ATTENTION_H

#include "tests/ops/harness.h"

enum { ATTENTION_BATCH = 4 }; /* sequences at most */

typedef struct attention_shape {
    int64_t batch, heads, kv_heads, size;
    int64_t seqlens_q[ATTENTION_BATCH], seqlens_k[ATTENTION_BATCH]; /* of each sequence */
    int64_t padding, place;                                         /* of tokens; of all tensors */
    bool varlen; /* lengths differ, and cu_seqlens_q and cu_seqlens_k say so */
    bool lse, workspace;
    int64_t left, right;
    bool causal;
    double scale, softcap;
    double v;           /* what all of v is; 0: any numbers */
    bool portable;      /* by the portable kernel, whatever the image has */
    double rounding;    /* the most that a weight loses, relative to it: attention_rounding() */
    double truncation;  /* the most that each product of a sum with values loses, relative to the greatest one */
    const double *mask; /* of attention_query alone: added to its scores, a number for each key; NULL: nothing */
} attention_shape;

/* By how much a device's image rounds weights: not at all without kernels of matrix units, or by the portable one. */
double attention_rounding(const kiln_stream *stream, precision p, bool portable);

/* One sequence. */
attention_shape attention_plain(int64_t seqlen_q, int64_t seqlen_k, int64_t heads, int64_t kv_heads, int64_t size);

/* Anything that is allowed, and small. */
attention_shape attention_random_shape(void);

/* Calls the body with each shape that comes to an edge of what a group does. */
void attention_edges(kiln_stream *stream, precision p, void (*body)(kiln_stream *, precision, attention_shape));

/* How many tokens the first so many sequences have, together and at most. */
int64_t attention_total(const int64_t lengths[ATTENTION_BATCH], int64_t batch);
int64_t attention_longest(const int64_t lengths[ATTENTION_BATCH], int64_t batch);

/* harness_describe of a call of the operator. */
void attention_describe(const char *name, precision p, attention_shape s);

/* One query of one head: what it adds up to, what f32 may lose of it, its lse, and what that may lose: as much as a
 * score. Keys are stride numbers apart. */
void attention_query(const attention_shape *s, const double *q, const double *k, const double *v, int64_t stride,
                     int64_t query, int64_t seqlen_q, int64_t seqlen_k, double *out, double *allowed, double *lse,
                     double *lse_allowed);

typedef struct attention_tensors {
    matrix q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k;
    double *expected, *allowed, *lses, *lses_allowed; /* out and lse, after attention_reference */
} attention_tensors;

/* A number of a query, a key or a value. */
double attention_number(void);

/* Makes the tensors, q, k and v of such numbers. Destroy them in the same test. */
attention_tensors attention_create(kiln_stream *stream, precision p, attention_shape s);

/* Data of which quantising loses more or less. */
typedef enum attention_data {
    ATTENTION_GAUSSIAN,
    ATTENTION_BIASED_KEYS, /* of which some channels are large in all, as rope leaves them in models */
    ATTENTION_SINK,        /* a first key that takes much of every query's weight */
    ATTENTION_VALUES_WITH_MEANS,
    ATTENTION_ONES, /* as values */
    ATTENTION_KINDS
} attention_data;

/* Fills q, k and v with Gaussian numbers, changed to such data. */
void attention_fill(attention_tensors *t, const attention_shape *s, attention_data kind);
void attention_destroy(attention_tensors *t);

/* Computes what out and lse must be, and how far they may be off. */
void attention_reference(const attention_shape *s, attention_tensors *t);

/* Queries that no sequence has, or that are cut, have no result: out and lse stay as they are, where a group has all of
 * a query's keys and where groups share them. A shape; its tensors before the call; what they must be behind it. */
attention_shape attention_unowned(bool workspace);
void attention_unowned_set(attention_tensors *t);
void attention_unowned_expect(attention_tensors *t);

/* mha of the tensors, without workspace. */
kiln_mha_params attention_mha_params(const attention_tensors *t, attention_shape s);

#endif
