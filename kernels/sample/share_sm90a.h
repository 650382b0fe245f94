/* A row of sample in the shared memory of a cluster's blocks, which is asked for at once when the kernel begins, so
 * that the row is read once from memory and all passes over it read shared memory.
 *
 * A subgroup waits for its own share alone. In sums each thread has adjacent vectors, so that an element is looked for
 * among what shares measure, then among the threads' vectors of one of them, then among the elements of one thread, all
 * of it by the subgroup whose share it is in. The greatest element alone is found together with its column. */
#ifndef KILN_KERNELS_SAMPLE_SHARE_SM90A_H
#define KILN_KERNELS_SAMPLE_SHARE_SM90A_H

#include "kernels/arch/sm90a.h"
#include "kernels/sample/candidates_gpu.h"

/* The vectors of the share of the thread's subgroup. */
KILN_INLINE row_walk share_of(const team_row *r) {
    uint32_t begin = own_share(r) * r->place.each;
    row_walk share = {begin, lesser(begin + r->place.each, r->place.vectors)};
    return share;
}

/* Asks for the share of the thread's subgroup. */
KILN_INLINE void request_share(const team_row *r) {
    const row_walk share = share_of(r);
    if (lane() == 0 && share.first < share.last) {
        const uint32_t barrier = kiln_sm90a_shared(&r->meeting->arrived[subgroup()]);
        const uint32_t bytes = (share.last - share.first) * KILN_VECTOR_BYTES;
        kiln_sm90a_mbarrier_init(barrier, 1);
        kiln_sm90a_fence_mbarrier_init();
        kiln_sm90a_mbarrier_arrive_expect_tx(barrier, bytes);
        kiln_sm90a_copy_bytes(kiln_sm90a_shared(&KILN_TEAM_VECTORS()[subgroup() * r->place.each]),
                              r->place.x + vector_col(r, share.first), bytes, barrier);
    }
    __syncwarp();
}

KILN_INLINE void await_share(const team_row *r) {
    const row_walk share = share_of(r);
    if (share.first < share.last) kiln_sm90a_mbarrier_wait(kiln_sm90a_shared(&r->meeting->arrived[subgroup()]), 0);
}

/* Sends the key of the thread's greatest element to all blocks of the team. Returns how many bytes each is sent. */
KILN_INLINE uint32_t send_greatest(const team_row *r, uint32_t key) {
    enum { SENT = KILN_VECTOR_BYTES / sizeof(uint16_t) };
    const kiln_vector *own = r->shared->own;
    ((uint16_t *)r->shared->own)[kiln_thread()] = (uint16_t)(key >> 16);
    kiln_barrier();
    KILN_LOOP
    for (uint32_t rank = subgroup(); rank < r->team; rank += KILN_SUBGROUPS)
        KILN_TEAM_SEND_VECTOR(&r->meeting->greatest[r->rank][lane() * SENT], rank, &r->meeting->shared[0],
                              &own[lane()]);
    return r->team * (uint32_t)sizeof r->shared->own;
}

/* ---- The greatest alone ---- */

/* The rank of the greatest of the numbers that the threads of a subgroup have, each with a key and a column. */
KILN_INLINE uint64_t greatest_rank(uint32_t key, uint32_t col) {
    const uint32_t greatest = subgroup_greatest(key);
    return kiln_rank_of(greatest, ~subgroup_greatest(key == greatest ? ~col : 0));
}

/* The first of the thread's columns whose key is this one. */
KILN_INLINE uint32_t first_col(const team_row *r, uint32_t key) {
    const row_walk walk = walk_of(r);
    const float value = kiln_order_value(key);
    if (r->single < r->place.head && value_at(r, r->single) == value) return r->single;
    KILN_LOOP
    for (uint32_t vector = walk.first; vector < walk.last; vector += KILN_SUBGROUP) {
        float values[KILN_VECTOR];
        uint32_t before = KILN_VECTOR;
        kiln_vector_values(values, vector_at(r, vector));
        KILN_UNROLL
        for (uint32_t i = KILN_VECTOR; i-- > 0;)
            before = values[i] == value ? i : before;
        if (before < KILN_VECTOR) return vector_col(r, vector) + before;
    }
    return r->single;
}

/* The column of the greatest element, in all threads of the team; -1 if there is none. own is the thread's. */
KILN_INLINE int32_t greatest_col(const team_row *r, uint32_t own) {
    uint32_t col = KILN_NOWHERE;
    if (own == subgroup_greatest(own)) col = first_col(r, own);
    team_give(r, greatest_rank(own, col), 0);
    const uint64_t *shares = team_take(r);
    uint64_t rank = 0;
    KILN_LOOP
    for (uint32_t i = lane(); i < r->team * KILN_SUBGROUPS; i += KILN_SUBGROUP)
        rank = shares[i] > rank ? shares[i] : rank;
    rank = greatest_rank(kiln_rank_key(rank), kiln_rank_place(rank));
    return kiln_rank_key(rank) ? (int32_t)kiln_rank_place(rank) : -1;
}

/* ---- Sums, and where they reach something ---- */

/* A thread's part of its subgroup's share: adjacent vectors. */
KILN_INLINE row_walk piece_of(const team_row *r, uint32_t thread) {
    const row_walk share = share_of(r);
    const uint32_t each = (r->place.each + KILN_SUBGROUP - 1) / KILN_SUBGROUP, first = share.first + thread * each;
    row_walk piece = {lesser(first, share.last), lesser(first + each, share.last)};
    return piece;
}

