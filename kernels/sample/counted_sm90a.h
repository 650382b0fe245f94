/* A row of bf16 in the shared memory of a cluster's blocks, chosen from by how many elements there are of each number.
 *
 * Each block counts its elements by number, as they come. What a filter keeps follows from the counts and one weight
 * for each number, and so does what each block has of it: only the block in which the random number falls weighs its
 * elements. Once the blocks have told each other the greatest element, each subgroup of the cluster has a range of
 * numbers, a power of two of one sign: it reads its counts from all blocks at once, and tells all what each has of it.
 * Where a filter ends in a range, each block reads the counts of that one.
 *
 * There are counts for 32 powers of two of each sign: at first for those that most rows have, and once again, for those
 * that the row has, if these do not suffice. Elements of less magnitude are counted as zeros, if they weigh the same;
 * those of greater magnitude must weigh nothing. */
#ifndef KILN_KERNELS_SAMPLE_COUNTED_SM90A_H
#define KILN_KERNELS_SAMPLE_COUNTED_SM90A_H

#include "kernels/arch/sm90a_tally.h"
#include "kernels/sample/share_sm90a.h"

enum {
    RANGES = 2 * POWERS,
    RANGE = MAGNITUDES / POWERS,         /* numbers of a range */
    OWN_NUMBERS = RANGE / KILN_SUBGROUP, /* of a thread, where its subgroup has a range: adjacent ones */
    ASKED = 4,                           /* blocks that a thread reads from at a time */
    NEGATIVE = 1 << 16,           /* one of the negative elements of a magnitude; the others are counted below it */
    LIKELY_BASE = (127 - 24) << 7 /* magnitudes from 2^-24 to 2^8 */
};

/* Numbers are in order from the greatest on: positive ones from the greatest magnitude down to zero, then negative
 * ones. Chosen from are the elements of those before `last`, and some of that one. */
typedef struct counting {
    float least;   /* elements that min-p keeps are not less */
    uint32_t base; /* the upper half of the magnitude that is counted with zeros, as are lesser ones */
    uint32_t last;
} counting;

KILN_INLINE uint32_t magnitude_of(uint32_t number) {
    return number < MAGNITUDES ? MAGNITUDES - 1 - number : number - MAGNITUDES;
}

KILN_INLINE float number_value(const counting *c, uint32_t number) {
    const uint32_t magnitude = magnitude_of(number), sign = number < MAGNITUDES ? 0 : 0x80000000u;
    return magnitude ? kiln_float((c->base + magnitude) << 16 | sign) : 0.0f;
}

/* The power of two of a range. */
KILN_INLINE uint32_t power_of(uint32_t range) {
    return range < POWERS ? POWERS - 1 - range : range - POWERS;
}

KILN_INLINE uint32_t count_in(uint32_t word, uint32_t range) {
    return range < POWERS ? word % NEGATIVE : word / NEGATIVE;
}

/* Whether no count of a block can exceed its half of a word. */
KILN_INLINE bool is_countable(const team_row *r) {
    return r->place.each * KILN_SUBGROUPS * KILN_VECTOR + 2 * KILN_VECTOR < NEGATIVE;
}

/* ---- Counting ---- */

/* Counts an element, given as the upper half of a word. Those of too great a magnitude are counted behind the others,
 * by each thread of a subgroup at another place. */
KILN_INLINE void count_element(uint32_t numbers, uint32_t base, uint32_t element) {
    const int32_t step = sizeof(uint32_t), first = (int32_t)numbers,
                  past = first + (MAGNITUDES + (int32_t)lane()) * step;
    const int32_t place = (int32_t)(element >> 14 & 0x1fffc) + (first - (int32_t)base * step);
    const int32_t above = place > first ? place : first;
    kiln_sm90a_tally((uint32_t)(above < past ? above : past), (int32_t)element < 0 ? NEGATIVE : 1);
}

/* Counts the share of the thread's subgroup. Returns the key of the thread's greatest element. */
KILN_INLINE uint32_t count_share(const team_row *r, uint32_t base) {
    const uint32_t numbers = kiln_sm90a_shared(r->shared->numbers);
    const row_walk walk = walk_of(r);
    group_max max = group_none();
    KILN_LOOP
    for (uint32_t vector = walk.first; vector < walk.last; vector += KILN_SUBGROUP) {
        const kiln_vector words = vector_at(r, vector);
        max = group_take(max, words);
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR_BYTES / 4; i++) {
            count_element(numbers, base, words.words[i] << 16);
            count_element(numbers, base, words.words[i]);
        }
    }
    float greatest = group_value(max);
    if (r->single < r->place.cols) {
        const float value = value_at(r, r->single);
        count_element(numbers, base, kiln_bits(value));
        greatest = kiln_fast_max(value, greatest);
    }
    return kiln_sample_key(greatest);
}

