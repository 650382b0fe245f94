/* sample: a random column of each row of logits; choice.h says how it is chosen.
 *
 * A block processes a row. It reads the row once for each bit of a key, for top-k and for top-p, all but the first time
 * from a cache; the result does not depend on the order of the threads. To find a column, each thread measures a 256th
 * of the range that is left, and the share in which the column lies is the next range.
 *
 * Floor: one read of the row at memory bandwidth, and about 40 more readings from a cache for each of top-k and top-p.
 * Test: build/tests/ops/sample_test. Bench: build/kiln bench sample */
#include "kernels/common/combine.h"
#include "kernels/sample/choice.h"

/* What threads exchange: their own values, and those of their subgroups. */
typedef struct exchange {
    uint64_t threads[KILN_BLOCK];
    uint64_t subgroups[KILN_SUBGROUPS];
} exchange;

/* A row, and the shared memory of its block. */
typedef struct block_row {
    kiln_row row;
    exchange *shared;
} block_row;

KILN_INLINE exchange *shared_of(const kiln_row *row) {
    return ((const block_row *)(const void *)row)->shared;
}

KILN_INLINE float value_at(const kiln_row *row, uint32_t col) {
    return kiln_element_to_f32(((const kiln_element *)row->x)[col]);
}

/* Skips leading shares as long as they measure no more than *rest together, but never the last share. Their measures
 * are subtracted from *rest. Returns the number of the share that follows. */
KILN_INLINE uint32_t skip(const uint64_t *shares, uint32_t count, uint64_t *rest) {
    uint32_t found = 0;
    KILN_LOOP
    while (found < count - 1 && *rest >= shares[found])
        *rest -= shares[found++];
    return found;
}

KILN_INLINE uint32_t kiln_row_greatest(const kiln_row *row) {
    uint32_t greatest = 0;
    KILN_LOOP
    for (uint32_t col = kiln_thread(); col < row->cols; col += KILN_BLOCK) {
        uint32_t key = kiln_sample_key(value_at(row, col));
        greatest = key > greatest ? key : greatest;
    }
    return (uint32_t)kiln_combine_64(shared_of(row)->subgroups, greatest, KILN_REDUCE_MAX);
}

KILN_INLINE uint64_t kiln_row_sum(const kiln_row *row, kiln_choice choice, kiln_measure measure) {
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t col = kiln_thread(); col < row->cols; col += KILN_BLOCK)
        sum += kiln_sample_measure(row, choice, measure, value_at(row, col), col);
    return kiln_combine_64(shared_of(row)->subgroups, sum, KILN_REDUCE_SUM);
}

KILN_INLINE uint32_t kiln_row_key(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t need) {
    uint32_t key = 0;
    KILN_LOOP
    for (uint32_t bit = 0x80000000u; bit; bit >>= 1)
        if (kiln_row_sum(row, kiln_choice_from(row, choice, key | bit), measure) >= need) key |= bit;
    return key;
}

KILN_INLINE uint32_t kiln_row_find(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t rest) {
    exchange *shared = shared_of(row);
    uint32_t begin = 0, end = row->cols;
    KILN_LOOP
    while (end - begin > 1) {
        uint32_t share = (end - begin + KILN_BLOCK - 1) / KILN_BLOCK, first = begin + kiln_thread() * share;
        uint32_t last = first + share < end ? first + share : end;
        uint64_t sum = 0;
        KILN_LOOP
        for (uint32_t col = first; col < last; col++)
            sum += kiln_sample_measure(row, choice, measure, value_at(row, col), col);
        kiln_barrier(); /* the last values have been read by all */
        shared->threads[kiln_thread()] = sum;
        kiln_combine_64(shared->subgroups, sum, KILN_REDUCE_SUM);
        uint32_t found = skip(shared->subgroups, KILN_SUBGROUPS, &rest) * KILN_SUBGROUP;
        found += skip(shared->threads + found, KILN_SUBGROUP, &rest);
        begin += found * share;
        end = begin + share < end ? begin + share : end;
    }
    return begin;
}

KILN_ENTRY(sample, kiln_sample_args) {
    uint64_t number = kiln_block();
    if (number >= (uint64_t)args.rows) return; /* the whole block */
    KILN_SHARED exchange shared;
    block_row block = {{(const kiln_element *)args.x + number * (uint64_t)args.x_stride, args.cols, 0.0f, 0.0f, 0.0f},
                       &shared};
    int32_t col = kiln_choose(&args, &block.row, number);
    if (kiln_thread() == 0) args.y[number] = col;
}
