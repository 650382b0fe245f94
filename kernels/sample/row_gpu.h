/* A row of sample on a device: the functions of choice.h for its team, the threads that share it. A team is a block or,
 * where a tuned source has them, the blocks of a cluster.
 *
 * The row's subgroups have shares of it, one behind the other: whole vectors, and single elements at its ends if it is
 * not aligned. What a pass over the row finds for each share goes to all blocks of the team; every block then goes on
 * with the same numbers. The results do not depend on the order of threads, or on how many share a row.
 *
 * Where a team is several blocks, what they give each other is sent into the shared memory of all of them, and counted
 * there by a barrier that expects so many bytes: a barrier of the cluster that orders memory takes each time as long as
 * a write to global memory. Such a block has the vectors of its shares in its shared memory.
 *
 * The includer may define
 *
 * KILN_TEAM_RESIDENT                        that a team may be several blocks
 * KILN_TEAM_VECTORS()                       where a block of several has its vectors
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

#include "kernels/common/global.h"
#include "kernels/common/math/pairs.h"
#include "kernels/common/reduce/atomic.h"
#include "kernels/common/reduce/combine.h"
#include "kernels/common/reduce/rank.h"
#include "kernels/common/values.h"

#define KILN_ROW_FEW
#include "kernels/sample/choice.h"
#include "kernels/sample/units_gpu.h"

#ifndef KILN_TEAM_RESIDENT
#define KILN_TEAM_VECTORS()             ((const kiln_vector *)NULL)
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
    AHEAD = 4,                             /* elements that a thread has in flight, or compares at a time */
    GROUPS = KILN_BLOCK_LOG2 > 9 ? 8 : 16, /* of a thread's vectors */
    MAGNITUDES = 32 << 7,                  /* counts: numbers of bf16 of 32 powers of two */
    RANKS = 512,
    TOLD = 1 << 16,
    RANKS_PAST = AHEAD << 3, /* that draw reads beyond them */
};

/* Vectors that a thread has in flight. AMD's compiler runs out of scalar registers with more. */
#if defined(__HIP__)
enum { WALKED = 2 };
#else
enum { WALKED = 4 };
#endif

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
        uint32_t bins[2][BINS + KILN_SUBGROUP]; /* sums, their lower halves and their upper ones; behind them, for each
                                                 * lane, what is in no bin */
        float groups[GROUPS][KILN_BLOCK];       /* the greatest element of each */
        struct {
            uint64_t ranks[RANKS + RANKS_PAST]; /* of the candidates */
            uint64_t weights[RANKS + RANKS_PAST];
            uint64_t sums[RANKS];
        };
        uint64_t threads[KILN_BLOCK];
        uint32_t numbers[MAGNITUDES]; /* counted_sm90a.h */
    };
    union {
        uint32_t counts[KILN_BLOCK];
        uint64_t negative[SHARES]; /* counted_sm90a.h: of negative numbers, what shares are of positive ones */
    };
    uint64_t shares[2][SHARES];
    uint64_t subgroups[KILN_SUBGROUPS];
    uint64_t told[3];
    row_place place;
    uint64_t bits; /* the row's random bits */
    /* Of several blocks, which lack registers. */
    kiln_filters filters;
    float max, inverse_temperature;
    uint32_t turn;
    uint64_t through;
    uint64_t kept[2], sum[2]; /* the last rank that a filter keeps, and what is kept weighs */
    uint32_t found;
    uint32_t listed, count; /* of the list and of the candidates */
    union {
        uint16_t list[RANKS];                                               /* groups that may have candidates */
        kiln_vector own[KILN_BLOCK * sizeof(uint16_t) / KILN_VECTOR_BYTES]; /* the upper halves of the keys of the
                                                                             * threads' greatest elements, to be sent */
    };
} exchange;

