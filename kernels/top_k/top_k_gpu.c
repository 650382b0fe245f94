/* top_k: the k greatest elements of each row, the greatest first, with their columns; of equal elements the lower
 * column comes first, and NaN counts as greater than all.
 *
 * A block has a chunk of a row in registers, 16 keys per thread (total_order.h), and finds the k-th greatest key digit
 * by digit, eleven bits at a time, the highest digit first: in shared memory it counts the keys that agree so far by
 * their next digit, and adds the counts from the greatest digit on until they reach k. Keys of 16-bit elements differ
 * only in their upper 22 bits, so two digits are enough. Where more elements equal the k-th than are wanted, the lowest
 * columns among them are found in the same way. The chosen elements go to shared memory in any order and are sorted if
 * they are the result (a bitonic sort of ranks: key and column as one number, no two of which are equal). So the result
 * depends neither on the order of threads nor on how a row is divided.
 *
 * Rows of more than a chunk take several launches: each leaves k candidates of each chunk in the workspace, until those
 * of a row are one chunk. With 128256 columns and k up to 128 these are two launches, the second over 1/32 of the
 * elements.
 *
 * Floor: one read of the tensor at memory bandwidth. Not measured.
 * Test: build/tests/ops/top_k_test. Bench: build/kiln bench top_k */
#include "kernels/common/atomic.h"
#include "kernels/common/rank_sort.h"
#include "kernels/common/reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/total_order.h"
#include "kernels/top_k/top_k_args.h"

enum {
    SLOTS = KILN_TOP_K_CHUNK / KILN_BLOCK, /* keys per thread */
    DIGIT_BITS = 11,
    BINS = 1 << DIGIT_BITS,
    THREAD_BINS = BINS / KILN_BLOCK,
    KEY_LOW = sizeof(kiln_element) == 4 ? 0 : 10 /* bits of a key that are 0 */
};

typedef struct exchange {
    uint32_t bins[BINS];              /* how many keys have each digit */
    uint64_t ranks[KILN_TOP_K_RANKS]; /* what was chosen */
    uint32_t sums[KILN_SUBGROUPS];
    uint32_t digit, need, equal;
    uint32_t count; /* how many ranks there are */
} exchange;

/* The key of an element; 0, which no element has, where there is none. */
KILN_INLINE uint32_t key_of(kiln_element element) {
    return kiln_order_key(kiln_element_to_f32(element)) >> KEY_LOW << KEY_LOW;
}

/* ---- What a thread has: slot i of vectors is element i % KILN_VECTOR of vector i / KILN_VECTOR ---- */

KILN_INLINE uint32_t element_of(uint32_t slot) {
    return (slot / KILN_VECTOR * KILN_BLOCK + kiln_thread()) * KILN_VECTOR + slot % KILN_VECTOR;
}

/* slot is the thread's own shared memory. */
KILN_INLINE void take_elements(uint32_t *keys, kiln_span s, const kiln_element *x, kiln_vector *slot) {
    KILN_UNROLL
    for (uint32_t i = 0; i < SLOTS; i += KILN_VECTOR) {
        uint32_t first = element_of(i);
        kiln_vector vector;
        if (first / KILN_VECTOR < s.whole) {
            vector = kiln_vector_load(x + first);
        } else {
            kiln_vector_gather(slot, x + first, first < s.count ? s.count - first : 0, 0);
            vector = *slot;
        }
        KILN_UNROLL
        for (uint32_t j = 0; j < KILN_VECTOR; j++) {
            uint32_t bit = j * (uint32_t)sizeof(kiln_element) * 8;
            uint32_t key = key_of((kiln_element)(vector.words[bit / 32] >> bit % 32));
            keys[i + j] = first + j < s.count ? key : 0;
        }
    }
}

/* The elements or candidates of a block. */
typedef struct source {
    bool candidates;
    const kiln_top_k_candidate *from;
    const kiln_element *x; /* the chunk's first */
    uint32_t start;        /* its column */
} source;

KILN_INLINE uint32_t col_of(source from, uint32_t slot) {
    return from.candidates ? from.from[element_of(slot)].col : from.start + element_of(slot);
}

KILN_INLINE uint64_t rank_of(source from, uint32_t slot) {
    uint32_t key = from.candidates ? from.from[element_of(slot)].key : key_of(from.x[element_of(slot)]);
    return (uint64_t)key << 32 | (uint32_t)~col_of(from, slot);
}

/* ---- The k-th greatest ---- */

