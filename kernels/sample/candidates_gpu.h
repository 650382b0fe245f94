/* The fast way of sample: the elements that the filters can keep are few, and are sorted in shared memory.
 *
 * A thread's vectors are up to 16 groups, whose greatest elements the first pass finds. As many groups as top-k keeps
 * elements have one that is at least a bound, so no element below it is kept; those that are not below it are hardly
 * more than top-k, since few groups have two of them. They are the candidates: only their groups are read again. For
 * min-p the bound is known. With top-p alone the bound is that of some hundred groups, and the candidates may turn out
 * not to suffice. */
#ifndef KILN_KERNELS_SAMPLE_CANDIDATES_GPU_H
#define KILN_KERNELS_SAMPLE_CANDIDATES_GPU_H

#include "kernels/sample/row_gpu.h"

/* Vectors that a thread has in flight. */
#ifndef LOADS
#define LOADS 4
#endif

enum {
    LIKELY_GROUPS = 128 /* at most, for top-p alone */
};

/* A thread has LOADS vectors at a time, of which each is in a group of its own, and 1 << rounds_log2 such rounds in the
 * same groups. */
KILN_INLINE void divide_groups(team_row *r) {
    uint32_t rounds = (r->place.each + LOADS * KILN_SUBGROUP - 1) / (LOADS * KILN_SUBGROUP);
    r->groups = lesser(rounds * LOADS, GROUPS);
    KILN_LOOP
    while (r->place.each > (uint32_t)GROUPS * KILN_SUBGROUP << r->rounds_log2)
        r->rounds_log2++;
}

/* The vector of a thread's group that is the next but `round` there; the row's share may have ended before it. */
KILN_INLINE uint32_t group_vector(const team_row *r, uint32_t group, uint32_t round) {
    return ((group / LOADS << r->rounds_log2) + round) * LOADS + group % LOADS;
}

/* The greatest of some elements: of 16 bits in the halves of a word where the device compares these at once. */
#if KILN_PAIRS_COMPARED
typedef uint32_t group_max;

KILN_INLINE group_max group_none(void) {
    return KILN_ELEMENT_NEGATIVE_INFINITY * 0x10001u;
}

KILN_INLINE group_max group_take(group_max max, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        max = kiln_pair_max(max, vector.words[i]);
    return max;
}

KILN_INLINE float group_value(group_max max) {
    float values[2];
    kiln_pair_values(values, max);
    return kiln_fast_max(values[0], values[1]);
}
#else
typedef float group_max;

KILN_INLINE group_max group_none(void) {
    return -KILN_INFINITY;
}

KILN_INLINE group_max group_take(group_max max, kiln_vector vector) {
    float values[KILN_VECTOR];
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        max = kiln_fast_max(values[i], max);
    return max;
}

KILN_INLINE float group_value(group_max max) {
    return max;
}
#endif

/* Finds the greatest element of each of the thread's groups, up to the last one that has any; -inf where one has none.
 * Where a round goes beyond the thread's last vector, that one is taken again. Returns the thread's greatest key. */
KILN_INLINE uint32_t take_groups(const team_row *r) {
    group_max max[LOADS];
    float greatest = -KILN_INFINITY;
    uint32_t first = own_share(r) * r->place.each + lane(),
             last = lesser(first - lane() + r->place.each, r->place.vectors);
    uint32_t own = first < last ? (last - first + KILN_SUBGROUP - 1) / KILN_SUBGROUP : 0, single = r->single;
    KILN_LOOP
    for (uint32_t group = 0; group < r->groups; group += LOADS) {
        KILN_UNROLL
        for (uint32_t k = 0; k < LOADS; k++)
            max[k] = group_none();
        KILN_LOOP
        for (uint32_t round = 0; round < 1u << r->rounds_log2 && group_vector(r, group, round) < own; round++) {
            kiln_vector vectors[LOADS];
            uint32_t at = group_vector(r, group, round);
            KILN_UNROLL
            for (uint32_t k = 0; k < LOADS; k++)
                vectors[k] = vector_at(r, first + lesser(at + k, own - 1) * KILN_SUBGROUP);
            KILN_UNROLL
            for (uint32_t k = 0; k < LOADS; k++)
                max[k] = group_take(max[k], vectors[k]);
        }
        KILN_UNROLL
        for (uint32_t k = 0; k < LOADS; k++) {
            float value = group_value(max[k]);
            greatest = kiln_fast_max(value, greatest);
            r->shared->groups[group + k][kiln_thread()] = group_vector(r, group, 0) + k < own ? value : -KILN_INFINITY;
        }
    }
    if (single < r->place.cols) greatest = kiln_fast_max(value_at(r, single), greatest);
    return kiln_sample_key(greatest);
}