/* More of it, where a team is several blocks: what the others send. */
typedef struct meeting {
    union {
        uint16_t greatest[TEAM_MOST][KILN_BLOCK]; /* what each block has in its `own` */
        uint64_t masses[TEAM_MOST][SHARES];       /* counted_sm90a.h: of each block, from each share */
    };
    uint64_t shared[2], told, gathered; /* barriers: of the shares, of what is told, of candidates */
    uint64_t arrived[KILN_SUBGROUPS];   /* of the vectors of each subgroup's share */
} meeting;

/* A row, and its team. */
typedef struct team_row {
    kiln_row row;
    row_place place;
    exchange *shared;
    meeting *meeting; /* of several blocks */
    uint32_t team, rank;
    uint32_t single;              /* the column of the single element that the thread has; cols: it has none */
    uint32_t groups, rounds_log2; /* candidates_gpu.h */
    uint32_t *turn;               /* how often shares have been given, which alternate; TOLD for each time of telling */
    struct piece *piece;          /* resident_sm90a.h */
} team_row;

KILN_INLINE void team_sync(uint32_t team) {
    if (team == 1)
        kiln_barrier();
    else
        KILN_TEAM_SYNC();
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

/* A number that is the same in all threads of a block, as the compiler of AMD's chips cannot know: it then has one
 * register for all of them, and branches need none. */
KILN_INLINE uint32_t uniform(uint32_t number) {
#if defined(__HIP__)
    return (uint32_t)__builtin_amdgcn_readfirstlane((int)number);
#else
    return number;
#endif
}

/* The same number, as the compiler of AMD's chips cannot know: else it keeps what follows from it in registers over the
 * loop of rows. */
KILN_INLINE uint32_t anew(uint32_t number) {
#if defined(__HIP__)
    __asm__ volatile("" : "+v"(number));
#endif
    return number;
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

/* A vector of the block's shares. */
KILN_INLINE kiln_vector vector_at(const team_row *r, uint32_t vector) {
    if (r->team > 1) return KILN_TEAM_VECTORS()[vector - r->rank * KILN_SUBGROUPS * r->place.each];
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

KILN_INLINE uint32_t single_col(const team_row *r) {
    uint32_t share = anew(own_share(r)), thread = lane();
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
    if (anew(lane()) == 0) shared->subgroups[subgroup()] = sum;
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
    if (rest >= all && anew(kiln_thread()) == 0) {
        shared->found = count;
        shared->through = all;
    }
    kiln_barrier();
    *through = shared->through;
    return shared->found;
}

/* Gives all blocks of the team a value of each subgroup. more: bytes that each block is sent besides. */
KILN_INLINE void team_give(const team_row *r, uint64_t value, uint32_t more) {
    uint32_t share = own_share(r), turn = (*r->turn)++;
    uint64_t *shares = r->shared->shares[turn % 2];
    if (r->team == 1 && anew(lane()) == 0) shares[share] = value;
    if (r->team == 1) return;
    kiln_barrier(); /* what others will send over has been read */
    if (lane() < r->team) KILN_TEAM_SEND(&shares[share], lane(), &r->meeting->shared[turn % 2], value);
    if (kiln_thread() == 0)
        KILN_TEAM_EXPECT(&r->meeting->shared[turn % 2], r->team * KILN_SUBGROUPS * (uint32_t)sizeof *shares + more);
}

/* What has just been given, by all blocks: it stays until the next is given but one. What the block wrote to its own
 * memory before it gave is seen by all its threads. */
KILN_INLINE const uint64_t *team_take(const team_row *r) {
    uint32_t turn = *r->turn - 1;
    if (r->team == 1)
        kiln_barrier();
    else
        KILN_TEAM_WAIT(&r->meeting->shared[turn % 2], turn / 2 % 2);
    return r->shared->shares[turn % 2];
}

KILN_INLINE const uint64_t *team_share(const team_row *r, uint64_t value) {
    team_give(r, value, 0);
    return team_take(r);
}

/* Gives all blocks of the team three values of the thread that is `mine`. Returns them, which stay until the next call
 * but with team_share in between. */
KILN_INLINE const uint64_t *team_tell(const team_row *r, bool mine, const uint64_t values[3]) {
    uint64_t *told = r->shared->told;
    *r->turn += TOLD;
    if (r->team > 1 && kiln_thread() == 0) KILN_TEAM_EXPECT(&r->meeting->told, (uint32_t)sizeof r->shared->told);
    if (mine) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 3; i++) {
            if (r->team == 1) told[i] = values[i];
            KILN_LOOP
            for (uint32_t rank = 0; r->team > 1 && rank < r->team; rank++)
                KILN_TEAM_SEND(&told[i], rank, &r->meeting->told, values[i]);
        }
    }
    if (r->team == 1)
        kiln_barrier();
    else
        KILN_TEAM_WAIT(&r->meeting->told, (*r->turn / TOLD + 1) % 2);
    return told;
}

KILN_INLINE uint32_t subgroup_greatest(uint32_t value) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2) {
        uint32_t other = kiln_bits(kiln_shuffle_xor(kiln_float(value), mask));
        value = other > value ? other : value;
    }
    return value;
}

