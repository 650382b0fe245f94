/* A row of sample in the shared memory of a cluster's blocks, which is asked for at once when the kernel begins, so
 * that the row is read once from memory and all passes over it read shared memory.
 *
 * A subgroup waits for its own share alone. In sums each thread has adjacent vectors, so that an element is looked for
 * among what shares measure, then among the threads' vectors of one of them, then among the elements of one thread, all
 * of it by the subgroup whose share it is in. The greatest element alone is found together with its column. */
#ifndef KILN_KERNELS_SAMPLE_SHARE_SM90A_H
#define KILN_KERNELS_SAMPLE_SHARE_SM90A_H

#include "kernels/arch/sm90a_bulk.h"
#include "kernels/arch/sm90a_warp.h"
#include "kernels/sample/candidates_gpu.h"

/* Whether counted_sm90a.h has counted the row, or cannot, so that no candidates are looked for. */
KILN_INLINE bool is_counted_row(void) {
#if defined(KILN_PART_bf16)
    return true;
#else
    return false;
#endif
}

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

/* Sends the key of the thread's greatest element to all blocks of the team, with the next shares. Returns how many
 * bytes each is sent. */
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

/* Keeps what is known of the row in shared memory, so that registers need not hold it. */
KILN_INLINE void keep_row(const team_row *r, const kiln_filters *filters) {
    exchange *shared = r->shared;
    if (kiln_thread() != 0) return;
    shared->filters = *filters;
    shared->max = r->row.max;
    shared->inverse_temperature = r->row.inverse_temperature;
    shared->turn = *r->turn;
}

/* The same row, from there. */
KILN_INLINE void resident_again(team_row *r) {
    const exchange *shared = r->shared;
    r->place = shared->place;
    r->row = {shared->place.x, shared->place.cols, shared->max, shared->inverse_temperature};
    r->single = single_col(r);
    r->rounds_log2 = 0;
    divide_groups(r);
    *r->turn = shared->turn;
}

/* ---- The greatest alone ---- */

/* The rank of the greatest of the numbers that the threads of a subgroup have, each with a key and a column. */
KILN_INLINE uint64_t greatest_rank(uint32_t key, uint32_t col) {
    const uint32_t greatest = kiln_sm90a_warp_greatest(key);
    return kiln_rank_of(greatest, ~kiln_sm90a_warp_greatest(key == greatest ? ~col : 0));
}

/* The first of the vector's elements that is this number. */
KILN_INLINE uint32_t first_equal(kiln_vector vector, float value) {
    float values[KILN_VECTOR];
    uint32_t first = 0;
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (uint32_t i = KILN_VECTOR; i-- > 0;)
        first = values[i] == value ? i : first;
    return first;
}

/* The rank of the greatest element of the share of the thread's subgroup. */
KILN_INLINE uint64_t share_rank(const team_row *r) {
    const row_walk walk = walk_of(r);
    float greatest = -KILN_INFINITY;
    uint32_t at = 0, col = KILN_NOWHERE;
    KILN_LOOP
    for (uint32_t vector = walk.first; vector < walk.last; vector += WALKED * KILN_SUBGROUP) {
        const walked w = walk_load(r, vector, walk.last);
        KILN_UNROLL
        for (uint32_t k = 0; k < WALKED; k++) {
            const float value = group_value(group_take(group_none(), w.vectors[k]));
            at = value > greatest ? lesser(vector + k * KILN_SUBGROUP, walk.last - 1) : at;
            greatest = kiln_fast_max(value, greatest);
        }
    }
    if (r->single < r->place.cols) {
        const float value = value_at(r, r->single);
        if (value > greatest || (value == greatest && r->single < r->place.head)) col = r->single;
        greatest = kiln_fast_max(value, greatest);
    }
    const uint32_t key = kiln_sample_key(greatest), all = kiln_sm90a_warp_greatest(key);
    if (key == all && key && col == KILN_NOWHERE) col = vector_col(r, at) + first_equal(vector_at(r, at), greatest);
    return greatest_rank(key, col);
}

