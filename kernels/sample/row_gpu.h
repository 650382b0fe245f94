/* A row of sample on a device: the functions of choice.h for its team, the threads that share it. A team is a block or,
 * where a tuned source has them, the blocks of a cluster.
 *
 * The row's subgroups have shares of it, one behind the other: whole vectors, and single elements at its ends if it is
 * not aligned. What a pass over the row finds for each share goes to all blocks of the team; every block then goes on
 * with the same numbers. The results do not depend on the order of threads, or on how many share a row.
 *
 * Where a team is several blocks, what they give each other is sent into the shared memory of all of them, and counted
 * there by a barrier that expects so many bytes: a barrier of the cluster that orders memory takes each time as long as
 * a write to global memory.
 *
 * The includer may define
 *
 * KILN_TEAM_RANK()                          which block of its cluster this one is
 * KILN_TEAM_SYNC()                          the barrier of the cluster
 * KILN_TEAM_SHARED(pointer, rank)           where another block has what this one has at the pointer
 * KILN_TEAM_SEND(pointer, rank, barrier, value)
 *                                           stores 8 bytes there, and counts them at that block's barrier
 * KILN_TEAM_SEND_VECTOR(pointer, rank, barrier, from)
 *                                           the same with 16 bytes, from this block's shared memory
 * KILN_TEAM_EXPECT(barrier, bytes), KILN_TEAM_WAIT(barrier, parity)
 *                                           by one thread, and by all: until so many have come */
#ifndef KILN_KERNELS_SAMPLE_ROW_GPU_H
#define KILN_KERNELS_SAMPLE_ROW_GPU_H

#include "kernels/common/atomic.h"
#include "kernels/common/combine.h"
#include "kernels/common/global.h"
#include "kernels/common/pairs.h"
#include "kernels/common/rank.h"
#include "kernels/common/values.h"

#define KILN_ROW_FEW
#include "kernels/sample/choice.h"
#include "kernels/sample/units_gpu.h"

#ifndef KILN_TEAM_RANK
#define KILN_TEAM_RANK()                0
#define KILN_TEAM_SYNC()                kiln_barrier()
#define KILN_TEAM_SHARED(pointer, rank) (pointer)
#define KILN_TEAM_SEND(pointer, rank, barrier, value)
#define KILN_TEAM_SEND_VECTOR(pointer, rank, barrier, from)
#define KILN_TEAM_EXPECT(barrier, bytes)
#define KILN_TEAM_WAIT(barrier, parity)
#endif

/* How many bits of a key follow from the others. */
#if defined(KILN_PART_f32)
#define KEY_LOW 0
#elif defined(KILN_PART_f16)
#define KEY_LOW 13
#else
#define KEY_LOW 16
#endif

enum {
    TEAM_MOST = 8,                       /* blocks */
    SHARES = TEAM_MOST * KILN_SUBGROUPS, /* of a row */
    BINS_LOG2 = 11,                      /* of keys */
    BINS = 1 << BINS_LOG2,
    AHEAD = 4,                             /* elements or vectors that a thread has in flight */
    GROUPS = KILN_BLOCK_LOG2 > 9 ? 8 : 16, /* of a thread's vectors */
    RANKS = 512,
    RANKS_PAST = AHEAD << 3, /* that draw reads beyond them */
    VECTORS_OF_UNITS = UNITS_MOST / KILN_VECTOR
};

/* Where a row is, and how it is divided. */
typedef struct row_place {
    const kiln_element *x;
    uint32_t cols;
    uint32_t head; /* elements before the first vector */
    uint32_t vectors;
    uint32_t each; /* vectors of a share */
} row_place;

/* Shared memory of a block. */
typedef struct exchange {
    union {
        uint32_t bins[2][BINS];           /* sums, their lower halves and their upper ones */
        float groups[GROUPS][KILN_BLOCK]; /* the greatest element of each */
        struct {
            uint64_t ranks[RANKS + RANKS_PAST]; /* of the candidates */
            uint64_t weights[RANKS + RANKS_PAST];
            uint64_t sums[RANKS];
        };
    };
    union {
        uint64_t threads[KILN_BLOCK];
        uint32_t counts[KILN_BLOCK];
    };
    uint64_t shares[2][SHARES];
    uint64_t subgroups[KILN_SUBGROUPS];
    row_place place;
    uint64_t bits; /* the row's random bits */
    uint64_t through;
    uint64_t kept[2], sum[2]; /* the last rank that a filter keeps, and what is kept weighs */
    uint32_t found;
    uint32_t listed, count; /* of the list and of the candidates */
    uint16_t list[RANKS];   /* groups that may have candidates */
} exchange;