/* Groups of which a thread has the keys: its own, or one of its like in each block of the team. */
KILN_INLINE uint32_t group_count(const team_row *r) {
    return r->team > 1 ? r->team : r->groups;
}

/* The upper half of the key of a group's greatest element. */
KILN_INLINE uint32_t group_key(const team_row *r, uint32_t group) {
    return r->team > 1 ? r->meeting->greatest[group][kiln_thread()]
                       : kiln_sample_key(r->shared->groups[group][kiln_thread()]) >> 16;
}

/* Whether so many groups, in the lower 16 bits, of such weight, in the upper ones, suffice. */
KILN_INLINE bool is_enough(uint64_t sum, uint32_t wanted, uint64_t need) {
    return (uint32_t)(sum & 0xffff) >= wanted || (need && sum >> 16 >= need);
}

/* A key that the greatest elements of at least `wanted` groups reach, and of few more, or of so many that
 * these elements weigh `need` units of 2^-24, if that is not 0; 0 if there are not so many groups. No element's key
 * exceeds `greatest`. The counts are 0 at first.
 *
 * Where a team is several blocks, the elements of a thread are a group here, of all blocks. Groups are counted by how
 * far the upper 16 bits of their keys are below those of the greatest, which most often is
 * less than there are counts. If it is not, they are counted by the bits above the lowest 8 of this distance first. */
KILN_INLINE uint32_t group_bound(const team_row *r, uint32_t greatest, uint32_t wanted, uint64_t need) {
    exchange *shared = r->shared;
    uint32_t base = 0;
    KILN_LOOP
    for (uint32_t shift = 0;;) {
        KILN_LOOP
        for (uint32_t group = 0; group < group_count(r); group++) {
            uint32_t key = group_key(r, group);
            uint32_t count = ((greatest >> 16) - key - base) >> shift;
            if (key && count < KILN_BLOCK) kiln_shared_add(&shared->counts[count], 1);
        }
        kiln_barrier();
        /* Counts are below 2^16; above them is a lower bound of what the elements weigh, in units of 2^-24. */
        float value = kiln_order_value(((greatest >> 16) - base - kiln_thread()) << 16);
        float exponent = kiln_sample_exponent(&r->row, value) * KILN_LOG2_E;
        uint32_t less = exponent > -24.0f ? (uint32_t)(1.0f - exponent) : 25;
        uint64_t own = shared->counts[kiln_thread()], all;
        own += own << (40 - less) >> 16 << 16;
        uint64_t before = sum_before(shared, own, &all);
        if (is_enough(before + own, wanted, need) && !is_enough(before, wanted, need)) {
            shared->found = kiln_thread();
            shared->through = before;
        }
        bool enough = is_enough(all, wanted, need);
        if (!enough && anew(kiln_thread()) == 0) shared->found = shared->through = 0;
        shared->counts[kiln_thread()] = 0;
        kiln_barrier();
        if (shift == 0 && enough) return ((greatest >> 16) - base - shared->found) << 16;
        if (shift && !enough) return 0;
        base = shift ? shared->found << shift : 0;
        wanted -= shift ? (uint32_t)shared->through & 0xffff : 0;
        shift = shift ? 0 : 8;
        need = 0;
        kiln_barrier(); /* what was found has been read by all */
    }
}

/* Adds the ranks of a vector's elements, the first of which is in this column, whose keys are not less than `least`: to
 * *count candidates, of which those up to `most` are kept. */
KILN_INLINE void take_vector(kiln_vector vector, uint32_t col, uint32_t least, uint32_t *count, uint64_t *ranks,
                             uint32_t most) {
    float values[KILN_VECTOR];
    uint32_t hits = 0;
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (uint32_t k = 0; k < KILN_VECTOR; k++)
        hits += kiln_sample_key(values[k]) >= least ? 1 : 0;
    if (!hits) return;
    uint32_t place = kiln_shared_add(count, hits);
    KILN_UNROLL
    for (uint32_t k = 0; k < KILN_VECTOR; k++) {
        uint32_t key = kiln_sample_key(values[k]);
        if (key < least) continue;
        if (place < most) ranks[place] = kiln_rank_of(key, col + k);
        place++;
    }
}