/* Stores the column of the greatest element; -1 if there is none. Subgroups tell what theirs is to the first of the
 * cluster. */
KILN_INLINE void store_greatest(const team_row *r, int32_t *y) {
    uint64_t *shares = r->shared->shares[0];
    const uint64_t own = share_rank(r);
    kiln_sm90a_cluster_wait(); /* a block's shared memory may be written once it has begun */
    if (lane() == 0) KILN_TEAM_SEND(&shares[own_share(r)], 0, &r->meeting->shared[0], own);
    if (own_share(r) != 0) return;
    if (lane() == 0) KILN_TEAM_EXPECT(&r->meeting->shared[0], SHARES * (uint32_t)sizeof *shares);
    KILN_TEAM_WAIT(&r->meeting->shared[0], 0);
    const uint64_t even = shares[2 * lane()], odd = shares[2 * lane() + 1], rank = even > odd ? even : odd;
    const uint64_t all = greatest_rank(kiln_rank_key(rank), kiln_rank_place(rank));
    if (lane() == 0) *y = kiln_rank_key(all) ? (int32_t)kiln_rank_place(all) : -1;
}

/* ---- Sums, and where they reach something ---- */

/* The vectors of a share: read anew, since there are too few registers to hold what follows from them from pass to
 * pass. */
KILN_INLINE uint32_t share_vectors(const team_row *r) {
    return *(const volatile uint32_t *)&r->shared->place.each;
}

/* A thread's part of its subgroup's share: adjacent vectors. */
KILN_INLINE row_walk piece_of(const team_row *r, uint32_t thread) {
    const uint32_t all = share_vectors(r), each = (all + KILN_SUBGROUP - 1) / KILN_SUBGROUP, begin = own_share(r) * all;
    const uint32_t first = begin + thread * each, last = lesser(begin + all, r->place.vectors);
    row_walk piece = {lesser(first, last), lesser(first + each, last)};
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

/* Whether a choice may have elements of the vector. */
KILN_INLINE bool may_choose(const row_measure *m, kiln_vector vector) {
    return group_value(group_take(group_none(), vector)) >= m->least;
}

/* The measure of the thread's vectors. Where pieces have even numbers of them each thread begins with another one, so
 * that the threads read from all banks of shared memory; it may come to vectors that are not there. */
KILN_INLINE uint64_t piece_sum(const team_row *r, const row_measure *m) {
    const uint32_t each = (share_vectors(r) + KILN_SUBGROUP - 1) / KILN_SUBGROUP;
    const row_walk own = piece_of(r, lane());
    uint32_t at = each % 2 ? 0 : lane() % each;
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t i = 0; i < each; i++) {
        const uint32_t vector = own.first + at;
        at = at + 1 < each ? at + 1 : 0;
        if (vector >= own.last) continue;
        const kiln_vector words = vector_at(r, vector);
        if (may_choose(m, words)) sum += sum_vector(m, words, vector_col(r, vector));
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
    const uint32_t first = r->rank * KILN_SUBGROUPS * share_vectors(r) * KILN_VECTOR;
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
 * thread that finds it; else KILN_NOWHERE. own is what the thread's vectors measure. */
KILN_INLINE uint32_t find_in_share(const team_row *r, const row_measure *m, uint64_t own, uint64_t rest) {
    const bool heads = own_share(r) == 0;
    const uint64_t single = single_sum(r, m);
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
    if (before <= rest && rest < before + shares[share]) {
        const uint64_t own = is_counted_row() ? piece_sum(r, m) : r->piece->sum; /* there are no registers for it */
        col = find_in_share(r, m, own, rest - before);
    }
    const bool mine = col != KILN_NOWHERE;
    if (drawn) {
        if (mine) r->piece->args->y[kiln_block()] = (int32_t)col;
        return KILN_NOWHERE;
    }
    const uint64_t found[3] = {col, 0, 0};
    return (uint32_t)team_tell(r, mine, found)[0];
}

#endif