/* Counts the row from this magnitude on. Returns the greatest key, with that `zeros` in it if any element is counted as
 * a zero. */
KILN_INLINE uint64_t count_row(const team_row *r, uint32_t base, uint64_t zeros) {
    const kiln_vector none = {{0}};
    KILN_UNROLL
    for (uint32_t i = kiln_thread(); i < sizeof r->shared->numbers / KILN_VECTOR_BYTES; i += KILN_BLOCK)
        ((kiln_vector *)r->shared->numbers)[i] = none;
    kiln_barrier();
    await_share(r);
    uint64_t own = kiln_sm90a_warp_greatest(count_share(r, base));
    if (*r->turn == 0) kiln_sm90a_cluster_wait(); /* a block's shared memory may be written once it has begun */
    __syncwarp();
    uint32_t none_so_far = 1;
    if (lane() == 0) none_so_far = kiln_shared_add(&r->shared->numbers[0], 0) == 0;
    own |= __shfl_sync(0xffffffffu, none_so_far, 0) ? 0 : zeros;
    const uint32_t turn = (*r->turn)++;
    uint64_t *shares = r->shared->shares[turn % 2];
    if (lane() < TEAM_MOST) KILN_TEAM_SEND(&shares[own_share(r)], lane(), &r->meeting->shared[turn % 2], own);
    if (kiln_thread() == 0) KILN_TEAM_EXPECT(&r->meeting->shared[turn % 2], SHARES * (uint32_t)sizeof *shares);
    team_take(r);
    const uint64_t even = shares[2 * lane()], odd = shares[2 * lane() + 1];
    const uint32_t greatest = kiln_sm90a_warp_greatest((uint32_t)even > (uint32_t)odd ? (uint32_t)even : (uint32_t)odd);
    return greatest | (__any_sync(0xffffffffu, ((even | odd) & zeros) != 0) ? zeros : 0);
}

/* Whether what has been counted from the base on suffices. Sets it to that of the row's greatest magnitudes if it does
 * not. */
KILN_INLINE bool is_suitable(counting *c, const kiln_row *row, float temperature, bool zeros) {
    const float nothing = 28.0f /* e^-28 is less than 2^-40 */, lowest = -0x1.fep127f;
    const float end = kiln_fast_max(row->max - nothing * (temperature < 1e6f ? temperature : 1e6f), lowest);
    const float most = kiln_fast_max(kiln_fast_max(row->max, -row->max), -end), small = kiln_float(c->base << 16);
    const uint32_t base = ((kiln_bits(most) >> 23) + 1 - POWERS) << 7;
    if ((int32_t)base <= (int32_t)c->base &&
        (!zeros || (weight_of(row, small) == weight_of(row, -small) && (small >= c->least) == (-small >= c->least))))
        return true;
    c->base = base;
    return false;
}

/* ---- Where the choice ends ---- */

/* Adds up two values over the subgroup's threads of which each has one of them: those without the bit the first, those
 * with it the second. */
KILN_INLINE uint64_t halve_sums(uint64_t first, uint64_t second, uint32_t bit) {
    const bool odd = lane() & bit;
    return (odd ? second : first) + kiln_shuffle_xor_64(odd ? first : second, bit);
}

/* The words that have the counts of the thread's numbers of a range in a block. */
KILN_INLINE kiln_vector range_words(const team_row *r, uint32_t range, uint32_t rank) {
    const uint32_t own = range < POWERS ? lane() ^ (KILN_SUBGROUP - 1) : lane();
    const uint32_t *first = &r->shared->numbers[power_of(range) * RANGE + own * OWN_NUMBERS];
    return *(const kiln_vector *)KILN_TEAM_SHARED(first, rank);
}

/* Counts of the numbers of a range that the thread has in a block, in the order of their words: two in each. */
typedef struct range_counts {
    uint32_t pairs[OWN_NUMBERS / 2];
} range_counts;

