/* A row of bf16 in the shared memory of a cluster's blocks, chosen from by how many elements there are of each number.
 *
 * Each block counts its elements by number, once. What a filter keeps follows from the counts and one weight for each
 * number, and so does what each block has of it: only the block in which the random number falls weighs its elements.
 *
 * There are counts for 32 powers of two of each sign. Elements of less magnitude are counted as zeros, if they weigh
 * the same; those that weigh nothing are not counted. */
#ifndef KILN_KERNELS_SAMPLE_COUNTED_SM90A_H
#define KILN_KERNELS_SAMPLE_COUNTED_SM90A_H

#include "kernels/arch/sm90a.h"
#include "kernels/sample/share_sm90a.h"

enum {
    OWN_MAGNITUDES = MAGNITUDES / (TEAM_MOST * KILN_BLOCK), /* of a thread of the team: adjacent ones */
    OWN_NUMBERS = 2 * OWN_MAGNITUDES,
    NEGATIVE = 1 << 16 /* one of the negative elements of a magnitude; the others are counted below it */
};

/* Numbers are in order from the greatest on: positive ones from the greatest magnitude down to zero, then negative
 * ones. Chosen from are the elements of those before `last`, and the first `kept` of that one. */
typedef struct counting {
    float least;   /* elements that may weigh anything are not less */
    uint32_t base; /* the upper half of the magnitude that is counted with zeros, as are lesser ones */
    uint32_t last, kept;
} counting;

KILN_INLINE uint32_t magnitude_of(uint32_t number) {
    return number < MAGNITUDES ? MAGNITUDES - 1 - number : number - MAGNITUDES;
}

KILN_INLINE float number_value(const counting *c, uint32_t number) {
    const uint32_t magnitude = magnitude_of(number), sign = number < MAGNITUDES ? 0 : 0x80000000u;
    return magnitude ? kiln_float((c->base + magnitude) << 16 | sign) : 0.0f;
}

KILN_INLINE uint32_t count_in(uint32_t word, uint32_t number) {
    return number < MAGNITUDES ? word % NEGATIVE : word / NEGATIVE;
}

/* The first of the thread's magnitudes. */
KILN_INLINE uint32_t own_magnitude(const team_row *r) {
    return (r->rank * KILN_BLOCK + kiln_thread()) * OWN_MAGNITUDES;
}

/* The thread's numbers, in their order. */
KILN_INLINE uint32_t own_number(const team_row *r, uint32_t i) {
    const uint32_t after = own_magnitude(r) + OWN_MAGNITUDES;
    return i < OWN_MAGNITUDES ? MAGNITUDES - after + i : MAGNITUDES + after + i - OWN_NUMBERS;
}

KILN_INLINE const uint32_t *counts_of(const team_row *r, uint32_t magnitude, uint32_t rank) {
    return KILN_TEAM_SHARED(&r->shared->numbers[magnitude], rank);
}

/* Whether no count of a block can exceed its half of a word. */
KILN_INLINE bool is_countable(const team_row *r) {
    return r->place.each * KILN_SUBGROUPS * KILN_VECTOR + 2 * KILN_VECTOR < NEGATIVE;
}

/* False: the row's numbers are too small. */
KILN_INLINE bool counting_begin(counting *c, const kiln_row *row) {
    const float nothing = 28.0f /* e^-28 is less than 2^-40 */, lowest = -0x1.fep127f;
    c->least = kiln_fast_max(row->max - nothing * kiln_reciprocal(row->inverse_temperature), lowest);
    const float most = kiln_fast_max(kiln_fast_max(row->max, -row->max), kiln_fast_max(c->least, -c->least));
    const uint32_t powers = MAGNITUDES >> 7, power = kiln_bits(most) >> 23;
    c->base = (power + 1 - powers) << 7;
    c->last = KILN_NOWHERE;
    c->kept = 0;
    return power >= powers;
}

/* Counts an element, given as the upper half of a word. */
KILN_INLINE void count_element(exchange *shared, const counting *c, uint32_t element) {
    const uint32_t numbers = kiln_sm90a_shared(shared->numbers), step = sizeof *shared->numbers;
    const int32_t place = (int32_t)(element >> 14 & 0x7fff * step) + (int32_t)(numbers - c->base * step);
    const uint32_t amount = (int32_t)element < 0 ? NEGATIVE : 1;
    kiln_sm90a_tally(place > (int32_t)numbers ? (uint32_t)place : numbers, amount, kiln_float(element), c->least);
}

