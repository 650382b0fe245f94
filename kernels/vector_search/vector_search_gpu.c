/* vector_search: the k rows of a table of codes that are nearest to each query.
 *
 * A block has a slice of the table and up to four queries, whose codes are in shared memory: int4 as int8, the even and
 * the odd ones apart, so that two masks bring a word of the table into the same form. Four or eight threads share a
 * row, with a vector of 16 bytes each at a time, and have four rows in flight. Differing bits are counted in xor-ed
 * words; four products of int8 are one instruction where the target has one (dot.h). The sums of four rows are added by
 * shuffles such that each of the first four threads ends with those of one row.
 *
 * Each score becomes a rank (rank.h). For each query a block has room for somewhat more than k ranks: those above a
 * floor enter in any order; before they could overflow they are sorted (each thread counts the ranks above its own, or
 * a bitonic sort of more than there are threads), all but k are dropped, and the k-th is the new floor. So the result
 * depends neither on the order of threads nor on how the table is divided, and if a table is in no particular order,
 * few rows enter after the first ones; the first floor is found as soon as there are twice k ranks. Unless all scores
 * are wanted, only the k best of each slice are written to memory. Further launches merge them in the same way until
 * they are the result, after a first floor from the greatest of each list: with a table in 1024 slices that is one more
 * launch for k up to 8, and four for k = 1024.
 *
 * On NVIDIA the next rows are brought into L2 while a block reads its queries, computes, or finds its first floor.
 *
 * Floor: one read of the table at memory bandwidth for each tile of queries; docs/kernel-report.md has the instruction
 * counts and the time that they take: on sm_100 that of the memory (predicted), since a word of four codes takes a xor,
 * a count and a sum, and a row's score shuffles, a comparison and its entry. Not measured: an
 * H100 took 75.7 us for one query and 64 MiB of bits before blocks had half the rows, fewer sorts and these hints;
 * copies move as many bytes in 23 us. Test: build/tests/ops/vector_search_test. Bench: build/kiln bench vector_search
 */
#include "kernels/common/late_args.h"
#include "kernels/common/math/dot.h"
#include "kernels/common/reduce/atomic.h"
#include "kernels/common/reduce/rank.h"
#include "kernels/common/reduce/rank_sort.h"
#include "kernels/vector_search/vector_search_args.h"
#if defined(__CUDACC__)
#include "kernels/arch/ptx.h"
#else
#include "kernels/arch/gfx.h"
#endif