/* More of it, where a team is several blocks: what the others send. */
typedef struct meeting {
    uint16_t greatest[TEAM_MOST][KILN_BLOCK]; /* the upper halves of the keys of each thread's greatest element */
    uint16_t own[KILN_BLOCK];                 /* those of this block */
    uint64_t shared[2], gathered;             /* barriers: of the shares, of candidates */
} meeting;

/* A row, and its team. */
typedef struct team_row {
    kiln_row row;
    row_place place;
    exchange *shared;
    meeting *meeting; /* of several blocks */
    uint32_t team, rank;
    uint32_t groups, rounds_log2; /* candidates_gpu.h */
    uint32_t *turn;               /* how often shares have been given: they alternate */
} team_row;

KILN_INLINE void team_sync(uint32_t team) {
    if (team == 1)
        kiln_barrier();
    else
        KILN_TEAM_SYNC();
}

KILN_INLINE uint32_t team_rank(uint32_t team) {
    return team == 1 ? 0 : KILN_TEAM_RANK();
}

KILN_INLINE uint32_t lane(void) {
    return kiln_thread() % KILN_SUBGROUP;
}

KILN_INLINE uint32_t subgroup(void) {
    return kiln_thread() / KILN_SUBGROUP;
}

/* The barrier of a subgroup, with its shared memory. */
KILN_INLINE void subgroup_sync(void) {
#if defined(__CUDACC__)
    __syncwarp();
#else
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#endif
}

KILN_INLINE uint32_t lesser(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

KILN_INLINE row_place place_of(const kiln_element *x, uint32_t cols, uint32_t team) {
    uint32_t past = (uint32_t)((uint64_t)x / sizeof(kiln_element)) % KILN_VECTOR, shares = team * KILN_SUBGROUPS;
    uint32_t head = lesser((KILN_VECTOR - past) % KILN_VECTOR, cols), vectors = (cols - head) / KILN_VECTOR;
    row_place place = {x, cols, head, vectors, (vectors + shares - 1) / shares};
    return place;
}

KILN_INLINE uint32_t vector_col(const team_row *r, uint32_t vector) {
    return r->place.head + vector * KILN_VECTOR;
}

KILN_INLINE kiln_vector vector_at(const team_row *r, uint32_t vector) {
    return kiln_vector_load(KILN_GLOBAL(const kiln_element, r->place.x) + vector_col(r, vector));
}

/* The first column of a share. */
KILN_INLINE uint32_t share_col(const team_row *r, uint32_t share) {
    return share ? vector_col(r, lesser(share * r->place.each, r->place.vectors)) : 0;
}

/* The first column after a share. */
KILN_INLINE uint32_t share_end(const team_row *r, uint32_t share) {
    return share + 1 < r->team * KILN_SUBGROUPS ? share_col(r, share + 1) : r->place.cols;
}

/* The share of the thread's subgroup. */
KILN_INLINE uint32_t own_share(const team_row *r) {
    return r->rank * KILN_SUBGROUPS + subgroup();
}

/* The column of the single element that the thread has; cols: it has none. */
KILN_INLINE uint32_t single_col(const team_row *r) {
    uint32_t share = own_share(r), thread = lane();
    uint32_t end = vector_col(r, r->place.vectors), col = r->place.cols;
    if (share == 0 && thread < r->place.head) col = thread;
    if (share == r->team * KILN_SUBGROUPS - 1 && thread < r->place.cols - end) col = end + thread;
    return col;
}

KILN_INLINE float value_at(const team_row *r, uint32_t col) {
    return kiln_element_to_f32(KILN_GLOBAL(const kiln_element, r->place.x)[col]);
}

/* ---- Across a block and a team ---- */

/* The sum of the values of the threads of the subgroup before this one; *all is that of all of them. */
KILN_INLINE uint64_t subgroup_before(uint64_t value, uint64_t *all) {
    uint64_t before = 0;
    KILN_LOOP
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2) {
        uint64_t other = kiln_shuffle_xor_64(value, mask);
        before += lane() & mask ? other : 0;
        value += other;
    }
    *all = value;
    return before;
}

/* The sum of the values of the threads before this one; *all is that of all. */
KILN_INLINE uint64_t sum_before(exchange *shared, uint64_t value, uint64_t *all) {
    uint64_t sum, before = subgroup_before(value, &sum);
    kiln_barrier(); /* the last values have been read by all */
    if (lane() == 0) shared->subgroups[subgroup()] = sum;
    kiln_barrier();
    *all = 0;
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_SUBGROUPS; i++) {
        before += i < subgroup() ? shared->subgroups[i] : 0;
        *all += shared->subgroups[i];
    }
    return before;
}

