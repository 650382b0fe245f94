/* What remains of a row in tree_verify_sampled, summed by shares: whole vectors where the tokens' remaining units
 * follow from the two rows alone, and token by token where not.
 *
 * A unit is 2^-40 (residual.h). A probability is a multiple of 2^20 or 2^17 of them and a rest below that, each of them
 * an integer that a number of f32 holds exactly. The two are summed apart, without a conversion to 64 bits for each
 * token, which takes a multiprocessor as long as 8 to 64 other instructions. */
#ifndef KILN_KERNELS_TREE_VERIFY_SAMPLED_SHARES_GPU_H
#define KILN_KERNELS_TREE_VERIFY_SAMPLED_SHARES_GPU_H

#include "kernels/common/global.h"
#include "kernels/common/math/minimum.h"
#include "kernels/common/math/two.h"
#include "kernels/common/reduce/atomic.h"
#include "kernels/common/reduce/combine.h"
#include "kernels/common/values.h"
#include "kernels/tree_verify_sampled/walk.h"

enum {
    FEW = 2048, /* tokens that a subgroup looks for one in, each of its threads in a share */
    TOKENS = 2, /* that a thread has in flight */
    SUBGROUPS_LOG2 = KILN_BLOCK_LOG2 - KILN_SUBGROUP_LOG2
};

typedef struct exchange {
    uint64_t subgroups[KILN_SUBGROUPS]; /* what remains in the share of each */
    uint64_t threads[KILN_SUBGROUP];    /* the same for the threads of one subgroup */
    uint64_t rest;
    uint32_t taken[KILN_TREE_VERIFY_NODES];
    uint32_t first; /* child that threads look for */
    uint32_t found; /* thread or token */
} exchange;

/* A walk, and the shared memory of its block. */
typedef struct block_walk {
    kiln_walk walk;
    exchange *shared;
} block_walk;

KILN_INLINE exchange *shared_of(const kiln_walk *w) {
    return ((const block_walk *)(const void *)w)->shared;
}

KILN_INLINE uint32_t lane(void) {
    return kiln_thread() % KILN_SUBGROUP;
}

KILN_INLINE uint32_t subgroup(void) {
    return kiln_thread() / KILN_SUBGROUP;
}