/* The greatest of the shares. */
KILN_INLINE uint32_t greatest_share(const team_row *r, const uint64_t *shares) {
    bool alone = r->team == 1; /* so few are read by each thread */
    uint32_t value = 0;
    KILN_LOOP
    for (uint32_t i = alone ? 0 : lane(); i < r->team * KILN_SUBGROUPS; i += alone ? 1 : KILN_SUBGROUP)
        value = shares[i] > value ? (uint32_t)shares[i] : value;
    return alone ? value : subgroup_greatest(value);
}

KILN_INLINE uint64_t subgroup_sum(uint64_t value) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
        value += kiln_shuffle_xor_64(value, mask);
    return value;
}

/* The sum of the first shares. */
KILN_INLINE uint64_t sum_shares(const team_row *r, const uint64_t *shares, uint32_t count) {
    bool alone = r->team == 1;
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t i = alone ? 0 : lane(); i < r->team * KILN_SUBGROUPS; i += alone ? 1 : KILN_SUBGROUP)
        sum += i < count ? shares[i] : 0;
    return alone ? sum : subgroup_sum(sum);
}

/* The sum of the values of the team's threads. */
KILN_INLINE uint64_t team_sum(const team_row *r, uint64_t value) {
    return sum_shares(r, team_share(r, subgroup_sum(value)), r->team * KILN_SUBGROUPS);
}

/* ---- Passes over the row ---- */

/* A vector of the element at a column and of nothing else; without it if the column is beyond the last. */
KILN_INLINE kiln_vector single_vector(const team_row *r, uint32_t col) {
    kiln_vector vector;
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR_BYTES / 4; i++)
        vector.words[i] =
            sizeof(kiln_element) == 4 ? KILN_ELEMENT_NEGATIVE_INFINITY : KILN_ELEMENT_NEGATIVE_INFINITY * 0x10001u;
    if (col < r->place.cols) {
        uint32_t element = KILN_GLOBAL(const kiln_element, r->place.x)[col];
        vector.words[0] = sizeof(kiln_element) == 4 ? element : element | KILN_ELEMENT_NEGATIVE_INFINITY << 16;
    }
    return vector;
}

/* How a choice is measured: in numbers instead of keys. It has those above `least` up to `most`, and those equal to
 * `least` before `end`. */
typedef struct row_measure {
    kiln_row row;
    float least, most;
    uint32_t end;
    uint32_t counts; /* non-zero: ones, also where infinite elements alone weigh anything; else weights */
    uint32_t whole;  /* non-zero: all elements are chosen */
} row_measure;