/* The first of count values such that they sum to more than `rest` up to and including it; *through is that sum. count
 * if all together have no more. */
KILN_INLINE uint32_t find_share(exchange *shared, const uint64_t *values, uint32_t count, uint64_t rest,
                                uint64_t *through) {
    uint32_t each = (count + KILN_BLOCK - 1) / KILN_BLOCK, i = kiln_thread() * each, last = lesser(i + each, count);
    uint64_t sum = 0, all;
    KILN_LOOP
    for (uint32_t k = i; k < last; k++)
        sum += values[k];
    uint64_t before = sum_before(shared, sum, &all);
    if (before <= rest && rest < before + sum) {
        KILN_LOOP
        while (before + values[i] <= rest)
            before += values[i++];
        shared->found = i;
        shared->through = before + values[i];
    }
    if (rest >= all && kiln_thread() == 0) {
        shared->found = count;
        shared->through = all;
    }
    kiln_barrier();
    *through = shared->through;
    return shared->found;
}

/* Gives all blocks of the team a value of each subgroup. Returns them, which stay until the next call but one. What the
 * block wrote to its own memory before is seen by all its threads. more: bytes that each block is sent besides. */
KILN_INLINE const uint64_t *team_share(const team_row *r, uint64_t value, uint32_t more) {
    uint32_t share = own_share(r), turn = (*r->turn)++;
    uint64_t *shares = r->shared->shares[turn % 2];
    if (r->team == 1) {
        if (lane() == 0) shares[share] = value;
        kiln_barrier();
        return shares;
    }
    kiln_barrier(); /* what others will send over has been read */
    if (lane() < r->team) KILN_TEAM_SEND(&shares[share], lane(), &r->meeting->shared[turn % 2], value);
    if (kiln_thread() == 0)
        KILN_TEAM_EXPECT(&r->meeting->shared[turn % 2], r->team * KILN_SUBGROUPS * (uint32_t)sizeof *shares + more);
    KILN_TEAM_WAIT(&r->meeting->shared[turn % 2], turn / 2 % 2);
    return shares;
}

KILN_INLINE uint32_t subgroup_greatest(uint32_t value) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2) {
        uint32_t other = kiln_bits(kiln_shuffle_xor(kiln_float(value), mask));
        value = other > value ? other : value;
    }
    return value;
}

/* The greatest of the values of the team's threads. */
KILN_INLINE uint32_t team_greatest(const team_row *r, uint32_t value, uint32_t more) {
    const uint64_t *shares = team_share(r, subgroup_greatest(value), more);
    KILN_LOOP
    for (uint32_t i = lane(); i < r->team * KILN_SUBGROUPS; i += KILN_SUBGROUP)
        value = shares[i] > value ? (uint32_t)shares[i] : value;
    return subgroup_greatest(value);
}

KILN_INLINE uint64_t subgroup_sum(uint64_t value) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
        value += kiln_shuffle_xor_64(value, mask);
    return value;
}

/* The sum of the values of the team's threads. */
KILN_INLINE uint64_t team_sum(const team_row *r, uint64_t value) {
    const uint64_t *shares = team_share(r, subgroup_sum(value), 0);
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t i = lane(); i < r->team * KILN_SUBGROUPS; i += KILN_SUBGROUP)
        sum += shares[i];
    return subgroup_sum(sum);
}

/* ---- Passes over the row ---- */

/* How a choice is measured: a choice in numbers instead of keys, and what the factor and the addend make of a weight.
 */
typedef struct row_measure {
    kiln_row row;
    float least, most;
    uint32_t end;
    float factor, addend;
} row_measure;

KILN_INLINE row_measure measure_of(const kiln_row *row, kiln_choice choice, kiln_measure measure) {
    row_measure m = {*row, -KILN_INFINITY, KILN_INFINITY, choice.end, 1.0f, 0.0f};
    if (choice.key) m.least = kiln_order_value(choice.key);
    if (choice.most != 0xffffffffu) m.most = kiln_order_value(choice.most);
    if (measure == KILN_COUNT) m.factor = 0.0f, m.addend = 1.0f;
    return m;
}

/* What an element contributes. Without branches, so that the weights of several are computed at once. */
KILN_INLINE uint64_t contribution(const row_measure *m, float value, uint32_t col) {
    float weight = kiln_sample_weight(&m->row, value) * m->factor + m->addend;
    bool chosen = (value > m->least && value <= m->most) || (value == m->least && col < m->end);
    return (uint64_t)(chosen ? weight : 0.0f);
}