KILN_INLINE uint32_t lesser(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* ---- Rows ---- */

KILN_INLINE const kiln_element *row_of(const void *rows, int64_t stride, const kiln_walk *w) {
    uint64_t row = (uint64_t)w->sequence * w->args->nodes + w->node;
    return KILN_GLOBAL(const kiln_element, rows) + row * (uint64_t)stride;
}

KILN_INLINE const kiln_element *target_of(const kiln_walk *w) {
    return row_of(w->args->target, w->args->target_stride, w);
}

KILN_INLINE const kiln_element *draft_of(const kiln_walk *w) {
    return row_of(w->args->draft, w->args->draft_stride, w);
}

KILN_INLINE uint64_t kiln_walk_target(const kiln_walk *w, uint32_t token) {
    return kiln_units(kiln_element_to_f32(KILN_GLOBAL(const kiln_element, target_of(w))[token]));
}

KILN_INLINE uint64_t kiln_walk_draft(const kiln_walk *w, uint32_t token) {
    return kiln_units(kiln_element_to_f32(KILN_GLOBAL(const kiln_element, draft_of(w))[token]));
}

/* Whether the draft's row is looked at. */
KILN_INLINE bool subtracts(const kiln_residual *r) {
    return r->drawn && r->count;
}

KILN_INLINE uint64_t remaining(const kiln_walk *w, const kiln_residual *r, uint32_t token) {
    return kiln_residual_units(r, token, kiln_walk_target(w, token), subtracts(r) ? kiln_walk_draft(w, token) : 0);
}

/* ---- Shares ---- */

/* Tokens of a row, divided into shares, one behind the other: of whole vectors, besides which the first share has the
 * tokens before the first vector, and the last one those after the last. */
typedef struct division {
    uint32_t begin, end;
    uint32_t first; /* token of the first vector */
    uint32_t vectors, each;
    uint32_t shares;
} division;

KILN_INLINE division divide(const kiln_walk *w, uint32_t begin, uint32_t end, uint32_t shares_log2) {
    uint32_t past = (uint32_t)((uint64_t)target_of(w) / sizeof(kiln_element)) + begin;
    division d = {begin, end, begin + lesser((0 - past) % KILN_VECTOR, end - begin), 0, 0, 1u << shares_log2};
    d.vectors = (end - d.first) / KILN_VECTOR;
    d.each = (d.vectors + d.shares - 1) >> shares_log2;
    return d;
}

KILN_INLINE uint32_t share_begin(const division *d, uint32_t share) {
    if (share == 0) return d->begin;
    return share < d->shares ? d->first + lesser(share * d->each, d->vectors) * KILN_VECTOR : d->end;
}

/* Whether whole vectors can be summed: without a draft's row, or with one that is subtracted once and lies alike. */
KILN_INLINE bool takes_vectors(const kiln_walk *w, const kiln_residual *r) {
    if (!subtracts(r)) return true;
    return r->count == 1 && ((uint64_t)target_of(w) - (uint64_t)draft_of(w)) % KILN_VECTOR_BYTES == 0;
}

/* ---- Sums ---- */

/* A probability as it is counted: at most 1, and 0 for NaN. */
KILN_INLINE float counted(float probability) {
#if defined(__CUDACC__)
    return __saturatef(probability);
#else
    return __builtin_amdgcn_fmed3f(probability, 0.0f, 1.0f); /* the lesser bound for NaN */
#endif
}

#if defined(__CUDACC__)
/* A sum of the units of a vector's tokens, each of which has at most 2^40: 2^43 and multiples of 2^20, and 2^23 and
 * rests of less than 2^20 each. Rounded down, an addition to either takes off what is less than its last bit. */
typedef struct units {
    float high, low;
} units;

KILN_INLINE units no_units(void) {
    return (units){0x1p43f, 0x1p23f};
}

KILN_INLINE void add_units(units *sum, float probability) {
    float high = __fmaf_rd(probability, 0x1p40f, sum->high);
    sum->low = __fadd_rd(sum->low, __fmaf_rn(probability, 0x1p40f, sum->high - high));
    sum->high = high;
}

KILN_INLINE uint64_t total_of(units sum) {
    return ((uint64_t)(kiln_bits(sum.high) - kiln_bits(0x1p43f)) << 20) + (kiln_bits(sum.low) - kiln_bits(0x1p23f));
}

/* The units of a vector's tokens, less those of the draft, of which no token loses more than it has. */
KILN_INLINE uint64_t vector_sum(kiln_vector target, kiln_vector draft, bool subtract) {
    float p[KILN_VECTOR], q[KILN_VECTOR];
    units all = no_units(), fewer = no_units();
    kiln_vector_values(p, target);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++) {
        p[i] = counted(p[i]);
        add_units(&all, p[i]);
    }
    if (!subtract) return total_of(all);
    kiln_vector_values(q, draft);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        add_units(&fewer, kiln_fast_min(counted(q[i]), p[i]));
    return total_of(all) - total_of(fewer);
}
#else
/* Multiples of 2^17, and what is left. A probability of f16 is a multiple of 2^-24, whose units are multiples of 2^16:
 * nothing is left. */
typedef struct units {
    uint32_t high, low;
} units;

enum {
#if defined(KILN_PART_f16)
    HIGH_LOG2 = 16
#else
    HIGH_LOG2 = 17
#endif
};

KILN_INLINE void add_units(units *sum, kiln_two probabilities) {
    const kiln_two high = probabilities * (float)(1ull << (40 - HIGH_LOG2));
    sum->high += (uint32_t)high.x + (uint32_t)high.y;
#if !defined(KILN_PART_f16)
    const kiln_two low = kiln_two_of(__builtin_amdgcn_fractf(high.x), __builtin_amdgcn_fractf(high.y)) * 0x1p17f;
    sum->low += (uint32_t)low.x + (uint32_t)low.y;
#endif
}