/* Leaves the block's elements whose keys reach the bound in its shared memory, the first RANKS of them. Returns how
 * many there are, or more than RANKS. */
KILN_INLINE uint32_t take_candidates(const team_row *r, uint32_t bound) {
    uint32_t log2 = r->rounds_log2, least = bound ? bound : 1;
    exchange *shared = r->shared;
    KILN_LOOP
    for (uint32_t group = 0; group < r->groups; group++) {
        if (kiln_sample_key(shared->groups[group][kiln_thread()]) < least) continue;
        uint32_t place = kiln_shared_add(&shared->listed, 1);
        if (place < RANKS) shared->list[place] = (uint16_t)(group * KILN_BLOCK + kiln_thread());
    }
    kiln_barrier(); /* the candidates take the place of the groups */
    if (shared->listed > RANKS) return shared->listed;
    uint32_t vectors = shared->listed << log2,
             singles = r->place.cols - r->place.vectors * KILN_VECTOR ? KILN_BLOCK : 0;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < vectors + singles; i += KILN_BLOCK) {
        uint32_t col = r->single; /* at last */
        kiln_vector vector = single_vector(r, col);
        if (i < vectors) {
            uint32_t item = shared->list[i >> log2], thread = item % KILN_BLOCK, round = i & ((1u << log2) - 1);
            uint32_t share = r->rank * KILN_SUBGROUPS + thread / KILN_SUBGROUP;
            uint32_t number = share * r->place.each + thread % KILN_SUBGROUP +
                              group_vector(r, item / KILN_BLOCK, round) * KILN_SUBGROUP;
            if (number >= lesser(share * r->place.each + r->place.each, r->place.vectors)) continue;
            vector = vector_at(r, number);
            col = vector_col(r, number);
        }
        take_vector(vector, col, least, &shared->count, shared->ranks, RANKS);
    }
    kiln_barrier();
    return shared->count;
}

/* Brings the candidates of all blocks together in the first one. Returns how many there are in all; more than RANKS:
 * too many. */
KILN_INLINE uint32_t gather_candidates(const team_row *r, uint32_t count) {
    if (r->team == 1) return count;
    const uint64_t *counts = team_share(r, count);
    uint64_t all = 0, before = 0;
    KILN_LOOP
    for (uint32_t rank = 0; rank < r->team; rank++) {
        before = rank == r->rank ? all : before;
        all += counts[rank * KILN_SUBGROUPS];
    }
    if (all > RANKS) return RANKS + 1;
    if (r->rank) {
        KILN_LOOP
        for (uint32_t i = kiln_thread(); i < count; i += KILN_BLOCK)
            KILN_TEAM_SEND(&r->shared->ranks[before + i], 0, &r->meeting->gathered, r->shared->ranks[i]);
    } else {
        if (kiln_thread() == 0)
            KILN_TEAM_EXPECT(&r->meeting->gathered, (uint32_t)(all - count) * (uint32_t)sizeof(uint64_t));
        KILN_TEAM_WAIT(&r->meeting->gathered, 0);
    }
    return (uint32_t)all;
}

/* Candidates in shared memory, those who draw from them, which are a block or a subgroup, and what these find: the last
 * rank that a filter keeps, what is kept weighs, and the column. */
typedef struct pool {
    uint64_t *ranks, *weights, *sums, *kept, *sum;
    uint32_t *found;
    uint32_t thread, threads;
} pool;

KILN_INLINE void pool_sync(const pool *p) {
    if (p->threads == KILN_SUBGROUP)
        subgroup_sync();
    else
        kiln_barrier();
}

/* The sum over the 1 << lanes_log2 threads that share a candidate. */
KILN_INLINE uint64_t candidate_sum(uint64_t part, uint32_t lanes_log2) {
    KILN_LOOP
    for (uint32_t i = 0; i < lanes_log2; i++)
        part += kiln_shuffle_xor_64(part, 1u << i);
    return part;
}