/* The contributions of a vector of the thread's share, and of its single element, with the bins that they go to where
 * bins are counted, else in one sum. */
typedef struct row_pass {
    row_measure measure;
    bool binned;
    uint32_t greatest, shift; /* of the keys: kiln_row_key */
    uint64_t sum;
} row_pass;

/* Adds to a bin. */
KILN_INLINE void bin_add(exchange *shared, uint32_t bin, uint64_t value) {
    uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);
    high += kiln_shared_add(&shared->bins[0][bin], low) > ~low ? 1 : 0;
    if (high) kiln_shared_add(&shared->bins[1][bin], high);
}

KILN_INLINE void pass_element(row_pass *pass, exchange *shared, float value, uint32_t col) {
    uint64_t own = contribution(&pass->measure, value, col);
    pass->sum += own;
    if (!pass->binned) return;
    uint32_t key = kiln_sample_key(value) >> KEY_LOW, bin = (pass->greatest - key) >> pass->shift;
    if (key <= pass->greatest && bin < BINS && own) bin_add(shared, bin, own);
}

/* A pass over the share of the thread's subgroup. */
KILN_INLINE void pass_share(const team_row *r, row_pass *pass) {
    uint32_t first = own_share(r) * r->place.each + lane();
    uint32_t last = lesser(first - lane() + r->place.each, r->place.vectors), single = single_col(r);
    KILN_LOOP
    for (uint32_t at = first; at < last; at += AHEAD * KILN_SUBGROUP) {
        kiln_vector vectors[AHEAD];
        KILN_UNROLL
        for (uint32_t k = 0; k < AHEAD; k++)
            vectors[k] = vector_at(r, lesser(at + k * KILN_SUBGROUP, last - 1));
        KILN_LOOP
        for (uint32_t k = 0, vector = at; k < AHEAD && vector < last; k++, vector += KILN_SUBGROUP) {
            KILN_LOOP
            for (uint32_t quad = 0; quad < KILN_QUADS; quad++) {
                float values[4];
                kiln_quad_take(&vectors[0], values);
                KILN_UNROLL
                for (uint32_t i = 0; i < 4; i++)
                    pass_element(pass, r->shared, values[i], vector_col(r, vector) + quad * 4 + i);
            }
            KILN_UNROLL
            for (uint32_t i = 1; i < AHEAD; i++)
                vectors[i - 1] = vectors[i];
        }
    }
    if (single < r->place.cols) pass_element(pass, r->shared, value_at(r, single), single);
}

/* What the share of the thread's subgroup weighs, all of it: the sum that every row without filters takes, so the next
 * vector is asked for before this one is used. */
KILN_INLINE uint64_t weigh_share(const team_row *r) {
    uint32_t first = own_share(r) * r->place.each + lane();
    uint32_t last = lesser(first - lane() + r->place.each, r->place.vectors), single = single_col(r);
    uint64_t sum = 0;
    kiln_vector next = {{0}};
    if (first < last) next = vector_at(r, first);
    KILN_LOOP
    for (uint32_t vector = first; vector < last;) {
        units some = {0, 0};
        KILN_LOOP
        for (uint32_t end = lesser(vector + VECTORS_OF_UNITS * KILN_SUBGROUP, last); vector < end;) {
            float values[KILN_VECTOR];
            kiln_vector_values(values, next);
            vector += KILN_SUBGROUP;
            next = vector_at(r, lesser(vector, last - 1));
            KILN_UNROLL
            for (uint32_t i = 0; i < KILN_VECTOR; i++)
                units_add(&some, &r->row, values[i]);
        }
        sum += units_sum(some);
    }
    if (single < r->place.cols) {
        units one = {0, 0};
        units_add(&one, &r->row, value_at(r, single));
        sum += units_sum(one);
    }
    return sum;
}

KILN_INLINE uint64_t kiln_row_sum(const kiln_row *row, kiln_choice choice, kiln_measure measure) {
    const team_row *r = (const team_row *)(const void *)row;
    row_pass pass = {measure_of(row, choice, measure), false, 0, 0, 0};
    bool whole = choice.key == 0 && choice.most == 0xffffffffu && row->max < KILN_INFINITY;
    if (whole && measure == KILN_WEIGHT)
        pass.sum = weigh_share(r);
    else
        pass_share(r, &pass);
    return team_sum(r, pass.sum);
}