KILN_INLINE row_measure measure_of(const kiln_row *row, kiln_choice choice, kiln_measure measure) {
    bool infinite = measure == KILN_WEIGHT && row->max == KILN_INFINITY;
    row_measure m = {*row, -KILN_INFINITY, KILN_INFINITY, choice.end, 0, 0};
    m.counts = uniform(infinite || measure == KILN_COUNT);
    m.whole = uniform(!m.counts && choice.key == 0 && choice.most == 0xffffffffu);
    if (choice.key) m.least = kiln_order_value(choice.key);
    if (choice.most != 0xffffffffu) m.most = kiln_order_value(choice.most);
    if (infinite && m.least < KILN_INFINITY) m.least = 0x1.fffffep127f;
    return m;
}

/* Without branches, so that the weights of several elements are computed at once. */
KILN_INLINE bool is_chosen(const row_measure *m, float value, uint32_t col) {
    bool above = value > m->least, enough = value <= m->most, equal = value == m->least, early = col < m->end;
    return (above & enough) | (equal & early);
}

KILN_INLINE uint64_t weight_of(const kiln_row *row, float value) {
    units one = {0, 0};
    units_add(&one, row, value);
    return units_sum(one);
}

/* The measure of one element. */
KILN_INLINE uint64_t measure_of_one(const row_measure *m, float value, uint32_t col) {
    bool chosen = is_chosen(m, value, col);
    uint64_t one = chosen ? 1 : 0;
    return m->counts ? one : weight_of(&m->row, chosen ? value : -KILN_INFINITY);
}

/* The vectors of a thread's share. */
typedef struct row_walk {
    uint32_t first, last;
} row_walk;

KILN_INLINE row_walk walk_of(const team_row *r) {
    uint32_t begin = own_share(r) * r->place.each;
    row_walk walk = {begin + lane(), lesser(begin + r->place.each, r->place.vectors)};
    return walk;
}

/* Vectors of a thread, in flight together. */
typedef struct walked {
    kiln_vector vectors[WALKED];
} walked;

/* Loads the thread's vectors from one that it has on; the last again where there are no more. */
KILN_INLINE walked walk_load(const team_row *r, uint32_t vector, uint32_t last) {
    walked w;
    KILN_UNROLL
    for (uint32_t k = 0; k < WALKED; k++)
        w.vectors[k] = vector_at(r, lesser(vector + k * KILN_SUBGROUP, last - 1));
    return w;
}

/* The first of the vectors; the others move up. */
KILN_INLINE kiln_vector walk_next(walked *w) {
    const kiln_vector next = w->vectors[0];
    KILN_UNROLL
    for (uint32_t k = 0; k + 1 < WALKED; k++)
        w->vectors[k] = w->vectors[k + 1];
    return next;
}

/* The measure of a vector's elements, of which the first has this column. */
KILN_INLINE uint64_t sum_vector(const row_measure *m, kiln_vector vector, uint32_t col) {
    float values[KILN_VECTOR];
    units some = {0, 0};
    kiln_vector_values(values, vector);
    if (!m->whole) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++) {
            bool chosen = is_chosen(m, values[i], col + i);
            some.low += chosen ? 1 : 0;
            values[i] = chosen ? values[i] : -KILN_INFINITY;
        }
    }
    if (m->counts) return some.low;
    some.low = 0;
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        units_add(&some, &m->row, values[i]);
    return units_sum(some);
}

/* The measure of the share of the thread's subgroup. */
KILN_INLINE uint64_t sum_share(const team_row *r, const row_measure *m) {
    const row_walk walk = walk_of(r);
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t vector = walk.first; vector < walk.last;) {
        walked w = walk_load(r, vector, walk.last);
        KILN_LOOP
        for (uint32_t k = 0; k < WALKED && vector < walk.last; k++, vector += KILN_SUBGROUP)
            sum += sum_vector(m, walk_next(&w), vector_col(r, vector));
    }
    if (r->single < r->place.cols) sum += measure_of_one(m, value_at(r, r->single), r->single);
    return sum;
}

