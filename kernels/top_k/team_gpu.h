/* Who chooses in top_k, and from what: a block from a chunk of a row, or a subgroup from a short row. */
#ifndef KILN_KERNELS_TOP_K_TEAM_GPU_H
#define KILN_KERNELS_TOP_K_TEAM_GPU_H

#include "kernels/common/global.h"
#include "kernels/common/reduce/atomic.h"
#include "kernels/common/reduce/rank.h"
#include "kernels/common/reduce/rank_sort.h"
#include "kernels/common/reduce/reduce.h"
#include "kernels/common/values.h"
#include "kernels/top_k/top_k_args.h"

enum {
    AHEAD = 4, /* candidates that a thread has in flight */
    DIGIT_BITS = 11,
    BINS = 1 << DIGIT_BITS,
    THREAD_RANKS = KILN_TOP_K_RANKS / KILN_BLOCK /* candidates per thread, for which there is room */
};

/* Shared memory of a block. */
typedef struct exchange {
    union {
        uint32_t bins[BINS]; /* how many keys have each digit */
        struct {
            uint32_t keys[KILN_BLOCK]; /* the greatest of each thread's share */
            uint32_t list[KILN_BLOCK]; /* threads whose shares have candidates */
        };
    };
    uint64_t ranks[KILN_TOP_K_RANKS + AHEAD]; /* the candidates */
    uint32_t bounds[KILN_SUBGROUPS];
    uint32_t listed[KILN_SUBGROUPS];
    uint32_t counts[KILN_SUBGROUPS]; /* of candidates */
    uint32_t sums[KILN_SUBGROUPS];
    uint32_t digit, need, equal;
    uint32_t left; /* a bit for each row that its subgroup leaves to the block */
} exchange;

/* The threads that share a row, of which `first` is the first in the block. */
typedef struct team {
    exchange *shared;
    uint32_t row;
    uint32_t first, threads;
} team;

/* row is that of the block's first team. */
KILN_INLINE team team_of(exchange *shared, uint32_t lanes_log2, uint32_t row) {
    uint32_t number = kiln_thread() >> lanes_log2, threads = 1u << lanes_log2;
    return (team){shared, row + number, number << lanes_log2, threads};
}

KILN_INLINE uint32_t own_thread(const team *t) {
    return kiln_thread() - t->first;
}

/* Which of the counters the team has, of those of subgroups. */
KILN_INLINE uint32_t own_number(const team *t) {
    return t->first / KILN_SUBGROUP;
}

/* Candidates, for which a team has room; a subgroup leaves some of it, since loops read beyond the last. */
KILN_INLINE uint64_t *own_ranks(const team *t) {
    return t->shared->ranks + t->first * THREAD_RANKS;
}

KILN_INLINE uint32_t own_room(const team *t) {
    return t->threads == KILN_BLOCK ? KILN_TOP_K_RANKS : KILN_SUBGROUP * THREAD_RANKS - AHEAD;
}

KILN_INLINE void team_sync(const team *t) {
    if (t->threads == KILN_BLOCK) {
        kiln_barrier();
        return;
    }
#if defined(__CUDACC__)
    __syncwarp();
#else
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#endif
}

/* How many threads of the subgroup have a flag set. */
KILN_INLINE uint32_t threads_with(bool flag) {
#if defined(__CUDACC__)
    return (uint32_t)__popc(__ballot_sync(0xffffffffu, flag));
#elif __AMDGCN_WAVEFRONT_SIZE__ == 64
    return (uint32_t)__builtin_popcount((uint32_t)(__builtin_amdgcn_ballot_w64(flag) >> (kiln_thread() & 32)));
#else
    return (uint32_t)__builtin_popcount(__builtin_amdgcn_ballot_w32(flag));
#endif
}

/* What a team chooses from: candidates of an earlier launch, or elements, most of them in vectors. Single elements are
 * those before the first vector and after the last; all of them where there are fewer vectors than threads. */
typedef struct part {
    const kiln_top_k_args *args;
    const kiln_element *x;
    uint32_t row;
    uint32_t count;
    uint32_t head, vectors;
} part;

/* The column of the part's first element, or the number of its first candidate. */
KILN_INLINE uint32_t start_of(const kiln_top_k_args *args) {
    return kiln_tile() * (uint32_t)args->shape.tile;
}

KILN_INLINE part part_of(const kiln_top_k_args *args, const team *t) {
    uint32_t start = start_of(args), left = (uint32_t)args->shape.cols - start, tile = (uint32_t)args->shape.tile;
    part p;
    p.args = args;
    p.row = t->row;
    p.count = left < tile ? left : tile;
    p.x = (const kiln_element *)args->x + t->row * (uint64_t)args->x_stride + start;
    uint32_t past = (uint32_t)((uint64_t)p.x / sizeof(kiln_element)) % KILN_VECTOR;
    p.head = (0 - past) % KILN_VECTOR;
    p.vectors = p.head < p.count ? (p.count - p.head) / KILN_VECTOR : 0;
    if (args->from || p.vectors < t->threads) {
        p.head = p.count;
        p.vectors = 0;
    }
    return p;
}

/* How many are to be chosen. */
KILN_INLINE uint32_t wanted_of(const part *p) {
    return p->count < p->args->k ? p->count : p->args->k;
}

KILN_INLINE kiln_vector vector_at(const part *p, uint32_t vector) {
    return ((const kiln_vector *)(p->x + p->head))[vector];
}

KILN_INLINE uint32_t singles_of(const part *p) {
    return p->count - p->vectors * KILN_VECTOR;
}

/* The place in the part of a single element or candidate. */
KILN_INLINE uint32_t single_place(const part *p, uint32_t single) {
    return single < p->head ? single : single + p->vectors * KILN_VECTOR;
}

KILN_INLINE kiln_top_k_candidate candidate_at(const part *p, uint32_t place) {
    uint64_t first = p->row * (uint64_t)p->args->shape.cols + start_of(p->args);
    return KILN_GLOBAL(const kiln_top_k_candidate, p->args->from)[first + place];
}

KILN_INLINE uint32_t key_at(const part *p, uint32_t place) {
    return p->args->from ? candidate_at(p, place).key : kiln_order_key(kiln_element_to_f32(p->x[place]));
}

KILN_INLINE uint32_t col_at(const part *p, uint32_t place) {
    return p->args->from ? candidate_at(p, place).col : start_of(p->args) + place;
}

#endif