KILN_INLINE range_counts counts_in(kiln_vector words, uint32_t range) {
    const uint32_t halves = range < POWERS ? 0x5410 : 0x7632;
    const range_counts counts = {
        {__byte_perm(words.words[0], words.words[1], halves), __byte_perm(words.words[2], words.words[3], halves)}};
    return counts;
}

/* What the elements of these numbers weigh. */
KILN_INLINE uint64_t mass_of(range_counts counts, const uint64_t *weights) {
    uint64_t sum = 0;
    KILN_UNROLL
    for (uint32_t i = 0; i < OWN_NUMBERS; i++)
        sum += (i % 2 ? counts.pairs[i / 2] >> 16 : counts.pairs[i / 2] & 0xffff) * weights[i];
    return sum;
}

/* Sends all blocks what each block has of the subgroup's range: the weight, and if that is asked for, how many
 * elements there are in all. Adjacent ranges, of which rows have most, are of different blocks. */
KILN_INLINE void give_range(const team_row *r, const counting *c, bool counts) {
    enum { LANES = KILN_SUBGROUP / TEAM_MOST };
    const uint32_t range = subgroup() * TEAM_MOST + r->rank;
    uint64_t *barrier = &r->meeting->shared[(*r->turn)++ % 2], mass = 0;
    range_counts own[TEAM_MOST];
    uint32_t any = 0, count = 0;
    KILN_UNROLL
    for (uint32_t rank = 0; rank < TEAM_MOST; rank++)
        own[rank] = counts_in(range_words(r, range, rank), range);
    KILN_UNROLL
    for (uint32_t rank = 0; rank < TEAM_MOST; rank++)
        any |= own[rank].pairs[0] | own[rank].pairs[1];
    if (__any_sync(0xffffffffu, any != 0)) {
        uint64_t weights[OWN_NUMBERS], ones[OWN_NUMBERS], sums[2][2];
        KILN_UNROLL
        for (uint32_t i = 0; i < OWN_NUMBERS; i++) {
            const uint32_t place = lane() * OWN_NUMBERS + (range < POWERS ? OWN_NUMBERS - 1 - i : i);
            const float value = number_value(c, range * RANGE + place);
            ones[i] = value >= c->least ? 1 : 0;
            weights[i] = value >= c->least ? weight_of(&r->row, value) : 0;
        }
        KILN_UNROLL
        for (uint32_t rank = 0; counts && rank < TEAM_MOST; rank++)
            count += (uint32_t)mass_of(own[rank], ones);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            sums[i % 2][i / 2] = halve_sums(mass_of(own[i], weights), mass_of(own[i + 4], weights), 16);
        const uint64_t even = halve_sums(sums[0][0], sums[0][1], 8), odd = halve_sums(sums[1][0], sums[1][1], 8);
        mass = halve_sums(even, odd, 4); /* of the block of rank lane / LANES */
        mass += kiln_shuffle_xor_64(mass, 2);
        mass += kiln_shuffle_xor_64(mass, 1);
    }
    KILN_UNROLL
    for (uint32_t rank = lane() % LANES; rank < TEAM_MOST; rank += LANES)
        KILN_TEAM_SEND(&r->meeting->masses[lane() / LANES][range], rank, barrier, mass);
    if (counts) {
        count = (uint32_t)subgroup_sum(count);
        if (lane() < TEAM_MOST) KILN_TEAM_SEND_WORD(&r->shared->ranges[range], lane(), barrier, count);
    }
    const uint32_t bytes = (uint32_t)sizeof r->meeting->masses + (counts ? (uint32_t)sizeof r->shared->ranges : 0);
    if (kiln_thread() == 0) KILN_TEAM_EXPECT(barrier, bytes);
}

/* So much of something: in all blocks, in those before this one, and in this one. */
typedef struct portion {
    uint64_t all, before, own;
} portion;

/* What the thread's two ranges weigh in ASKED blocks, from one on. */
typedef struct range_masses {
    uint64_t of[ASKED][2];
} range_masses;

KILN_INLINE range_masses masses_at(const team_row *r, uint32_t rank) {
    range_masses masses;
    KILN_UNROLL
    for (uint32_t k = 0; k < ASKED; k++) {
        masses.of[k][0] = r->meeting->masses[rank + k][2 * lane()];
        masses.of[k][1] = r->meeting->masses[rank + k][2 * lane() + 1];
    }
    return masses;
}