#ifdef KILN_TEAM_RESIDENT
/* kiln_row_sum and kiln_row_find of several blocks. */
KILN_INLINE uint64_t resident_sum(const team_row *r, const row_measure *m);
KILN_INLINE uint32_t resident_find(const team_row *r, const row_measure *m, uint64_t rest, bool drawn);
#endif

KILN_INLINE uint64_t kiln_row_sum(const kiln_row *row, kiln_choice choice, kiln_measure measure) {
    const team_row *r = (const team_row *)(const void *)row;
    const row_measure m = measure_of(row, choice, measure);
#ifdef KILN_TEAM_RESIDENT
    if (r->team > 1) return resident_sum(r, &m);
#endif
    return team_sum(r, sum_share(r, &m));
}

/* ---- Where a choice ends ---- */

/* Keys here are without the bits that follow from the others. */
KILN_INLINE uint32_t short_key(float value) {
    return kiln_sample_key(value) >> KEY_LOW;
}

KILN_INLINE uint32_t whole_key(uint32_t key) {
    return key << KEY_LOW | (key << KEY_LOW >> 31 ? 0 : (1u << KEY_LOW) - 1);
}

/* Which elements a bin has: at first those whose exponents are in an interval, all of the lowest in the last bin; then
 * those whose keys are in one, from `greatest` down. Numbers from `least` to `most` are in the bins. */
typedef struct row_bins {
    uint32_t greatest, shift;
    float least, most;
} row_bins;

enum { BY_EXPONENT = 32 };

KILN_INLINE uint32_t exponent_bin(const kiln_row *row, float value) {
    const float each = BINS / 32;                                                   /* of e */
    float distance = kiln_fast_max(kiln_sample_exponent(row, value) * -each, 0.0f); /* NaN: infinite ones */
    return distance < BINS - 1 ? (uint32_t)distance : BINS - 1;
}

/* Adds to a bin, or to what is none of them. */
KILN_INLINE void bin_add(exchange *shared, uint32_t bin, uint64_t value) {
    uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);
    high += kiln_shared_add(&shared->bins[0][bin], low) > ~low ? 1 : 0;
    kiln_shared_add(&shared->bins[1][bin], high);
}

/* Whether it is so in any thread of a subgroup, all of which are here, where that is for the device to say: AMD's
 * threads need not agree about a branch. */
KILN_INLINE bool is_any(bool own) {
#if defined(__CUDACC__)
    return __any_sync(0xffffffffu, own);
#else
    return own;
#endif
}

/* Whether an element of any thread of a subgroup may be in a bin: where bins are of exponents, most are. AMD's compiler
 * runs out of registers with a branch for each element. */
KILN_INLINE bool is_worthwhile(bool own, row_bins bins) {
#if defined(__CUDACC__)
    return bins.shift == BY_EXPONENT || __any_sync(0xffffffffu, own);
#else
    return true;
#endif
}

/* The bin of an element; BINS or more: none. */
KILN_INLINE uint32_t bin_of(const row_measure *m, row_bins bins, float value, uint32_t col, bool present) {
    uint32_t bin = (bins.greatest - short_key(value)) >> bins.shift % BY_EXPONENT;
    bool in = present & is_chosen(m, value, col);
    if (bins.shift == BY_EXPONENT)
        bin = exponent_bin(&m->row, value);
    else
        in &= (value >= bins.least) & (value <= bins.most);
    return in ? bin : BINS + lane();
}

/* Measures the elements of a vector in bins, if the thread has one. */
KILN_INLINE void bin_vector(exchange *shared, const row_measure *m, row_bins bins, kiln_vector vector, uint32_t col,
                            bool present) {
    KILN_LOOP
    for (uint32_t quad = 0; quad < KILN_QUADS; quad++, col += 4) {
        float values[4];
        uint32_t places[4], least = BINS;
        kiln_quad_take(&vector, values);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            places[i] = bin_of(m, bins, values[i], col + i, present);
            least = lesser(places[i], least);
        }
        if (!is_any(least < BINS)) continue;
        if (m->counts) {
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                kiln_shared_add(&shared->bins[0][places[i]], 1);
            continue;
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            if (is_worthwhile(places[i] < BINS, bins)) bin_add(shared, places[i], weight_of(&m->row, values[i]));
    }
}