/* Counts the share of the thread's subgroup. */
KILN_INLINE void count_share(const team_row *r, const counting *c) {
    const row_walk walk = walk_of(r);
    KILN_LOOP
    for (uint32_t vector = walk.first; vector < walk.last; vector += KILN_SUBGROUP) {
        const kiln_vector words = vector_at(r, vector);
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR_BYTES / 4; i++) {
            count_element(r->shared, c, words.words[i] << 16);
            count_element(r->shared, c, words.words[i] & 0xffff0000u);
        }
    }
    if (r->single < r->place.cols) count_element(r->shared, c, kiln_bits(value_at(r, r->single)));
}

/* Counts the row. False: there are elements that are counted as zeros and may not weigh the same. */
KILN_INLINE bool count_row(const team_row *r, const counting *c) {
    const float small = kiln_float(c->base << 16);
    const bool same = small - r->row.max == -small - r->row.max;
    const kiln_vector none = {{0}};
    kiln_barrier(); /* what the counts take the place of has been read by all */
    KILN_UNROLL
    for (uint32_t i = 0; i < sizeof r->shared->numbers / KILN_VECTOR_BYTES; i += KILN_BLOCK)
        ((kiln_vector *)r->shared->numbers)[i + kiln_thread()] = none;
    kiln_barrier();
    count_share(r, c);
    KILN_TEAM_SYNC();
    return same || !__any_sync(0xffffffffu, *counts_of(r, 0, lane() % TEAM_MOST) != 0);
}

/* The counts of the thread's magnitudes in a block. */
typedef struct __align__(8) own_counts {
    uint32_t words[OWN_MAGNITUDES];
}
own_counts;

KILN_INLINE own_counts own_counts_in(const team_row *r, uint32_t rank) {
    return *(const own_counts *)counts_of(r, own_magnitude(r), rank);
}

/* How many elements there are of each of the thread's numbers in all blocks, of which it asks for all at once. Returns
 * whether any thread of the subgroup has some. */
KILN_INLINE bool count_numbers(const team_row *r, uint32_t *counts) {
    own_counts own[TEAM_MOST];
    uint32_t any = 0;
    KILN_UNROLL
    for (uint32_t rank = 0; rank < TEAM_MOST; rank++)
        own[rank] = own_counts_in(r, rank);
    KILN_UNROLL
    for (uint32_t i = 0; i < OWN_NUMBERS; i++)
        counts[i] = 0;
    KILN_UNROLL
    for (uint32_t rank = 0; rank < TEAM_MOST; rank++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < OWN_MAGNITUDES; i++) {
            const uint32_t word = own[rank].words[i];
            any |= word;
            counts[OWN_MAGNITUDES - 1 - i] += word % NEGATIVE;
            counts[OWN_MAGNITUDES + i] += word / NEGATIVE;
        }
    }
    return __any_sync(0xffffffffu, any != 0);
}

/* The sum of the shares before one; *all is that of all. */
KILN_INLINE uint64_t shares_before(const uint64_t *shares, uint32_t share, uint64_t *all) {
    const uint64_t even = shares[2 * lane()], before = subgroup_before(even + shares[2 * lane() + 1], all);
    return __shfl_sync(0xffffffffu, before + (share % 2 ? even : 0), (int)share / 2);
}