/* Adds up what the thread's two ranges weigh, if they are before this one. */
KILN_INLINE portion ranges_before(const team_row *r, uint32_t range) {
    portion sum = {0, 0, 0};
    KILN_LOOP
    for (uint32_t rank = 0; rank < TEAM_MOST; rank += ASKED) {
        const range_masses masses = masses_at(r, rank);
        KILN_UNROLL
        for (uint32_t k = 0; k < ASKED; k++) {
            const uint64_t value =
                (2 * lane() < range ? masses.of[k][0] : 0) + (2 * lane() + 1 < range ? masses.of[k][1] : 0);
            sum.all += value;
            sum.before += rank + k < r->rank ? value : 0;
            sum.own += rank + k == r->rank ? value : 0;
        }
    }
    return sum;
}

/* What the thread's two ranges have, counted or by weight, in all blocks. */
KILN_INLINE void range_values(uint64_t values[2], const team_row *r, bool ones) {
    values[0] = ones ? r->shared->ranges[2 * lane()] : 0;
    values[1] = ones ? r->shared->ranges[2 * lane() + 1] : 0;
    KILN_LOOP
    for (uint32_t rank = 0; rank < (ones ? 0 : TEAM_MOST); rank += ASKED) {
        const range_masses masses = masses_at(r, rank);
        KILN_UNROLL
        for (uint32_t k = 0; k < ASKED; k++) {
            values[0] += masses.of[k][0];
            values[1] += masses.of[k][1];
        }
    }
}

/* How many elements of a number there are in the blocks before this one, and in this one. */
typedef struct tally {
    uint32_t before, own;
} tally;

/* Where the thread leaves tallies of its numbers. */
KILN_INLINE tally *tallies_of(const team_row *r) {
    return (tally *)r->shared->own + lane() * OWN_NUMBERS;
}

/* Counts those of the thread's numbers of a range, in the order of numbers, in all blocks. Leaves tallies of them in
 * shared memory. */
KILN_INLINE void take_range(uint32_t counts[OWN_NUMBERS], const team_row *r, uint32_t range) {
    tally tallies[OWN_NUMBERS];
    KILN_UNROLL
    for (uint32_t i = 0; i < OWN_NUMBERS; i++)
        counts[i] = tallies[i].before = tallies[i].own = 0;
    KILN_LOOP
    for (uint32_t rank = 0; rank < TEAM_MOST; rank += ASKED) {
        kiln_vector words[ASKED];
        KILN_UNROLL
        for (uint32_t k = 0; k < ASKED; k++)
            words[k] = range_words(r, range, rank + k);
        KILN_UNROLL
        for (uint32_t k = 0; k < ASKED; k++) {
            KILN_UNROLL
            for (uint32_t i = 0; i < OWN_NUMBERS; i++) {
                const uint32_t word = range < POWERS ? words[k].words[OWN_NUMBERS - 1 - i] : words[k].words[i];
                const uint32_t count = count_in(word, range);
                counts[i] += count;
                tallies[i].before += rank + k < r->rank ? count : 0;
                tallies[i].own += rank + k == r->rank ? count : 0;
            }
        }
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < OWN_NUMBERS; i++)
        tallies_of(r)[i] = tallies[i];
    __syncwarp(); /* they need not stay in registers */
}

/* What the block draws from, as a subgroup of it finds out. */
typedef struct ending {
    portion mass;       /* of the choice */
    uint32_t kept, own; /* of the last number's elements in the block: those chosen, and all of them */
} ending;

/* In all threads, the thread in which values before and up to its own, `own` of them, come to `need`. */
KILN_INLINE uint32_t reaching_thread(uint64_t before, uint64_t own, uint64_t need) {
    return (uint32_t)__ffs((int)__ballot_sync(0xffffffffu, before < need && need <= before + own)) - 1;
}

/* Adds up the choice's mass over the subgroup. */
KILN_INLINE void sum_choice(ending *e, portion mass) {
    const portion sums = {subgroup_sum(mass.all), subgroup_sum(mass.before), subgroup_sum(mass.own)};
    e->mass = sums;
}