/* Measures the share of the thread's subgroup in bins. The next vector is asked for before one is used. */
KILN_INLINE void bin_share(const team_row *r, const row_measure *m, row_bins bins) {
    const row_walk walk = walk_of(r);
    kiln_vector next = {{0}};
    if (walk.first - lane() < walk.last) next = vector_at(r, lesser(walk.first, walk.last - 1));
    KILN_LOOP
    for (uint32_t vector = walk.first; vector - lane() < walk.last; vector += KILN_SUBGROUP) {
        uint32_t col = vector_col(r, vector);
        kiln_vector now = next;
        next = vector_at(r, lesser(vector + KILN_SUBGROUP, walk.last - 1));
        bin_vector(r->shared, m, bins, now, col, vector < walk.last);
    }
    if (r->single < r->place.cols) {
        float value = value_at(r, r->single);
        bin_add(r->shared, bin_of(m, bins, value, r->single, true), m->counts ? 1 : weight_of(&m->row, value));
    }
}

/* The sum of a bin in all blocks of the team. */
KILN_INLINE uint64_t bin_sum(const team_row *r, uint32_t bin) {
    uint64_t sum = 0;
    KILN_UNROLL
    for (uint32_t rank = 0; rank < TEAM_MOST; rank++) {
        if (rank >= r->team) continue;
        sum += KILN_TEAM_SHARED(&r->shared->bins[0][bin], rank)[0] +
               ((uint64_t)KILN_TEAM_SHARED(&r->shared->bins[1][bin], rank)[0] << 32);
    }
    return sum;
}

/* The least key in bins up to this one, by exponent. */
KILN_INLINE uint32_t least_in_bin(const kiln_row *row, uint32_t greatest, uint32_t bin) {
    uint32_t below = 0; /* some key that is in a greater bin, or no number's */
    KILN_LOOP
    while (greatest - below > 1) {
        uint32_t middle = below + (greatest - below) / 2;
        bool in = exponent_bin(row, kiln_order_value(whole_key(middle))) <= bin;
        greatest = in ? middle : greatest;
        below = in ? below : middle;
    }
    return greatest;
}

/* The bins that divide this one. Even and odd threads look for its two ends. */
KILN_INLINE row_bins divide_bin(const kiln_row *row, row_bins bins, uint32_t bin) {
    uint32_t span = 1u << bins.shift % BY_EXPONENT;
    if (bins.shift == BY_EXPONENT) {
        uint32_t odd = anew(lane()) % 2, own = least_in_bin(row, bins.greatest, bin - (bin ? odd : 0));
        uint32_t other = kiln_bits(kiln_shuffle_xor(kiln_float(own), 1));
        uint32_t least = odd ? other : own, above = odd ? own : other;
        bins.greatest = bin ? above - 1 : bins.greatest;
        span = bins.greatest - least + 1;
    } else {
        bins.greatest -= bin << bins.shift;
    }
    bins.most = kiln_order_value(whole_key(bins.greatest));
    float end = kiln_order_value(whole_key(bins.greatest - span + 1));
    bins.least = end == end ? end : -KILN_INFINITY; /* keys below that of -inf are NaN's */
    bins.shift = 0;
    KILN_LOOP
    while ((span - 1) >> BINS_LOG2 >> bins.shift)
        bins.shift++;
    bins.shift = uniform(bins.shift);
    return bins;
}

/* Bin by bin, of exponents, since those that weigh anything are in few of them: then of the keys of the bin that the
 * key is in, until a bin has one number's key. Each block of a team sums some of the bins. */