enum {
    QUERIES = KILN_VECTOR_SEARCH_QUERIES,
    ROWS = KILN_VECTOR_SEARCH_ROWS,
    WORDS = KILN_VECTOR_BYTES / 4,
    LANES = 8,   /* threads per row, at most */
    AT_ONCE = 4, /* ranks of another launch that a thread loads at once */
    HEADS = 128  /* lists of another launch whose greatest ranks give the first floor, at most */
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
template <uint32_t MOST>
KILN_INLINE void add_vectors(int32_t sums[MOST][ROWS], const search *s, const kiln_vector *codes, uint32_t at,
                             bool bits) {
    KILN_UNROLL
    for (uint32_t q = 0; q < MOST; q++) {
        if (MOST > 1 && q >= s->args->tile) continue;
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

template <uint32_t MOST>
KILN_INLINE void add_codes(int32_t sums[MOST][ROWS], const search *s, const kiln_vector *codes, uint32_t vector) {
    if (s->args->code_type == KILN_CODE_BINARY) {
        add_vectors<MOST>(sums, s, codes, vector * WORDS, true);
        return;
    }
    if (s->args->code_type == KILN_CODE_INT8) {
        add_vectors<MOST>(sums, s, codes, vector * WORDS, false);
        return;
    }
    kiln_vector halves[ROWS];
    KILN_LOOP
    for (uint32_t half = 0; half < 2; half++) {
        take_nibbles(halves, codes, 4 * half);
        add_vectors<MOST>(sums, s, halves, (2 * vector + half) * WORDS, false);
    }
}

/* Brings the threads of a subgroup together again after a branch; on AMD they are. */
KILN_INLINE void meet(void) {
#if defined(__CUDACC__)
    __syncwarp();
#endif
}

/* ---- Ranks ---- */

KILN_INLINE void offer(const search *s, uint32_t q, uint64_t rank) {
    if (rank <= s->found->floors[q]) return;
    s->ranks[q * s->args->capacity + kiln_shared_add(&s->found->counts[q], 1)] = rank;
}

/* AMD's compiler would collect several conditions in bits and count these. */
KILN_INLINE uint32_t one_more_if(uint32_t count, bool condition) {
    count += condition;
#if defined(__HIP__)
    __asm__("" : "+v"(count));
#endif
    return count;
}

/* Brings the k greatest of count ranks, no two of which are equal, to the front, the greatest first. While there is no
 * more than one for each thread, each thread counts the ranks above its own: a sort takes a barrier for each of many
 * steps. All threads take part, and are synchronised at the end. */
KILN_INLINE void put_greatest_first(uint64_t *ranks, uint32_t count, uint32_t k) {
    if (count > KILN_BLOCK) {
        kiln_rank_sort(ranks, count);
        return;
    }
    const uint32_t own = kiln_thread();
    if (own >= count && own < count + 3) ranks[own] = 0;
    kiln_barrier();
    const uint64_t rank = own < count ? ranks[own] : 0;
    uint32_t place = own < count ? 0 : k;
    KILN_LOOP
    for (uint32_t i = 0; own < count && i < count; i += 4) {
        KILN_UNROLL
        for (uint32_t j = 0; j < 4; j++)
            place = one_more_if(place, ranks[i + j] > rank);
    }
    meet();
    kiln_barrier();
    if (place < k) ranks[place] = rank;
    meet();
    kiln_barrier();
}

/* Keeps the k greatest ranks of each query: where there is no room for count more, where there are twice k and no floor
 * yet, and if it is asked to. */
KILN_INLINE void keep_best(const search *s, uint32_t count, bool asked) {
    const kiln_vector_search_args *args = KILN_LATE_ARGS(kiln_vector_search_args, *s->args);
    const uint32_t k = args->k;
    kiln_barrier();
    KILN_LOOP
    for (uint32_t q = 0; q < args->tile; q++) {
        uint64_t *ranks = s->ranks + q * args->capacity;
        uint32_t has = s->found->counts[q];
        if (!asked && has + count <= args->capacity && (s->found->floors[q] || has < 2 * k)) continue;
        put_greatest_first(ranks, has, k);
        if (kiln_thread() == 0 && has >= k) {
            s->found->counts[q] = k;
            s->found->floors[q] = ranks[k - 1];
        }
    }
    meet();
    kiln_barrier();
}

/* ---- The candidates ---- */

/* What the thread has whose number differs in a bit of mask, which is a constant on AMD. */
KILN_INLINE int32_t of_xor(int32_t value, uint32_t mask) {
#if defined(__HIP__)
    return (int32_t)kiln_gfx_xor((uint32_t)value, mask);
#else
    return (int32_t)kiln_bits(kiln_shuffle_xor(kiln_float((uint32_t)value), mask));
#endif
}

/* Adds two sums across a pair of threads, which have shares of both, such that each thread gets one: the first if its
 * bit of mask is 0. */
KILN_INLINE int32_t share_sums(int32_t first, int32_t second, uint32_t mask) {
    const bool later = kiln_thread() & mask;
    const int32_t kept = later ? second : first, given = later ? first : second;
    return kept + of_xor(given, mask);
}

/* The sum of one of four rows, the one that the thread's two lowest bits number, from every thread's shares of all
 * four. */
KILN_INLINE int32_t reduce_rows(const int32_t *sums, uint32_t lanes) {
    int32_t sum = share_sums(share_sums(sums[0], sums[1], 1), share_sums(sums[2], sums[3], 1), 2);
#if defined(__HIP__)
    if (lanes == LANES) sum += of_xor(sum, LANES / 2);
#else
    KILN_LOOP
    for (uint32_t mask = 4; mask < lanes; mask *= 2)
        sum += of_xor(sum, mask);
#endif
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

/* The row, of the four from first on, whose score a thread makes. */
KILN_INLINE uint64_t row_of(uint64_t first, uint32_t lane, uint32_t rows) {
    return first + (lane & 3) * rows;
}

KILN_INLINE void prefetch(const void *global) {
#if defined(__CUDACC__)
    kiln_ptx_prefetch_l2(global);
#else
    (void)global;
#endif
}

/* Brings that row, or its first bytes, into L2 on NVIDIA. */
KILN_INLINE void prefetch_row(const search *s, uint64_t start) {
    const kiln_vector_search_args *args = KILN_LATE_ARGS(kiln_vector_search_args, *s->args);
    const uint32_t lane = kiln_thread() & ((1u << args->lanes_log2) - 1);
    const uint64_t first = start + (kiln_thread() >> args->lanes_log2);
    const uint64_t row = row_of(first, lane, KILN_BLOCK >> args->lanes_log2);
    if (lane < ROWS && row < s->end) prefetch(args->table_codes + row * (uint64_t)args->table_stride);
    meet();
}

KILN_INLINE float load_scale(const search *s, uint64_t first, uint32_t lane, uint32_t rows) {
    const kiln_vector_search_args *args = KILN_LATE_ARGS(kiln_vector_search_args, *s->args);
    const uint64_t row = row_of(first, lane, rows);
    return args->table_scales && lane < ROWS && row < s->end ? args->table_scales[row] : 1.0f;
}

/* Offers ROWS rows of each group of threads to MOST queries. WHOLE: all of them are rows of the slice, of whole
 * vectors.
 */
template <uint32_t MOST, bool WHOLE> KILN_INLINE void offer_rows(const search *s, uint64_t start) {
    const kiln_vector_search_args *args = KILN_LATE_ARGS(kiln_vector_search_args, *s->args);
    const uint32_t lanes = 1u << args->lanes_log2, lane = kiln_thread() & (lanes - 1);
    const uint32_t rows = KILN_BLOCK >> args->lanes_log2; /* that the block has at a time */
    const uint64_t first = start + (kiln_thread() >> args->lanes_log2);
    const float scale = load_scale(s, first, lane, rows);
    meet();
    int32_t sums[MOST][ROWS];
    KILN_UNROLL
    for (uint32_t i = 0; i < MOST * ROWS; i++)
        sums[i / ROWS][i % ROWS] = s->found->firsts[i / ROWS][lane];
    const uint8_t *firsts = args->table_codes + first * (uint64_t)args->table_stride;
    KILN_LOOP
    for (uint32_t vector = lane; vector < s->vectors; vector += lanes) {
        kiln_vector codes[ROWS];
        KILN_UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            if (WHOLE) {
                const uint8_t *row = firsts + r * (rows * (uint64_t)args->table_stride);
                codes[r] = *(const kiln_vector *)(row + vector * KILN_VECTOR_BYTES);
                continue;
            }
            uint64_t row = first + r * rows;
            kiln_vector none = {{0}};
            codes[r] = none;
            if (row < s->end)
                codes[r] = load_codes(args, args->table_codes + row * (uint64_t)args->table_stride, vector);
        }
        add_codes<MOST>(sums, s, codes, vector);
    }
    const kiln_vector_search_args *late = KILN_LATE_ARGS(kiln_vector_search_args, *args);
    const uint64_t row = row_of(first, lane, rows);
    const bool mine = lane < ROWS && row < s->end;
    KILN_UNROLL
    for (uint32_t q = 0; q < MOST; q++) {
        if (MOST > 1 && q >= args->tile) continue;
        int32_t sum = reduce_rows(sums[q], lanes);
        if (WHOLE ? lane < ROWS : mine) rank_row(s, late, q, row, sum, scale);
        meet();
    }
}

/* Whether a single query is asked for and all rows of the table are whole vectors, for which there is a copy of
 * offer_rows. */
KILN_INLINE bool has_copy(const kiln_vector_search_args *args) {
    return args->tile == 1 && args->wide && args->code_cols % KILN_VECTOR_BYTES == 0;
}

/* The distance of the greatest ranks of at most HEADS of the sorted lists that another launch left, or 1 if those are
 * too few for a floor. */
KILN_INLINE uint32_t heads_apart(const search *s) {
    const uint32_t k = s->args->k, lists = (uint32_t)(s->end - s->start) / k;
    const uint32_t apart = (lists + HEADS - 1) / HEADS;
    return lists / apart >= k ? apart * k : 1;
}

/* Offers ranks that another launch left, AT_ONCE of each thread, `apart` from each other. */
KILN_INLINE void offer_ranks(const search *s, uint64_t start, uint64_t apart) {
    const kiln_vector_search_args *args = KILN_LATE_ARGS(kiln_vector_search_args, *s->args);
    const uint64_t *from = args->from + s->query * (uint64_t)args->rows;
    uint64_t ranks[AT_ONCE];
    KILN_UNROLL
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        const uint64_t at = start + (i * KILN_BLOCK + kiln_thread()) * apart;
        ranks[i] = at < s->end ? from[at] : 0;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < AT_ONCE; i++)
        offer(s, 0, ranks[i]);
}

/* Offers all of the slice and keeps the best. The sorted lists that another launch left are read twice: the k-th of the
 * greatest ranks of HEADS lists, or of fewer, is one that k of all ranks reach, and so gives the first floor. */
KILN_INLINE void choose(const search *s) {
    const kiln_vector_search_args *args = s->args;
    const bool joins = args->from;
    const bool copy = has_copy(args);
    const uint32_t step = joins ? AT_ONCE * KILN_BLOCK : ROWS * KILN_BLOCK >> args->lanes_log2;
    uint64_t first = s->start, apart = joins ? heads_apart(s) : 1;
    uint32_t waited = args->steps - 1; /* the first floor is wanted after the first step */
    KILN_LOOP
    do {
        const bool heads = apart > 1;
        if (joins) {
            offer_ranks(s, first, apart);
        } else {
            prefetch_row(s, first + step);
            if (copy && first + step <= s->end)
                offer_rows<1, true>(s, first);
            else
                offer_rows<QUERIES, false>(s, first);
        }
        if (!heads) first += step;
        const bool last = first >= s->end;
        if (!heads && !last && ++waited < args->steps) continue;
        keep_best(s, args->steps * step, heads || last);
        waited = 0;
        if (!heads) continue;
        if (kiln_thread() == 0) s->found->counts[0] = 0;
        if (kiln_thread() == 0) s->found->floors[0]--;
        apart = 1;
        kiln_barrier();
    } while (first < s->end);
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
    if (!args.from) prefetch_row(&s, s.start);
    if (!args.from) take_queries(&s, KILN_LATE_ARGS(kiln_vector_search_args, args), queries);
    kiln_barrier();
    if (!args.from) put_firsts(&s);
    kiln_barrier();
    choose(&s);
    put_chosen(&s, KILN_LATE_ARGS(kiln_vector_search_args, args));
}