/* Shortens the choice to its first elements that come to `need`, counted or by weight, of those of a range. */
KILN_INLINE void end_choice(const team_row *r, counting *c, ending *e, uint32_t range, uint64_t need, bool ones) {
    uint32_t counts[OWN_NUMBERS];
    uint64_t weights[OWN_NUMBERS], own = 0, all;
    take_range(counts, r, range);
    KILN_UNROLL
    for (uint32_t i = 0; i < OWN_NUMBERS; i++) {
        weights[i] = weight_of(&r->row, number_value(c, range * RANGE + lane() * OWN_NUMBERS + i));
        own += counts[i] * (ones ? 1 : weights[i]);
    }
    uint64_t before = subgroup_before(own, &all);
    const uint32_t thread = reaching_thread(before, own, need);
    uint32_t last = OWN_NUMBERS, chosen = 0;
    uint64_t rest = 1, each = 1;
    KILN_UNROLL
    for (uint32_t i = 0; i < OWN_NUMBERS; i++) {
        const uint64_t through = before + counts[i] * (ones ? 1 : weights[i]);
        if (last == OWN_NUMBERS && through >= need) {
            last = i;
            rest = need - before;
            each = ones ? 1 : weights[i];
        }
        before = through;
    }
    if (lane() == thread) chosen = (uint32_t)((rest - 1) / each) + 1;
    portion mass = ranges_before(r, range);
    KILN_UNROLL
    for (uint32_t i = 0; i < OWN_NUMBERS; i++) {
        const bool whole = lane() < thread || (lane() == thread && i < last);
        const uint32_t count = whole ? counts[i] : lane() == thread && i == last ? chosen : 0;
        const tally t = tallies_of(r)[i];
        const uint32_t early = lesser(t.before, count), kept = lesser(t.own, count - early);
        mass.all += count * weights[i];
        mass.before += early * weights[i];
        mass.own += kept * weights[i];
        e->kept = i == last ? kept : e->kept;
        e->own = i == last ? t.own : e->own;
    }
    sum_choice(e, mass);
    e->kept = __shfl_sync(0xffffffffu, e->kept, (int)thread);
    e->own = __shfl_sync(0xffffffffu, e->own, (int)thread);
    c->last = range * RANGE + thread * OWN_NUMBERS + __shfl_sync(0xffffffffu, last, (int)thread);
}

/* Finds, by one subgroup, where the choice ends. False: among those that are counted as zeros. */
KILN_INLINE bool find_ending(const team_row *r, counting *c, ending *e, const kiln_filters *filters) {
    e->kept = e->own = 0;
    KILN_LOOP
    for (uint32_t step = filters->top_k ? 0 : 1; step < 2; step++) {
        const bool ones = step == 0;
        if (!ones && filters->top_p == 0.0f) continue;
        uint64_t values[2], all;
        range_values(values, r, ones);
        const uint64_t before = subgroup_before(values[0] + values[1], &all);
        if (c->last != KILN_NOWHERE) all = e->mass.all;
        const uint64_t need = ones ? filters->top_k : kiln_sample_need(filters->top_p, all);
        if (need >= all) continue;
        const uint32_t thread = reaching_thread(before, values[0] + values[1], need);
        const bool second = need > before + values[0];
        const uint32_t range = __shfl_sync(0xffffffffu, 2 * lane() + (second ? 1 : 0), (int)thread);
        const uint64_t rest = need - before - (second ? values[0] : 0);
        end_choice(r, c, e, range, __shfl_sync(0xffffffffu, rest, (int)thread), ones);
    }
    if (c->last == KILN_NOWHERE) {
        sum_choice(e, ranges_before(r, RANGES));
        return true;
    }
    return magnitude_of(c->last) != 0;
}

/* ---- Drawing ---- */

/* The column of the block's element such that those of the block up to it measure more than `rest`, in the one thread
 * that finds it; else KILN_NOWHERE. */
KILN_INLINE uint32_t find_in_block(const team_row *r, const row_measure *m, uint64_t rest) {
    const uint64_t vectors = piece_sum(r, m), own = subgroup_sum(vectors + single_sum(r, m));
    kiln_barrier(); /* the last sums have been read by all */
    if (lane() == 0) r->shared->subgroups[subgroup()] = own;
    kiln_barrier();
    uint64_t before = 0;
    KILN_LOOP
    for (uint32_t i = 0; i < subgroup(); i++)
        before += r->shared->subgroups[i];
    return before <= rest && rest < before + own ? find_in_share(r, m, vectors, rest - before) : KILN_NOWHERE;
}

/* Draws the block's element such that those of the choice up to it weigh more than `rest`, and stores its column. The
 * block has `own` of the last number's elements, and `kept` of these are chosen from. */
