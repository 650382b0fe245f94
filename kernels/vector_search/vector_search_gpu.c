/* vector_search: the k rows of a table of codes that are nearest to each query.
 *
 * A block has a slice of the table and up to four queries, whose codes are in shared memory: int4 as int8, the even and
 * the odd ones apart, so that two masks bring a word of the table into the same form. Four or eight threads share a
 * row, with a vector of 16 bytes each at a time, and have four rows in flight. Differing bits are counted in xor-ed
 * words; four products of int8 are one instruction where the target has one (dot.h). The sums of four rows are added by
 * shuffles such that each of the first four threads ends with those of one row.
 *
 * Each score becomes a rank (rank.h). For each query a block has room for somewhat more than k ranks: those above a
 * floor enter in any order; before they could overflow they are sorted (bitonic sort), all but k are dropped, and the
 * k-th is the new floor. So the result depends neither on the order of threads nor on how the table is divided, and if
 * a table is in no particular order, few rows enter after the first ones. Unless all scores are wanted, only the k best
 * of each slice are written to memory. Further launches merge them in the same way until they are the result: with a
 * table in 1024 slices that is one more launch for k up to 8, and four for k = 1024.
 *
 * Floor: one read of the table at memory bandwidth for each tile of queries; docs/kernel-report.md has the instruction
 * counts and the time that they take. Not measured.
 * Test: build/tests/ops/vector_search_test. Bench: build/kiln bench vector_search */
#include "kernels/common/atomic.h"
#include "kernels/common/dot.h"
#include "kernels/common/late_args.h"
#include "kernels/common/rank.h"
#include "kernels/common/rank_sort.h"
#include "kernels/vector_search/vector_search_args.h"

enum {
    QUERIES = KILN_VECTOR_SEARCH_QUERIES,
    ROWS = KILN_VECTOR_SEARCH_ROWS,
    WORDS = KILN_VECTOR_BYTES / 4,
    LANES = 8 /* threads per row, at most */
};

/* What a block has found so far for each query, besides the ranks. */
typedef struct findings {
    uint64_t floors[QUERIES]; /* a rank that does not exceed its floor is none of the k */
    float scales[QUERIES];
    uint32_t counts[QUERIES];
    int32_t firsts[QUERIES][LANES]; /* what a thread's sum of a row starts from */
} findings;

/* What a block works on. */
typedef struct search {
    const kiln_vector_search_args *args;
    findings *found;
    uint64_t *ranks;         /* [tile, capacity], shared */
    const uint32_t *queries; /* [tile, query_words], shared */
    uint64_t query;          /* the first */
    uint64_t start, end;     /* of the slice */
    uint32_t vectors;        /* of a row */
    uint32_t query_words;
} search;

/* ---- Codes ---- */

/* Four bytes of a row from a place on, with other bytes in place of those beyond its end. */
KILN_INLINE uint32_t gather_word(const uint8_t *row, uint32_t at, uint32_t end, uint32_t other) {
    uint32_t word = 0;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        word |= (at + i < end ? row[at + i] : other) << 8 * i;
    return word;
}

KILN_INLINE kiln_vector load_codes(const kiln_vector_search_args *args, const uint8_t *row, uint32_t vector) {
    uint32_t at = vector * KILN_VECTOR_BYTES;
    if (args->wide && at + KILN_VECTOR_BYTES <= args->code_cols) return *(const kiln_vector *)(row + at);
    kiln_vector codes = {{0}};
    KILN_LOOP
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t word = gather_word(row, at + 4 * i, args->code_cols, 0);
        KILN_UNROLL
        for (uint32_t j = 0; j + 1 < WORDS; j++)
            codes.words[j] = codes.words[j + 1];
        codes.words[WORDS - 1] = word;
    }
    return codes;
}

/* Four int4 with 8 added, one in each byte, as int8. */
KILN_INLINE uint32_t widen(uint32_t nibbles) {
    return (nibbles ^ 0x08080808u) | (~nibbles & 0x08080808u) * 0x1eu;
}