KILN_INLINE uint64_t vector_sum(kiln_vector target, kiln_vector draft, bool subtract) {
    float p[KILN_VECTOR], q[KILN_VECTOR];
    units all = {0, 0}, fewer = {0, 0};
    kiln_vector_values(p, target);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i += 2)
        add_units(&all, kiln_two_of(counted(p[i]), counted(p[i + 1])));
    if (subtract) {
        kiln_vector_values(p, target); /* again: keeping them would take registers */
        kiln_vector_values(q, draft);
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i += 2) /* the lesser of both as they are counted */
            add_units(&fewer, kiln_two_of(__builtin_amdgcn_fmed3f(q[i], 0.0f, counted(p[i])),
                                          __builtin_amdgcn_fmed3f(q[i + 1], 0.0f, counted(p[i + 1]))));
    }
    const int32_t high = (int32_t)(all.high - fewer.high), low = (int32_t)(all.low - fewer.low);
    return (uint64_t)((int64_t)high * (1 << HIGH_LOG2) + low);
}
#endif

/* What remains of the tokens of vectors from first on, every step-th of them before last. The next vector is asked for
 * before one is used. */
KILN_INLINE uint64_t vectors_sum(const kiln_walk *w, bool subtract, uint32_t token, uint32_t first, uint32_t last,
                                 uint32_t step) {
    const kiln_vector *target = KILN_GLOBAL(const kiln_vector, target_of(w) + token);
    const kiln_vector *draft = KILN_GLOBAL(const kiln_vector, draft_of(w) + token);
    uint64_t sum = 0;
    if (first >= last) return 0;
    kiln_vector next = target[first], next_draft = next;
    if (subtract) next_draft = draft[first];
    KILN_LOOP
    for (uint32_t vector = first; vector < last; vector += step) {
        kiln_vector p = next, q = next_draft;
        if (vector + step < last) next = target[vector + step];
        if (subtract && vector + step < last) next_draft = draft[vector + step];
        sum += vector_sum(p, q, subtract);
    }
    return sum;
}

/* What the tokens have that were taken from what remains of chosen ones, of those from begin on and before end: every
 * step-th of them from first on. */
KILN_INLINE uint64_t taken_sum(const kiln_walk *w, const kiln_residual *r, uint32_t begin, uint32_t end, uint32_t first,
                               uint32_t step) {
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t i = first; i < r->count; i += step) {
        uint32_t token = r->taken[i], before = 0;
        if (token - begin >= end - begin) continue;
        KILN_LOOP
        while (r->taken[before] != token)
            before++;
        if (before == i) sum += kiln_walk_target(w, token);
    }
    return sum;
}

/* What remains of a share, as far as a thread sums it that takes every step-th vector or token from `thread` on. */
KILN_INLINE uint64_t share_sum(const kiln_walk *w, const kiln_residual *r, const division *d, uint32_t share,
                               uint32_t thread, uint32_t step) {
    uint32_t begin = share_begin(d, share), end = share_begin(d, share + 1), head = end - begin, past = 0;
    uint64_t sum = 0;
    if (takes_vectors(w, r)) {
        uint32_t first = lesser(share * d->each, d->vectors), last = lesser(first + d->each, d->vectors);
        sum = vectors_sum(w, subtracts(r), d->first, first + thread, last, step);
        if (!r->drawn)
            sum -= taken_sum(w, r, d->first + first * KILN_VECTOR, d->first + last * KILN_VECTOR, thread, step);
        head = share == 0 ? d->first - begin : 0;
        past = (last - first) * KILN_VECTOR;
    }
    uint32_t count = end - begin - past;
    KILN_LOOP
    for (uint32_t next = thread; next < count; next += TOKENS * step) {
        uint64_t p[TOKENS], q[TOKENS];
        KILN_UNROLL
        for (uint32_t i = 0; i < TOKENS; i++) {
            uint32_t at = next + i * step, token = begin + at + (at < head ? 0 : past);
            p[i] = at < count ? kiln_walk_target(w, token) : 0;
            q[i] = at < count && subtracts(r) ? kiln_walk_draft(w, token) : 0;
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < TOKENS; i++) {
            uint32_t at = next + i * step;
            sum += kiln_residual_units(r, begin + at + (at < head ? 0 : past), p[i], q[i]);
        }
    }
    return sum;
}

#endif