/* Shortens the choice to what top-p keeps. False: it ends among those that are counted as zeros. */
KILN_INLINE bool count_top_p(const team_row *r, counting *c, float top_p) {
    uint32_t counts[OWN_NUMBERS];
    uint64_t sums[OWN_NUMBERS] = {0}, high = 0, low = 0, high_all = 0, low_all = 0, after = 0, lower = 0;
    if (count_numbers(r, counts)) {
        KILN_UNROLL
        for (uint32_t i = 0; i < OWN_NUMBERS; i++)
            sums[i] = counts[i] * weight_of(&r->row, number_value(c, own_number(r, i)));
        KILN_UNROLL
        for (uint32_t i = 0; i < OWN_MAGNITUDES; i++) {
            high += sums[i];
            low += sums[OWN_MAGNITUDES + i];
        }
        after = subgroup_before(high, &high_all);
        lower = subgroup_before(low, &low_all);
    }
    const uint32_t share = own_share(r);
    if (lane() < TEAM_MOST)
        KILN_TEAM_SEND(&r->shared->negative[share], lane(), &r->meeting->shared[*r->turn % 2], low_all);
    team_give(r, high_all, (uint32_t)sizeof r->shared->negative);
    const uint64_t *highs = team_take(r), *lows = r->shared->negative;
    uint64_t positive, negative;
    const uint64_t high_after = shares_before(highs, share, &positive),
                   low_before = shares_before(lows, share, &negative);
    const uint64_t all = positive + negative, need = kiln_sample_need(top_p, all);
    if (need >= all) return true;
    const uint64_t before_high = positive - high_after - after - high, before_low = positive + low_before + lower;
    const bool is_high = before_high < need && need <= before_high + high;
    const bool mine = is_high || (before_low < need && need <= before_low + low);
    uint64_t found[3] = {0, 0, 0};
    if (mine) {
        uint64_t before = is_high ? before_high : before_low;
        uint32_t i = is_high ? 0 : OWN_MAGNITUDES;
        KILN_UNROLL
        for (uint32_t k = 0; k + 1 < OWN_MAGNITUDES; k++) {
            const uint64_t sum = is_high ? sums[k] : sums[OWN_MAGNITUDES + k];
            if (before + sum >= need) break;
            before += sum;
            i++;
        }
        found[0] = own_number(r, i);
        found[1] = need - before;
    }
    const uint64_t *told = team_tell(r, mine, found);
    c->last = (uint32_t)told[0];
    c->kept = (uint32_t)((told[1] - 1) / weight_of(&r->row, number_value(c, c->last))) + 1;
    return magnitude_of(c->last) != 0;
}

/* The column of the block's element such that those of the block up to it measure more than `rest`, in the one thread
 * that finds it; else KILN_NOWHERE. */
KILN_INLINE uint32_t find_in_block(const team_row *r, const row_measure *m, uint64_t rest) {
    r->piece->sum = piece_sum(r, m);
    const uint64_t own = subgroup_sum(r->piece->sum + single_sum(r, m));
    kiln_barrier(); /* the last sums have been read by all */
    if (lane() == 0) r->shared->subgroups[subgroup()] = own;
    kiln_barrier();
    uint64_t before = 0;
    KILN_LOOP
    for (uint32_t i = 0; i < subgroup(); i++)
        before += r->shared->subgroups[i];
    return before <= rest && rest < before + own ? find_in_share(r, m, rest - before) : KILN_NOWHERE;
}

/* Adds up two values over the subgroup's threads of which each has one of them: those without the bit the first, those
 * with it the second. */
KILN_INLINE uint64_t halve_sums(uint64_t first, uint64_t second, uint32_t bit) {
    const bool odd = lane() & bit;
    return (odd ? second : first) + kiln_shuffle_xor_64(odd ? first : second, bit);
}

/* What the elements of the thread's numbers before the last one weigh in a block. */
KILN_INLINE uint64_t mass_in(const team_row *r, const uint64_t *weights, uint32_t rank) {
    const own_counts own = own_counts_in(r, rank);
    uint64_t sum = 0;
    KILN_UNROLL
    for (uint32_t i = 0; i < OWN_MAGNITUDES; i++)
        sum += own.words[i] % NEGATIVE * weights[OWN_MAGNITUDES - 1 - i] +
               own.words[i] / NEGATIVE * weights[OWN_MAGNITUDES + i];
    return sum;
}