/* Draws from count candidates. total is the sum of the weights of all that is chosen from, if there may be others than
 * the candidates, else 0. Returns the column; KILN_NOWHERE: the candidates do not suffice.
 *
 * Each candidate is compared with all the others, by up to eight threads: what the greater ones weigh tells which are
 * kept, and what those in lower columns weigh, which of them is drawn. Together they weigh at most 2^49, so that a sum
 * counts them in its bits from 50 on. */
KILN_INLINE uint32_t draw(const kiln_row *row, const pool *p, kiln_filters filters, uint64_t bits, uint32_t count,
                          uint64_t total) {
    const uint64_t one = 1ull << 50;
    uint32_t kept = filters.top_k && filters.top_k < count ? filters.top_k : count, lanes_log2 = 0;
    KILN_LOOP
    while (lanes_log2 < 3 && count << (lanes_log2 + 1) <= p->threads)
        lanes_log2++;
    uint32_t each = p->threads >> lanes_log2, step = AHEAD << lanes_log2, place = p->thread >> lanes_log2;
    uint32_t part = p->thread & ((1u << lanes_log2) - 1);
    KILN_LOOP
    for (uint32_t own = p->thread; own < count + step; own += p->threads) {
        uint64_t rank = own < count ? p->ranks[own] : 0;
        float weight = kiln_sample_weight(row, kiln_order_value(kiln_rank_key(rank)));
        p->ranks[own] = rank;
        p->weights[own] = own < count ? (uint64_t)weight + one : 0;
    }
    pool_sync(p);
    KILN_LOOP
    for (uint32_t first = 0; first < count; first += each) {
        uint32_t own = lesser(first + place, count);
        uint64_t rank = p->ranks[own], sum = 0;
        KILN_LOOP
        for (uint32_t i = part; i < count + part; i += step) {
            KILN_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++) {
                uint32_t other = i + (k << lanes_log2);
                sum += p->ranks[other] > rank ? p->weights[other] : 0;
            }
        }
        sum = candidate_sum(sum, lanes_log2) + p->weights[own];
        if (own == count || part) continue;
        p->sums[own] = sum & (one - 1);
        if (sum / one == kept) {
            p->kept[0] = rank;
            p->sum[0] = sum & (one - 1);
        }
    }
    pool_sync(p);
    uint64_t least = p->kept[0], sum = p->sum[0];
    if (filters.top_p != 0.0f) {
        uint64_t need = kiln_sample_need(filters.top_p, total ? total : sum);
        if (need > sum) return KILN_NOWHERE;
        KILN_LOOP
        for (uint32_t own = p->thread; own < count; own += p->threads) {
            uint64_t through = p->sums[own];
            if (need <= through && through - (p->weights[own] & (one - 1)) < need) {
                p->kept[1] = p->ranks[own];
                p->sum[1] = through;
            }
        }
        pool_sync(p);
        least = p->kept[1];
        sum = p->sum[1];
    }
    uint64_t rest = kiln_scaled(bits, sum);
    KILN_LOOP
    for (uint32_t first = 0; first < count; first += each) {
        uint32_t own = lesser(first + place, count);
        uint64_t rank = p->ranks[own], before = 0;
        KILN_LOOP
        for (uint32_t i = part; i < count + part; i += step) {
            KILN_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++) {
                uint64_t other = p->ranks[i + (k << lanes_log2)];
                bool counts = other >= least && (uint32_t)other > (uint32_t)rank;
                before += counts ? p->weights[i + (k << lanes_log2)] : 0;
            }
        }
        before = candidate_sum(before, lanes_log2) & (one - 1);
        bool drawn = rank >= least && before <= rest && rest < before + (p->weights[own] & (one - 1));
        if (drawn && !part) *p->found = kiln_rank_place(rank);
    }
    pool_sync(p);
    return *p->found;
}

#if defined(__HIP__)
KILN_INLINE bool is_light(const kiln_row *row, exchange *shared, uint32_t count, uint64_t need) {
    (void)row, (void)shared, (void)count, (void)need;
    return false;
}

KILN_INLINE bool kiln_row_peaked(const kiln_row *row) {
    (void)row;
    return true;
}
#else
/* Whether the candidates of the block weigh less than so much. */
KILN_INLINE bool is_light(const kiln_row *row, exchange *shared, uint32_t count, uint64_t need) {
    uint64_t sum = 0, all;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < count; i += KILN_BLOCK)
        sum += kiln_sample_units(row, kiln_order_value(kiln_rank_key(shared->ranks[i])));
    sum_before(shared, sum, &all);
    return all < need;
}