KILN_INLINE void draw_in_block(const team_row *r, const counting *c, uint32_t least, uint64_t rest, uint32_t kept,
                               uint32_t own) {
    kiln_choice choice = {least, least ? r->place.cols : 0, 0xffffffffu};
    if (c->last != KILN_NOWHERE) {
        choice.key = kiln_order_key(number_value(c, c->last));
        choice.end = kept == own ? r->place.cols : 0;
        if (kept && !choice.end) {
            const kiln_choice equal = {choice.key, r->place.cols, choice.key};
            const row_measure m = measure_of(&r->row, equal, KILN_COUNT);
            const uint32_t col = find_in_block(r, &m, kept - 1);
            if (col != KILN_NOWHERE) r->shared->found = col;
            kiln_barrier();
            choice.end = r->shared->found + 1;
        }
    }
    const row_measure m = measure_of(&r->row, choice, KILN_WEIGHT);
    const uint32_t col = find_in_block(r, &m, rest);
    if (col != KILN_NOWHERE) r->piece->args->y[kiln_block()] = (int32_t)col;
}

/* Counts the row and sets the filters. False: counts do not suffice. */
KILN_INLINE bool count_suitably(team_row *r, counting *c, const kiln_row_options *options, kiln_filters *filters) {
    const uint64_t zeros = 1ull << 32;
    c->base = LIKELY_BASE;
    KILN_LOOP
    for (uint32_t tries = 0; tries < 2; tries++) {
        const uint64_t counted = count_row(r, c->base, zeros);
        const uint32_t greatest = (uint32_t)counted;
        if (!greatest) return true;
        *filters = kiln_filters_of(&r->row, *options, greatest);
        if (r->row.max == KILN_INFINITY) return false;
        c->least = filters->least ? kiln_order_value(filters->least) : -KILN_INFINITY;
        if (is_suitable(c, &r->row, options->temperature, (counted & zeros) != 0)) return true;
        if ((int32_t)c->base <= 0) return false;
        kiln_barrier(); /* what is counted again has been read by all */
    }
    return false;
}

/* Finds out what the block draws from, by one subgroup, and leaves it in shared memory: what is told is how much of the
 * choice weighs less than the drawn element, in this block, or that it is in another; how many of the last number's
 * elements are chosen, and are there; and the last number, and whether the counts suffice. */
KILN_INLINE void end_counted(const team_row *r, counting *c) {
    exchange *shared = r->shared;
    ending e;
    team_take(r);
    const bool suffices = find_ending(r, c, &e, &shared->filters);
    const uint64_t rest = kiln_scaled(shared->bits, e.mass.all) - e.mass.before;
    if (lane() != 0) return;
    shared->told[0] = rest < e.mass.own ? rest : ~0ull;
    shared->told[1] = (uint64_t)e.kept << 32 | e.own;
    shared->told[2] = (uint64_t)c->last << 32 | (suffices ? 1 : 0);
}

/* Chooses a column and stores it. False: counts do not suffice, and have been read by all blocks. */
KILN_INLINE bool sample_counted(team_row *r, const kiln_row_options *options) {
    counting c = {0.0f, 0, KILN_NOWHERE};
    kiln_filters filters = {0, 0, 0.0f};
    exchange *shared = r->shared;
    if (kiln_thread() == 0) shared->bits = kiln_sample_bits(r->piece->args, kiln_block());
    bool suffices = count_suitably(r, &c, options, &filters);
    if (suffices && r->row.inverse_temperature == 0.0f) {
        if (kiln_thread() == 0 && r->rank == 0) r->piece->args->y[kiln_block()] = -1;
        return true;
    }
    keep_row(r, &filters);
    if (suffices) {
        give_range(r, &c, filters.top_k != 0);
        if (subgroup() == 0) end_counted(r, &c);
        if (kiln_thread() == 0) shared->turn = *r->turn;
        kiln_barrier();
        suffices = (uint32_t)shared->told[2] != 0;
        c.last = (uint32_t)(shared->told[2] >> 32);
    }
    if (!suffices) KILN_TEAM_SYNC();
    resident_again(r);
    if (!suffices) return false;
    const bool ends = c.last != KILN_NOWHERE;
    if (ends) kiln_sm90a_cluster_arrive(); /* has read the counts of other blocks */
    if (shared->told[0] != ~0ull)
        draw_in_block(r, &c, shared->filters.least, shared->told[0], (uint32_t)(shared->told[1] >> 32),
                      (uint32_t)shared->told[1]);
    if (ends) kiln_sm90a_cluster_wait();
    return true;
}

#endif