/* What the elements of the subgroup's numbers before the last one weigh in the block of rank lane / 4. */
KILN_INLINE uint64_t masses_of(const team_row *r, const counting *c) {
    uint64_t weights[OWN_NUMBERS], sums[2][2];
    KILN_UNROLL
    for (uint32_t i = 0; i < OWN_NUMBERS; i++) {
        const uint32_t number = own_number(r, i);
        weights[i] = number < c->last ? weight_of(&r->row, number_value(c, number)) : 0;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        sums[i % 2][i / 2] = halve_sums(mass_in(r, weights, i), mass_in(r, weights, i + 4), 16);
    const uint64_t even = halve_sums(sums[0][0], sums[0][1], 8), odd = halve_sums(sums[1][0], sums[1][1], 8);
    uint64_t mass = halve_sums(even, odd, 4);
    mass += kiln_shuffle_xor_64(mass, 2);
    return mass + kiln_shuffle_xor_64(mass, 1);
}

/* Sends all blocks what the elements before the last number weigh in each block, of the subgroup's numbers. */
KILN_INLINE void give_masses(const team_row *r, const counting *c) {
    enum { LANES = KILN_SUBGROUP / TEAM_MOST };
    uint32_t counts[OWN_NUMBERS];
    uint64_t mass = 0, *place = &r->meeting->masses[lane() / LANES][own_share(r)];
    if (count_numbers(r, counts)) mass = masses_of(r, c);
    KILN_UNROLL
    for (uint32_t rank = lane() % LANES; rank < TEAM_MOST; rank += LANES)
        KILN_TEAM_SEND(place, rank, &r->meeting->shared[*r->turn % 2], mass);
    team_give(r, 0, (uint32_t)sizeof r->meeting->masses);
}

/* Draws an element of the choice, in the block that has it, and stores its column. */
KILN_INLINE void count_draw(const team_row *r, const counting *c, const uint64_t *bits) {
    const bool ends = c->last != KILN_NOWHERE;
    const float value = ends ? number_value(c, c->last) : 0.0f;
    uint64_t all, last = 0; /* in the block of rank `lane`: elements of the last number; later, those kept */
    if (ends && lane() < TEAM_MOST) last = count_in(*counts_of(r, magnitude_of(c->last), lane()), c->last);
    give_masses(r, c);
    const uint64_t before_last = subgroup_before(last, &all);
    const uint32_t left = before_last < c->kept ? c->kept - (uint32_t)before_last : 0;
    const uint32_t kept = lesser((uint32_t)last, left);
    team_take(r);
    const uint64_t *masses = r->meeting->masses[subgroup()];
    uint64_t mass = 0;
    KILN_LOOP
    for (uint32_t i = lane(); i < SHARES; i += KILN_SUBGROUP)
        mass += masses[i];
    mass = subgroup_sum(mass);
    if (ends) mass += __shfl_sync(0xffffffffu, kept, (int)subgroup()) * weight_of(&r->row, value);
    if (lane() == 0) r->shared->subgroups[subgroup()] = mass;
    kiln_barrier();
    uint64_t before = 0, sum = 0;
    KILN_LOOP
    for (uint32_t rank = 0; rank < TEAM_MOST; rank++) {
        before = rank == r->rank ? sum : before;
        sum += r->shared->subgroups[rank];
    }
    const uint64_t rest = kiln_scaled(*bits, sum);
    if (rest < before || rest >= before + r->shared->subgroups[r->rank]) return;
    kiln_choice choice = {0, 0, 0xffffffffu};
    if (ends) {
        const uint32_t own = __shfl_sync(0xffffffffu, kept, (int)r->rank);
        choice.key = kiln_order_key(value);
        choice.end = own == __shfl_sync(0xffffffffu, (uint32_t)last, (int)r->rank) ? r->place.cols : 0;
        if (own && !choice.end) {
            const kiln_choice equal = {choice.key, r->place.cols, choice.key};
            const row_measure m = measure_of(&r->row, equal, KILN_COUNT);
            const uint32_t col = find_in_block(r, &m, own - 1);
            if (col != KILN_NOWHERE) r->shared->found = col;
            kiln_barrier();
            choice.end = r->shared->found + 1;
        }
    }
    const row_measure m = measure_of(&r->row, choice, KILN_WEIGHT);
    const uint32_t col = find_in_block(r, &m, rest - before);
    if (col != KILN_NOWHERE) r->piece->args->y[kiln_block()] = (int32_t)col;
}

/* Chooses a column and stores it. False: counts do not suffice, and have been read by all blocks. */
KILN_INLINE bool sample_counted(const team_row *r, float top_p, const uint64_t *bits) {
    counting c;
    if (r->row.max == KILN_INFINITY || !counting_begin(&c, &r->row)) return false;
    if (!count_row(r, &c) || (top_p != 0.0f && !count_top_p(r, &c, top_p))) {
        if (kiln_thread() == 0) r->shared->turn = *r->turn;
        KILN_TEAM_SYNC();
        return false;
    }
    count_draw(r, &c, bits);
    return true;
}

#endif