KILN_INLINE uint32_t kiln_row_key(const kiln_row *row, kiln_choice choice, kiln_measure measure,
                                  const kiln_filters *filters, uint64_t *need) {
    const team_row *r = (const team_row *)(const void *)row;
    const row_measure m = measure_of(row, choice, measure);
    exchange *shared = r->shared;
    row_bins bins = {kiln_order_key(row->max) >> KEY_LOW, BY_EXPONENT, 0.0f, 0.0f};
    uint32_t each = BINS / (KILN_BLOCK * r->team), first = (r->rank * KILN_BLOCK + kiln_thread()) * each;
    KILN_LOOP
    for (;;) {
        kiln_barrier(); /* what the bins take the place of has been read by all */
        KILN_LOOP
        for (uint32_t i = kiln_thread(); i < BINS + KILN_SUBGROUP; i += KILN_BLOCK)
            shared->bins[0][i] = shared->bins[1][i] = 0;
        kiln_barrier();
        bin_share(r, &m, bins);
        team_sync(r->team);
        uint64_t sum = 0, part;
        KILN_LOOP
        for (uint32_t i = 0; i < each; i++)
            sum += bin_sum(r, first + i);
        uint64_t before = subgroup_before(sum, &part);
        const uint64_t *shares = team_share(r, part);
        before += sum_shares(r, shares, own_share(r));
        uint64_t all = sum_shares(r, shares, r->team * KILN_SUBGROUPS);
        if (bins.shift == BY_EXPONENT) {
            *need = measure == KILN_COUNT ? filters->top_k : kiln_sample_need(filters->top_p, all);
            if (uniform(*need >= all)) return *need = 0;
        }
        bool mine = before < *need && *need <= before + sum;
        uint64_t found[3] = {first, before, sum};
        if (mine && each > 1) {
            KILN_LOOP
            while (found[1] + (found[2] = bin_sum(r, (uint32_t)found[0])) < *need) {
                found[1] += found[2];
                found[0]++;
            }
        }
        const uint64_t *told = team_tell(r, mine, found);
        *need -= told[1];
        if (!bins.shift) {
            if (*need == told[2]) *need = 0;
            return whole_key(bins.greatest - (uint32_t)told[0]);
        }
        bins = divide_bin(row, bins, (uint32_t)told[0]);
    }
}

/* The share that the step's sum is in is divided: among the subgroups, which read adjacent elements, as long as it has
 * more than a subgroup's threads would have for each thread of the block; then among these; and at last each subgroup
 * finds the element in what one of them had. */
KILN_INLINE uint32_t kiln_row_find(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t rest) {
    const team_row *r = (const team_row *)(const void *)row;
    const row_measure m = measure_of(row, choice, measure);
#ifdef KILN_TEAM_RESIDENT
    if (r->team > 1) return resident_find(r, &m, rest, measure == KILN_WEIGHT);
#endif
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
        bool few = end - begin <= KILN_SUBGROUP, many = end - begin > KILN_SUBGROUP * KILN_BLOCK;
        count = few ? KILN_SUBGROUP : many ? KILN_SUBGROUPS : KILN_BLOCK;
        each = (end - begin + count - 1) / count;
        uint32_t own = few ? lane() : many ? subgroup() : kiln_thread(), step = many ? KILN_SUBGROUP : 1;
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
                bool chosen = col + i * step < last && is_chosen(&m, elements[i], col + i * step);
                uint64_t one = chosen ? 1 : 0;
                sum += m.counts ? one : weight_of(&m.row, chosen ? elements[i] : -KILN_INFINITY);
            }
        }
        if (few) {
            uint64_t all, before = subgroup_before(sum, &all);
            return begin + subgroup_greatest(before <= rest && rest < before + sum ? lane() : 0);
        }
        if (many) sum = subgroup_sum(sum);
        kiln_barrier(); /* the last values have been read by all */
        shared->threads[own] = sum;
        kiln_barrier();
        values = shared->threads;
    }
}

#endif
