/* The k greatest of any elements, in top_k: a block finds the k-th greatest key digit by digit, eleven bits at a time,
 * the highest digit first. In shared memory it counts the keys that agree so far by their next digit, and adds the
 * counts from the greatest digit on until they reach k. Where more elements equal the k-th than are wanted, the lowest
 * columns among them are found in the same way. Every pass reads the elements again, from a cache. */
#ifndef KILN_KERNELS_TOP_K_RADIX_GPU_H
#define KILN_KERNELS_TOP_K_RADIX_GPU_H

#include "kernels/top_k/team_gpu.h"

/* How many bits of a key follow from the others. */
#if defined(KILN_PART_f32)
#define KEY_LOW 0
#elif defined(KILN_PART_f16)
#define KEY_LOW 13
#else
#define KEY_LOW 16
#endif

enum { THREAD_BINS = BINS / KILN_BLOCK };

/* The sum of the values of the threads before this one. */
KILN_INLINE uint32_t sum_before(exchange *shared, uint32_t value) {
    uint32_t before = 0, sum = value, lane = kiln_thread() % KILN_SUBGROUP;
    KILN_LOOP
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2) {
        uint32_t other = kiln_bits(kiln_shuffle_xor(kiln_float(sum), mask));
        before += lane & mask ? other : 0;
        sum += other;
    }
    if (lane == 0) shared->sums[kiln_thread() / KILN_SUBGROUP] = sum;
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = 0; i < kiln_thread() / KILN_SUBGROUP; i++)
        before += shared->sums[i];
    return before;
}

/* The digit at which the counts, added from the greatest digit on, reach *need. The counts of the greater digits are
 * subtracted from *need. */
KILN_INLINE uint32_t find_digit(exchange *shared, uint32_t *need) {
    uint32_t top = BINS - 1 - kiln_thread() * THREAD_BINS, sum = 0;
    KILN_UNROLL
    for (uint32_t i = 0; i < THREAD_BINS; i++)
        sum += shared->bins[top - i];
    uint32_t before = sum_before(shared, sum);
    if (before < *need && *need <= before + sum) {
        KILN_LOOP
        while (before + shared->bins[top] < *need)
            before += shared->bins[top--];
        shared->digit = top;
        shared->need = *need - before;
        shared->equal = shared->bins[top];
    }
    kiln_barrier();
    *need = shared->need;
    return shared->digit;
}

/* What an element is chosen by: the upper bits of its key; or, where `least` is not 0, its column if these bits are
 * equal to it, so that the lowest is the greatest, and 0 if not. */
KILN_INLINE uint32_t chosen_by(const part *p, uint32_t least, uint32_t place) {
    uint32_t key = key_at(p, place) >> KEY_LOW;
    return least ? (key == least ? ~col_at(p, place) : 0) : key;
}

/* The *need-th greatest number that the part's elements are chosen by, of so many bits. *need becomes how many of those
 * equal to it are among the greatest. */
KILN_INLINE uint32_t find_last(const part *p, exchange *shared, uint32_t least, uint32_t width, uint32_t *need) {
    uint32_t last = 0;
    KILN_LOOP
    for (uint32_t left = width, bits; left; left -= bits) {
        bits = left < DIGIT_BITS ? left : DIGIT_BITS;
        KILN_UNROLL
        for (uint32_t i = 0; i < THREAD_BINS; i++)
            shared->bins[i * KILN_BLOCK + kiln_thread()] = 0;
        kiln_barrier();
        KILN_LOOP
        for (uint32_t i = kiln_thread(); i < p->count; i += KILN_BLOCK) {
            uint32_t number = chosen_by(p, least, i), digits = number >> (left - bits);
            if (number && digits >> bits == last) kiln_shared_add(&shared->bins[digits & ((1u << bits) - 1)], 1);
        }
        kiln_barrier();
        last = last << bits | find_digit(shared, need);
    }
    return last;
}

/* Leaves the `wanted` greatest elements in shared memory. */
KILN_INLINE void take_greatest(const part *p, exchange *shared, uint32_t wanted) {
    uint32_t least = 0, width = 32 - KEY_LOW;
    kiln_barrier(); /* the threads' keys and list have been read by all */
    if (kiln_thread() == 0) shared->counts[0] = 0;
    KILN_LOOP
    while (wanted) { /* once for the keys, and once for the columns of those that equal the last one */
        uint32_t last = find_last(p, shared, least, width, &wanted);
        bool all = shared->equal == wanted;
        KILN_LOOP
        for (uint32_t i = kiln_thread(); i < p->count; i += KILN_BLOCK) {
            uint32_t number = chosen_by(p, least, i);
            if (number > last || (number == last && all))
                shared->ranks[kiln_shared_add(&shared->counts[0], 1)] = kiln_rank_of(key_at(p, i), col_at(p, i));
        }
        if (all) break;
        least = last;
        width = 32;
    }
    kiln_barrier();
}

#endif