/* The sum of a bin in all blocks of the team. */
KILN_INLINE uint64_t bin_sum(const team_row *r, uint32_t bin) {
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t rank = 0; rank < r->team; rank++)
        sum += KILN_TEAM_SHARED(&r->shared->bins[0][bin], rank)[0] +
               ((uint64_t)KILN_TEAM_SHARED(&r->shared->bins[1][bin], rank)[0] << 32);
    return sum;
}

/* Bin by bin, of the keys below the greatest: at first those of the 2048 greatest numbers of bf16, among which the key
 * is most often, then those of all that are below them, and then those of the bin that it is in, until a bin has one
 * number's key. Here keys are without the bits that follow from the others. */
KILN_INLINE uint32_t kiln_row_key(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t *need) {
    const team_row *r = (const team_row *)(const void *)row;
    row_pass pass = {measure_of(row, choice, measure), true, 0, 0, 0};
    exchange *shared = r->shared;
    enum { EACH = BINS / KILN_BLOCK, WHOLE = 32 - KEY_LOW };
    uint32_t greatest = kiln_order_key(row->max) >> KEY_LOW, shift = 16 - (KEY_LOW < 16 ? KEY_LOW : 16);
    uint32_t first = kiln_thread() * EACH;
    kiln_barrier(); /* what the bins take the place of has been read by all */
    KILN_LOOP
    for (;;) {
        KILN_UNROLL
        for (uint32_t i = 0; i < EACH; i++)
            shared->bins[0][first + i] = shared->bins[1][first + i] = 0;
        kiln_barrier();
        pass.greatest = greatest;
        pass.shift = shift;
        pass_share(r, &pass);
        team_sync(r->team);
        uint64_t sum = 0, all;
        KILN_LOOP
        for (uint32_t i = first; i < first + EACH; i++)
            sum += bin_sum(r, i);
        uint64_t before = sum_before(shared, sum, &all);
        if (before < *need && *need <= before + sum) {
            uint32_t bin = first;
            KILN_LOOP
            for (; before + bin_sum(r, bin) < *need; bin++)
                before += bin_sum(r, bin);
            shared->found = bin;
            shared->through = before;
        }
        if (*need > all && kiln_thread() == 0) {
            shared->found = BINS;
            shared->through = all;
        }
        team_sync(r->team);
        *need -= shared->through;
        greatest -= shared->found << shift;
        if (shared->found < BINS && !shift) break;
        shift = shared->found == BINS ? WHOLE - BINS_LOG2 : shift < BINS_LOG2 ? 0 : shift - BINS_LOG2;
    }
    return greatest << KEY_LOW | (greatest << KEY_LOW >> 31 ? 0 : (1u << KEY_LOW) - 1);
}

/* The share that the step's sum is in is divided among the subgroups, which read adjacent elements, until it has few
 * enough for each thread to have AHEAD of its own. */
KILN_INLINE uint32_t kiln_row_find(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t rest) {
    const team_row *r = (const team_row *)(const void *)row;
    const row_measure m = measure_of(row, choice, measure);
    exchange *shared = r->shared;
    uint32_t begin = 0, end = r->place.cols, each = 0, count = r->team * KILN_SUBGROUPS;
    const uint64_t *values = shared->shares[(*r->turn - 1) % 2];
    KILN_LOOP
    for (;;) {
        uint64_t through;
        uint32_t found = find_share(shared, values, count, rest, &through);
        rest -= through - values[found];
        end = each ? lesser(begin + found * each + each, end) : share_end(r, found);
        begin = each ? begin + found * each : share_col(r, found);
        if (end - begin <= 1) return begin;
        bool many = end - begin > AHEAD * KILN_BLOCK;
        count = many ? KILN_SUBGROUPS : KILN_BLOCK;
        each = (end - begin + count - 1) / count;
        uint32_t own = many ? subgroup() : kiln_thread(), step = many ? KILN_SUBGROUP : 1;
        uint32_t first = begin + own * each, last = lesser(first + each, end);
        uint64_t sum = 0;
        KILN_LOOP
        for (uint32_t col = first + (many ? lane() : 0); col < last; col += AHEAD * step) {
            float elements[AHEAD];
            KILN_UNROLL
            for (uint32_t i = 0; i < AHEAD; i++)
                elements[i] = value_at(r, lesser(col + i * step, r->place.cols - 1));
            KILN_UNROLL
            for (uint32_t i = 0; i < AHEAD; i++) {
                uint64_t part = contribution(&m, elements[i], col + i * step);
                sum += col + i * step < last ? part : 0;
            }
        }
        if (many) sum = subgroup_sum(sum);
        kiln_barrier(); /* the last values have been read by all */
        shared->threads[own] = sum;
        kiln_barrier();
        values = shared->threads;
    }
}

#endif
