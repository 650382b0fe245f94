/* The fast way of top_k: the elements that reach a bound, which are few. */
#ifndef KILN_KERNELS_TOP_K_FEW_GPU_H
#define KILN_KERNELS_TOP_K_FEW_GPU_H

#include "kernels/top_k/share_gpu.h"
#include "kernels/top_k/team_gpu.h"

enum { LOADS = sizeof(kiln_element) == 4 ? 2 : 4 /* vectors that a thread has in flight */ };

/* The greatest key of the thread's share: every threads-th vector and single element. Where its last vectors are fewer
 * than a thread has in flight, one of them is taken again. */
KILN_INLINE uint32_t greatest_of(const part *p, const team *t) {
    share greatest = share_none();
    KILN_LOOP
    for (uint32_t vector = own_thread(t); vector < p->vectors; vector += LOADS * t->threads) {
        kiln_vector held[LOADS];
        KILN_UNROLL
        for (uint32_t i = 0; i < LOADS; i++) {
            uint32_t at = vector + i * t->threads;
            held[i] = vector_at(p, at < p->vectors ? at : vector);
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < LOADS; i++)
            share_take(&greatest, held[i]);
    }
    uint32_t key = share_key(greatest);
    KILN_LOOP
    for (uint32_t i = own_thread(t); i < singles_of(p); i += t->threads) {
        uint32_t single = key_at(p, single_place(p, i));
        key = greater(key, single);
    }
    return key;
}

/* How many of the team's keys are taken as one: of a subgroup's none. */
KILN_INLINE uint32_t group_log2_of(const part *p, const team *t) {
    return t->threads == KILN_BLOCK ? p->args->group_log2 : 0;
}

/* Leaves the greatest key of each group of threads in shared memory. */
KILN_INLINE void share_keys(const part *p, const team *t, uint32_t key) {
    uint32_t log2 = group_log2_of(p, t), group = 1u << log2, thread = own_thread(t);
    KILN_LOOP
    for (uint32_t mask = 1; mask < group; mask *= 2) {
        uint32_t other = kiln_bits(kiln_shuffle_xor(kiln_float(key), mask));
        key = greater(key, other);
    }
    if (thread % group == 0) t->shared->keys[t->first + (thread >> log2)] = key;
}

/* A bound that at least `wanted` of the keys reach, and hardly more if they differ. Called by a subgroup; a quarter
 * more than wanted is as good as exactly as many, and found sooner. */
KILN_INLINE uint32_t bound_of(const part *p, const team *t) {
    const uint32_t *own = t->shared->keys + kiln_thread();
    uint32_t keys = t->threads >> group_log2_of(p, t), wanted = wanted_of(p);
    uint32_t low = 0xffffffffu, high = 0, reach = 0xffffffffu, most = wanted + wanted / 4 + 2;
    KILN_LOOP
    for (uint32_t i = 0; i < keys; i += KILN_SUBGROUP) {
        low = own[i] < low ? own[i] : low;
        high = greater(high, own[i]);
    }
    KILN_LOOP
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2) {
        uint32_t other_low = kiln_bits(kiln_shuffle_xor(kiln_float(low), mask));
        uint32_t other_high = kiln_bits(kiln_shuffle_xor(kiln_float(high), mask));
        low = other_low < low ? other_low : low;
        high = greater(high, other_high);
    }
    KILN_LOOP
    while (low < high && reach > most) {
        uint32_t middle = low + (high - low) / 2 + 1, count = 0;
        KILN_LOOP
        for (uint32_t i = 0; i < keys; i += KILN_SUBGROUP)
            count += threads_with(own[i] >= middle);
        if (count < wanted) {
            high = middle - 1;
        } else {
            low = middle;
            reach = count;
        }
    }
    return low;
}

/* A number that those whose keys do not reach the bound do not exceed, and the others do. Keys beyond infinity's are
 * those of NaN; 0 stands for -0 too. */
KILN_INLINE float below(uint32_t bound) {
    uint32_t infinity = kiln_order_key(KILN_INFINITY);
    return kiln_order_value(bound > infinity ? infinity : bound - (bound == kiln_order_key(0.0f) ? 2 : 1));
}

/* Takes an element or candidate, read again. */
KILN_INLINE void take(const part *p, const team *t, uint32_t place) {
    uint32_t at = kiln_shared_add(&t->shared->counts[own_number(t)], 1);
    if (at < own_room(t)) own_ranks(t)[at] = kiln_rank_of(key_at(p, place), col_at(p, place));
}

/* Takes a vector's elements that exceed `least`, or are NaN. */
KILN_INLINE void take_vector(const part *p, const team *t, uint32_t vector, float least) {
    float values[KILN_VECTOR];
    uint32_t hits = 0;
    kiln_vector_values(values, vector_at(p, vector));
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        hits |= values[i] <= least ? 0 : 1u << i;
    KILN_LOOP
    for (; hits; hits &= hits - 1)
        take(p, t, p->head + vector * KILN_VECTOR + (31 - (uint32_t)__builtin_clz(hits & (0 - hits))));
}

/* Takes the elements of the vectors in the shares of the threads that are listed. */
KILN_INLINE void take_listed(const part *p, const team *t, float least) {
    uint32_t rounds_log2 = 0;
    KILN_LOOP
    while (t->threads << rounds_log2 < p->vectors)
        rounds_log2++;
    uint32_t count = t->shared->listed[own_number(t)] << rounds_log2;
    KILN_LOOP
    for (uint32_t i = own_thread(t); i < count; i += t->threads) {
        uint32_t round = i & ((1u << rounds_log2) - 1);
        uint32_t vector = t->shared->list[t->first + (i >> rounds_log2)] + round * t->threads;
        if (vector < p->vectors) take_vector(p, t, vector, least);
    }
}

/* Leaves the candidates, which include all that are to be chosen, in shared memory. Returns how many there are; if more
 * than the room for them, they are not complete. */
KILN_INLINE uint32_t take_few(const part *p, const team *t) {
    uint32_t key = 0xffffffffu, bound = 0;
    if (own_thread(t) == 0) t->shared->listed[own_number(t)] = t->shared->counts[own_number(t)] = 0;
    if (wanted_of(p) * 4 <= t->threads * 3) {
        key = greatest_of(p, t);
        share_keys(p, t, key);
        team_sync(t);
        if (own_thread(t) < KILN_SUBGROUP) {
            bound = bound_of(p, t);
            if (own_thread(t) == 0) t->shared->bounds[own_number(t)] = bound;
        }
        team_sync(t);
        bound = t->shared->bounds[own_number(t)];
    } else {
        if (p->count > own_room(t)) return p->count;
        team_sync(t);
    }
    KILN_LOOP
    for (uint32_t i = own_thread(t); i < singles_of(p) && key >= bound; i += t->threads) {
        uint32_t place = single_place(p, i);
        if (key_at(p, place) >= bound) take(p, t, place);
    }
    if (key >= bound && own_thread(t) < p->vectors)
        t->shared->list[t->first + kiln_shared_add(&t->shared->listed[own_number(t)], 1)] = own_thread(t);
    team_sync(t);
    take_listed(p, t, below(bound));
    team_sync(t);
    return t->shared->counts[own_number(t)];
}

#endif