/* Bytes beyond a row have values that add nothing to a sum. */
KILN_INLINE void take_queries(const search *s, const kiln_vector_search_args *args, uint32_t *target) {
    bool pairs = args->code_type == KILN_CODE_INT4;
    KILN_LOOP
    for (uint32_t q = 0; q < args->tile; q++, target += s->query_words) {
        uint64_t query = s->query + q;
        bool given = query < (uint64_t)args->queries;
        const uint8_t *row = args->query_codes + (given ? query : 0) * (uint64_t)args->query_stride;
        KILN_LOOP
        for (uint32_t i = kiln_thread(); i < s->vectors * WORDS; i += KILN_BLOCK) {
            uint32_t word = gather_word(row, 4 * i, args->code_cols, pairs ? 0x88u : 0u);
            if (pairs) {
                uint32_t *slot = target + i / WORDS * 2 * WORDS + i % WORDS;
                slot[0] = widen(word & 0x0f0f0f0fu);
                slot[WORDS] = widen(word >> 4 & 0x0f0f0f0fu);
            } else {
                target[i] = word;
            }
        }
        if (kiln_thread() == 0) s->found->scales[q] = given && args->query_scales ? args->query_scales[query] : 1.0f;
    }
}

/* What sums start from: for int4, which the table has with 8 added, -8 times the sum of the thread's share of the
 * query. */
KILN_INLINE void put_firsts(const search *s) {
    const uint32_t lanes = 1u << s->args->lanes_log2, lane = kiln_thread();
    if (lane >= lanes) return;
    KILN_LOOP
    for (uint32_t q = 0; q < QUERIES; q++) {
        const bool biased = q < s->args->tile && s->args->code_type == KILN_CODE_INT4;
        const uint32_t *query = s->queries + q * s->query_words;
        int32_t sum = 0;
        KILN_LOOP
        for (uint32_t vector = lane; biased && vector < s->vectors; vector += lanes) {
            KILN_UNROLL
            for (uint32_t i = 0; i < 2 * WORDS; i++)
                sum = kiln_dot4(query[vector * 2 * WORDS + i], 0xf8f8f8f8u, sum);
        }
        s->found->firsts[q][lane] = sum;
    }
}

KILN_INLINE int32_t add_word(int32_t sum, uint32_t codes, uint32_t query, bool bits) {
    return bits ? sum + __builtin_popcount(codes ^ query) : kiln_dot4(codes, query, sum);
}

/* Adds the products of a vector of each row with the queries' words from `first` on. */
KILN_INLINE void add_vectors(int32_t sums[QUERIES][ROWS], const search *s, const kiln_vector *codes, uint32_t at,
                             bool bits) {
    KILN_UNROLL
    for (uint32_t q = 0; q < QUERIES; q++) {
        if (q >= s->args->tile) continue;
        const kiln_vector query = *(const kiln_vector *)(s->queries + q * s->query_words + at);
        KILN_UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            KILN_UNROLL
            for (uint32_t i = 0; i < WORDS; i++)
                sums[q][r] = add_word(sums[q][r], codes[r].words[i], query.words[i], bits);
        }
    }
}

/* The even or the odd int4 of vectors, a byte each. */
KILN_INLINE void take_nibbles(kiln_vector *halves, const kiln_vector *codes, uint32_t bit) {
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < WORDS; i++)
            halves[r].words[i] = codes[r].words[i] >> bit & 0x0f0f0f0fu;
    }
}

KILN_INLINE void add_codes(int32_t sums[QUERIES][ROWS], const search *s, const kiln_vector *codes, uint32_t vector) {
    if (s->args->code_type == KILN_CODE_BINARY) {
        add_vectors(sums, s, codes, vector * WORDS, true);
        return;
    }
    if (s->args->code_type == KILN_CODE_INT8) {
        add_vectors(sums, s, codes, vector * WORDS, false);
        return;
    }
    kiln_vector halves[ROWS];
    KILN_LOOP
    for (uint32_t half = 0; half < 2; half++) {
        take_nibbles(halves, codes, 4 * half);
        add_vectors(sums, s, halves, (2 * vector + half) * WORDS, false);
    }
}