/* The sum of the values of the threads before this one. */
KILN_INLINE uint32_t sum_before(exchange *shared, uint32_t value) {
    uint32_t before = 0, sum = value, lane = kiln_thread() % KILN_SUBGROUP;
    KILN_UNROLL
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

/* The *need-th greatest of the block's keys, whose bits below `low` are 0. *need becomes the number of keys equal to it
 * that are among the greatest. */
KILN_INLINE uint32_t find_key(exchange *shared, const uint32_t *keys, uint32_t low, uint32_t *need) {
    uint32_t key = 0;
    KILN_LOOP
    for (uint32_t left = 32, bits; left > low; left -= bits) {
        bits = left - low < DIGIT_BITS ? left - low : DIGIT_BITS;
        KILN_UNROLL
        for (uint32_t i = 0; i < THREAD_BINS; i++)
            shared->bins[i * KILN_BLOCK + kiln_thread()] = 0;
        kiln_barrier();
        KILN_UNROLL
        for (uint32_t i = 0; i < SLOTS; i++) {
            uint32_t digits = keys[i] >> (left - bits);
            if (keys[i] && digits >> bits == key) kiln_shared_add(&shared->bins[digits & ((1u << bits) - 1)], 1);
        }
        kiln_barrier();
        key = key << bits | find_digit(shared, need);
    }
    return key << low;
}

/* ---- What was chosen ---- */

/* Leaves the ranks of the `count` greatest keys in shared memory. */
KILN_INLINE void choose_greatest(exchange *shared, uint32_t *keys, source from, uint32_t count) {
    uint32_t need = count, low = KEY_LOW;
    KILN_LOOP
    while (need) { /* once for the keys, and once for the columns of those that equal the last one */
        uint32_t least = find_key(shared, keys, low, &need), chosen = 0;
        bool all = shared->equal == need;
        KILN_UNROLL
        for (uint32_t i = 0; i < SLOTS; i++)
            chosen |= keys[i] > least || (keys[i] == least && all) ? 1u << i : 0;
        KILN_LOOP
        for (; chosen; chosen &= chosen - 1) {
            uint32_t slot = 31 - (uint32_t)__builtin_clz(chosen & (0 - chosen));
            shared->ranks[kiln_shared_add(&shared->count, 1)] = rank_of(from, slot);
        }
        if (all) break;
        KILN_UNROLL
        for (uint32_t i = 0; i < SLOTS; i++)
            keys[i] = keys[i] == least ? ~col_of(from, i) : 0;
        low = 0;
    }
    kiln_barrier();
}

KILN_ENTRY(top_k, kiln_top_k_args) {
    KILN_SHARED exchange shared;
    kiln_span s = kiln_span_of(&args.shape);
    if (s.row >= (uint64_t)args.shape.rows) return; /* the whole block */
    const kiln_element *x = (const kiln_element *)args.x + s.row * (uint64_t)args.x_stride;
    const source from = {
        .candidates = args.from != 0,
        .from = args.from + s.row * (uint64_t)args.shape.cols + s.start,
        .x = x + s.start,
        .start = (uint32_t)s.start,
    };
    uint32_t keys[SLOTS];
    if (kiln_thread() == 0) shared.count = 0;
    if (from.candidates) {
        KILN_UNROLL
        for (uint32_t i = 0; i < SLOTS; i++)
            keys[i] = element_of(i) < s.count ? from.from[element_of(i)].key : 0;
    } else {
        take_elements(keys, s, from.x, (kiln_vector *)shared.bins + kiln_thread());
    }
    kiln_barrier(); /* the slots become bins next */
    uint32_t count = s.count < args.k ? s.count : args.k;
    choose_greatest(&shared, keys, from, count);

    if (args.to) {
        kiln_top_k_candidate *to = args.to + s.row * args.to_count + (uint64_t)kiln_tile() * args.k;
        KILN_LOOP
        for (uint32_t i = kiln_thread(); i < count; i += KILN_BLOCK)
            to[i] = (kiln_top_k_candidate){(uint32_t)(shared.ranks[i] >> 32), (uint32_t)~shared.ranks[i]};
        return;
    }
    kiln_rank_sort(shared.ranks, count);
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < count; i += KILN_BLOCK) {
        uint32_t col = (uint32_t)~shared.ranks[i];
        uint64_t at = s.row * args.k + i;
        args.indices[at] = (int32_t)col;
        if (args.values) ((kiln_element *)args.values)[at] = x[col];
    }
}