/* Groups' greatest elements that weigh w each, of sum s and with squares of sum q, are as if they were s^2 / q equal
 * ones. If that is more than LIKELY_GROUPS, those so many weigh less than most of the row. */
KILN_INLINE bool kiln_row_peaked(const kiln_row *row) {
    const team_row *r = (const team_row *)(const void *)row;
    uint64_t own = 0, all;
#if defined(KILN_PART_bf16)
    if (r->team > 1) return false; /* counted_sm90a.h has counted it, or cannot */
#endif
    KILN_LOOP
    for (uint32_t group = 0; group < group_count(r); group++) {
        float value = kiln_order_value(group_key(r, group) << 16);
        float weight = kiln_fast_exp2(kiln_fast_max(kiln_sample_exponent(row, value) * KILN_LOG2_E, -20.0f));
        own += (uint32_t)(weight * 0x1p16f) + ((uint64_t)(uint32_t)(weight * weight * 0x1p16f) << 32);
    }
    sum_before(r->shared, own, &all);
    float sum = (float)(uint32_t)all;
    return sum * sum <= (float)(uint32_t)(all >> 32) * (0x1p16f * LIKELY_GROUPS);
}
#endif

KILN_INLINE uint32_t kiln_row_few(const kiln_row *row, const kiln_filters *filters, uint64_t all,
                                  const uint64_t *bits) {
    const team_row *r = (const team_row *)(const void *)row;
    bool only_top_p = all != 0;
    uint64_t need = only_top_p ? (uint64_t)((float)(all >> 16) * filters->top_p) + 1 : 0;
    uint32_t wanted = only_top_p ? LIKELY_GROUPS : filters->top_k, bound = 0;
    if (wanted == 1) bound = kiln_order_key(row->max);
    if (wanted > 1) bound = group_bound(r, kiln_order_key(row->max), wanted, need);
    bound = filters->least > bound ? filters->least : bound;
    if (bound == 0 && r->place.cols > RANKS) return KILN_NOWHERE;
    uint32_t count = gather_candidates(r, take_candidates(r, bound)), col = 0;
    if (count > RANKS) return KILN_NOWHERE;
    exchange *shared = r->shared;
    const pool p = {shared->ranks, shared->weights, shared->sums,  shared->kept,
                    shared->sum,   &shared->found,  kiln_thread(), KILN_BLOCK};
    const bool light =
        r->rank == 0 && only_top_p && is_light(row, shared, count, kiln_sample_need(filters->top_p, all));
    if (light) col = KILN_NOWHERE;
    if (r->rank == 0 && !light) col = draw(row, &p, *filters, *bits, count, only_top_p ? all : 0);
    if (only_top_p && r->team > 1) col = (uint32_t)team_share(r, col)[0];
    return col;
}

/* The column that a block chooses of a row; -1 if there is none. */
KILN_INLINE int32_t sample_row(const kiln_sample_args *args, exchange *shared, uint64_t number) {
    const kiln_element *x = (const kiln_element *)args->x + number * (uint64_t)args->x_stride;
    kiln_row_options options = kiln_options_of(args, number);
    uint32_t turn = 0;
    team_row r = {{x, args->cols, 0.0f, 0.0f}, place_of(x, args->cols, 1), shared, NULL, 1, 0, 0, 0, 0, &turn, NULL};
    r.single = single_col(&r);
    divide_groups(&r);
    if (anew(kiln_thread()) == 0) {
        shared->place = r.place;
        shared->listed = shared->count = 0;
    }
    shared->counts[kiln_thread()] = 0;
    const uint32_t own = take_groups(&r);
    team_give(&r, subgroup_greatest(own), 0);
    if (anew(kiln_thread()) == 0) shared->bits = kiln_sample_bits(args, number); /* while others give */
    const uint32_t greatest = greatest_share(&r, team_take(&r));
    if (!uniform(greatest)) return -1;
    kiln_filters filters = kiln_filters_of(&r.row, options, greatest);
    r.place = shared->place;
    r.row.cols = r.place.cols;
    const uint64_t bits = shared->bits;
    return (int32_t)kiln_choose(&r.row, &filters, &bits);
}

#endif