/* ---- Ranks ---- */

KILN_INLINE void offer(const search *s, uint32_t q, uint64_t rank) {
    if (rank <= s->found->floors[q]) return;
    s->ranks[q * s->args->capacity + kiln_shared_add(&s->found->counts[q], 1)] = rank;
}

/* Makes room for count more ranks for each query. */
KILN_INLINE void make_room(const search *s, uint32_t count) {
    const uint32_t k = s->args->k;
    kiln_barrier();
    KILN_LOOP
    for (uint32_t q = 0; q < s->args->tile; q++) {
        uint64_t *ranks = s->ranks + q * s->args->capacity;
        uint32_t has = s->found->counts[q];
        if (has + count <= s->args->capacity) continue;
        kiln_rank_sort(ranks, has);
        if (kiln_thread() == 0) {
            s->found->counts[q] = k;
            s->found->floors[q] = ranks[k - 1];
        }
    }
    kiln_barrier();
}

/* ---- The candidates ---- */

/* Adds two sums across a pair of threads, which have shares of both, such that each thread gets one: the first if its
 * bit of mask is 0. */
KILN_INLINE int32_t share_sums(int32_t first, int32_t second, uint32_t mask) {
    const bool later = kiln_thread() & mask;
    const int32_t kept = later ? second : first, given = later ? first : second;
    return kept + (int32_t)kiln_bits(kiln_shuffle_xor(kiln_float((uint32_t)given), mask));
}

/* The sum of one of four rows, the one that the thread's two lowest bits number, from every thread's shares of all
 * four. */
KILN_INLINE int32_t reduce_rows(const int32_t *sums, uint32_t lanes) {
    int32_t sum = share_sums(share_sums(sums[0], sums[1], 1), share_sums(sums[2], sums[3], 1), 2);
    KILN_LOOP
    for (uint32_t mask = 4; mask < lanes; mask *= 2)
        sum += (int32_t)kiln_bits(kiln_shuffle_xor(kiln_float((uint32_t)sum), mask));
    return sum;
}

/* The score that a key stands for. The key of a distance is that of its negative. */
KILN_INLINE kiln_element score_of(const kiln_vector_search_args *args, uint32_t key) {
    float score = kiln_order_value(key);
    return kiln_element_from_f32(args->code_type == KILN_CODE_BINARY ? 0.0f - score : score);
}

KILN_INLINE void rank_row(const search *s, const kiln_vector_search_args *args, uint32_t q, uint64_t row, int32_t sum,
                          float scale) {
    float score = args->code_type == KILN_CODE_BINARY ? -(float)sum : (float)sum * (s->found->scales[q] * scale);
    uint32_t key = kiln_order_key(score);
    offer(s, q, kiln_rank_of(key, (uint32_t)row));
    if (args->all_scores && s->query + q < (uint64_t)args->queries)
        ((kiln_element *)args->all_scores)[(s->query + q) * (uint64_t)args->rows + row] = score_of(args, key);
}

KILN_INLINE void choose_rows(const search *s) {
    const kiln_vector_search_args *args = s->args;
    const uint32_t lanes = 1u << args->lanes_log2, lane = kiln_thread() & (lanes - 1);
    const uint32_t own = kiln_thread() >> args->lanes_log2; /* the row, of those that the block has at a time */
    const uint32_t rows = KILN_BLOCK >> args->lanes_log2;
    put_firsts(s);
    kiln_barrier();
    uint32_t step = 0;
    KILN_LOOP
    for (uint64_t first = s->start + own; first - own < s->end; first += ROWS * rows) {
        int32_t sums[QUERIES][ROWS];
        KILN_UNROLL
        for (uint32_t i = 0; i < QUERIES * ROWS; i++)
            sums[i / ROWS][i % ROWS] = s->found->firsts[i / ROWS][lane];
        KILN_LOOP
        for (uint32_t vector = lane; vector < s->vectors; vector += lanes) {
            kiln_vector codes[ROWS];
            KILN_UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                uint64_t row = first + r * rows;
                kiln_vector none = {{0}};
                codes[r] = none;
                if (row < s->end)
                    codes[r] = load_codes(args, args->table_codes + row * (uint64_t)args->table_stride, vector);
            }
            add_codes(sums, s, codes, vector);
        }
        const kiln_vector_search_args *late = KILN_LATE_ARGS(kiln_vector_search_args, *args);
        uint64_t row = first + (lane & 3) * rows;
        const bool mine = lane < ROWS && row < s->end;
        const float scale = mine && late->table_scales ? late->table_scales[row] : 1.0f;
        KILN_UNROLL
        for (uint32_t q = 0; q < QUERIES; q++) {
            if (q >= args->tile) continue;
            int32_t sum = reduce_rows(sums[q], lanes);
            if (mine) rank_row(s, late, q, row, sum, scale);
        }
        if (++step < args->steps) continue;
        make_room(s, args->steps * ROWS * rows);
        step = 0;
    }
}