/* What the last sum has found for the thread's vectors; the arguments. */
typedef struct piece {
    uint64_t sum;
    const kiln_sample_args *args;
} piece;

/* The measure of the thread's single element. */
KILN_INLINE uint64_t single_sum(const team_row *r, const row_measure *m) {
    return r->single < r->place.cols ? measure_of_one(m, value_at(r, r->single), r->single) : 0;
}

/* The measure of the thread's vectors. Where pieces have even numbers of them each thread begins with another one, so
 * that the threads read from all banks of shared memory; it may come to vectors that are not there. */
KILN_INLINE uint64_t piece_sum(const team_row *r, const row_measure *m) {
    const uint32_t each = (r->place.each + KILN_SUBGROUP - 1) / KILN_SUBGROUP;
    const row_walk own = piece_of(r, lane());
    uint32_t at = each % 2 ? 0 : lane() % each;
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t i = 0; i < each; i++) {
        const uint32_t vector = own.first + at;
        if (vector < own.last) sum += sum_vector(m, vector_at(r, vector), vector_col(r, vector));
        at = at + 1 < each ? at + 1 : 0;
    }
    return sum;
}

KILN_INLINE uint64_t resident_sum(const team_row *r, const row_measure *m) {
    r->piece->sum = piece_sum(r, m);
    return team_sum(r, r->piece->sum + single_sum(r, m));
}

/* The measure of an element of the block's vectors, numbered from the row's first vector on. */
KILN_INLINE uint64_t resident_measure(const team_row *r, const row_measure *m, uint32_t element) {
    const kiln_element *elements = (const kiln_element *)KILN_TEAM_VECTORS();
    const uint32_t first = r->rank * KILN_SUBGROUPS * r->place.each * KILN_VECTOR;
    return measure_of_one(m, kiln_element_to_f32(elements[element - first]), r->place.head + element);
}

/* The column of the element of a piece such that those up to it measure more than `rest`, in the one thread that finds
 * it; else KILN_NOWHERE. All threads of the subgroup are here. */
KILN_INLINE uint32_t find_in_piece(const team_row *r, const row_measure *m, row_walk of, uint64_t rest) {
    const uint32_t begin = of.first * KILN_VECTOR, end = of.last * KILN_VECTOR;
    const uint32_t each = (end - begin + KILN_SUBGROUP - 1) / KILN_SUBGROUP;
    const uint32_t first = begin + lane() * each, last = lesser(first + each, end);
    uint64_t own = 0, all;
    KILN_LOOP
    for (uint32_t i = first; i < last; i++)
        own += resident_measure(r, m, i);
    uint64_t before = subgroup_before(own, &all);
    if (rest < before || rest >= before + own) return KILN_NOWHERE;
    uint32_t found = first;
    KILN_LOOP
    while ((before += resident_measure(r, m, found)) <= rest)
        found++;
    return r->place.head + found;
}

/* The column of the single element such that those of the subgroup up to it measure more than *rest, in the one thread
 * that has it; else KILN_NOWHERE, and without them all in *rest if they measure no more. */
KILN_INLINE uint32_t find_single(const team_row *r, uint64_t single, uint64_t *rest) {
    uint64_t all;
    const uint64_t before = subgroup_before(single, &all), own = *rest;
    *rest -= all <= own ? all : 0;
    return before <= own && own < before + single ? r->single : KILN_NOWHERE;
}

/* The column of the element of the subgroup's share such that those up to it measure more than `rest`, in the one
 * thread that finds it; else KILN_NOWHERE. */
KILN_INLINE uint32_t find_in_share(const team_row *r, const row_measure *m, uint64_t rest) {
    const bool heads = own_share(r) == 0;
    const uint64_t own = r->piece->sum, single = single_sum(r, m);
    uint32_t col = KILN_NOWHERE;
    uint64_t all;
    if (heads) {
        col = find_single(r, single, &rest);
        if (__any_sync(0xffffffffu, col != KILN_NOWHERE)) return col;
    }
    const uint64_t before = subgroup_before(own, &all);
    if (rest >= all) {
        rest -= all;
        return find_single(r, heads ? 0 : single, &rest);
    }
    const bool mine = before <= rest && rest < before + own;
    const uint32_t thread = subgroup_greatest(mine ? lane() : 0);
    return find_in_piece(r, m, piece_of(r, thread), rest - __shfl_sync(0xffffffffu, before, (int)thread));
}

/* What the last sum was of is looked for in the share that has it. If it is drawn, the thread that finds it stores it
 * as the result and others need not know. */
KILN_INLINE uint32_t resident_find(const team_row *r, const row_measure *m, uint64_t rest, bool drawn) {
    const uint64_t *shares = r->shared->shares[(*r->turn - 1) % 2];
    const uint32_t share = own_share(r);
    const uint64_t before = sum_shares(r, shares, share);
    uint32_t col = KILN_NOWHERE;
    if (before <= rest && rest < before + shares[share]) col = find_in_share(r, m, rest - before);
    const bool mine = col != KILN_NOWHERE;
    if (drawn) {
        if (mine) r->piece->args->y[kiln_block()] = (int32_t)col;
        return KILN_NOWHERE;
    }
    const uint64_t found[3] = {col, 0, 0};
    return (uint32_t)team_tell(r, mine, found)[0];
}

#endif