KILN_INLINE void choose_ranks(const search *s, const kiln_vector_search_args *args) {
    const uint64_t *from = args->from + s->query * (uint64_t)args->rows;
    uint32_t step = 0;
    KILN_LOOP
    for (uint64_t i = s->start + kiln_thread(); i - kiln_thread() < s->end; i += KILN_BLOCK) {
        if (i < s->end) offer(s, 0, from[i]);
        if (++step < s->args->steps) continue;
        make_room(s, s->args->steps * KILN_BLOCK);
        step = 0;
    }
}

/* ---- What was chosen ---- */

KILN_INLINE void put_results(const kiln_vector_search_args *args, uint64_t at, uint64_t rank) {
    args->indices[at] = (int32_t)kiln_rank_place(rank);
    if (args->scores) ((kiln_element *)args->scores)[at] = score_of(args, kiln_rank_key(rank));
}

KILN_INLINE void put_chosen(const search *s, const kiln_vector_search_args *args) {
    KILN_LOOP
    for (uint32_t q = 0; q < args->tile && s->query + q < (uint64_t)args->queries; q++) {
        uint64_t *ranks = s->ranks + q * args->capacity, query = s->query + q;
        uint32_t count = s->found->counts[q];
        kiln_rank_sort(ranks, count);
        KILN_LOOP
        for (uint32_t i = kiln_thread(); i < args->k; i += KILN_BLOCK) {
            if (args->to)
                args->to[(query * args->slices + kiln_tile()) * args->k + i] = i < count ? ranks[i] : 0;
            else
                put_results(args, query * args->k + i, ranks[i]);
        }
    }
}

KILN_ENTRY(vector_search, kiln_vector_search_args) {
    KILN_DYNAMIC_SHARED(uint64_t, shared);
    KILN_SHARED findings found;
    search s = {.args = &args, .found = &found, .ranks = shared};
    s.query = kiln_block() * args.tile;
    if (s.query >= (uint64_t)args.queries) return; /* the whole block */
    uint32_t *queries = (uint32_t *)(shared + args.tile * args.capacity);
    s.queries = queries;
    s.start = (uint64_t)kiln_tile() * args.slice;
    s.end = s.start + args.slice < (uint64_t)args.rows ? s.start + args.slice : (uint64_t)args.rows;
    s.vectors = (args.code_cols + KILN_VECTOR_BYTES - 1) / KILN_VECTOR_BYTES;
    s.query_words = s.vectors * WORDS * (args.code_type == KILN_CODE_INT4 ? 2 : 1);
    if (kiln_thread() < QUERIES) found.counts[kiln_thread()] = 0;
    if (kiln_thread() < QUERIES) found.floors[kiln_thread()] = 0;
    if (!args.from) take_queries(&s, KILN_LATE_ARGS(kiln_vector_search_args, args), queries);
    kiln_barrier();
    if (args.from)
        choose_ranks(&s, KILN_LATE_ARGS(kiln_vector_search_args, args));
    else
        choose_rows(&s);
    kiln_barrier();
    put_chosen(&s, KILN_LATE_ARGS(kiln_vector_search_args, args));
}
