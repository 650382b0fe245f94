/* sample on the CPU, and its definition: see choice.h.
 *
 * Where top-k or top-p ends is found in up to six readings of the row: one for how much there is, three for the key of
 * the last element, one for each of its digits, and two for its column. The weights are computed again in each but the
 * last two.
 *
 * Floor: one read of the row at memory bandwidth, and about 6 more readings from a cache for each of top-k and top-p.
 * Test: build/tests/ops/sample_test. Bench: build/kiln bench sample --device cpu */
#include "kernels/common/cpu.h"
#define KILN_LOOP
#include "kernels/sample/choice.h"

/* A tile of a row: its elements as f32, their keys, and what they contribute to a measure. */
typedef struct row_tile {
    float values[KILN_TILE];
    uint32_t keys[KILN_TILE];
    uint64_t measures[KILN_TILE];
} row_tile;

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS }; /* of a key */

/* Working memory for a row. */
typedef struct sample_scratch {
    row_tile tile;
    uint64_t sums[DIGITS];
} sample_scratch;
_Static_assert(sizeof(sample_scratch) <= KILN_CPU_SCRATCH, "fits");

/* A kiln_row with its dtype. */
typedef struct typed_row {
    kiln_row row;
    kiln_cpu_dtype dtype;
    sample_scratch *scratch;
} typed_row;

KILN_INLINE sample_scratch *scratch_of(const kiln_row *row) {
    return ((const typed_row *)(const void *)row)->scratch;
}

/* Finds the keys of the elements from col on, at most a tile; *count is how many. Returns the elements. */
KILN_INLINE const float *take_keys(const kiln_row *row, row_tile *tile, uint32_t col, size_t *count) {
    kiln_cpu_dtype dtype = ((const typed_row *)(const void *)row)->dtype;
    size_t n = kiln_min(row->cols - col, KILN_TILE);
    const float *values = kiln_tile_read(tile->values, kiln_at(row->x, col, dtype), n, dtype);
    KILN_INDEPENDENT
    for (size_t i = 0; i < n; i++)
        tile->keys[i] = kiln_sample_key(values[i]);
    *count = n;
    return values;
}

/* What each element contributes to the measure of a choice that contains it, as f32. row is a copy, which no store can
 * change. */
KILN_INLINE void take_weights(float *weights, const float *values, size_t count, kiln_row row) {
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        weights[i] = kiln_sample_weight(&row, values[i]);
}

/* Measures the elements of a tile that a choice contains, and finds their keys too. Returns the sum. One function for
 * all dtypes, called for a tile at a time: inlined at its dozen calls per dtype it took the compiler seconds and ran no
 * faster. */
static __attribute__((noinline)) uint64_t take_measures(const kiln_row *row, kiln_choice choice, kiln_measure measure,
                                                        row_tile *tile, uint32_t col, size_t *count) {
    const float *values = take_keys(row, tile, col, count);
    size_t n = *count;
    uint64_t sum = 0;
    if (measure == KILN_WEIGHT) take_weights(tile->values, values, n, *row);
    KILN_INDEPENDENT
    for (size_t i = 0; i < n; i++) {
        float one = measure == KILN_COUNT ? 1.0f : tile->values[i];
        tile->values[i] = kiln_sample_chosen(choice, tile->keys[i], col + (uint32_t)i) ? one : 0.0f;
    }
    for (size_t i = 0; i < n; i++)
        sum += tile->measures[i] = (uint64_t)(int64_t)tile->values[i];
    return sum;
}

/* The greatest key. */
KILN_INLINE uint32_t row_greatest(const kiln_row *row) {
    row_tile *tile = &scratch_of(row)->tile;
    uint32_t greatest = 0;
    size_t count;
    for (uint32_t col = 0; col < row->cols; col += (uint32_t)count) {
        take_keys(row, tile, col, &count);
        for (size_t i = 0; i < count; i++)
            greatest = tile->keys[i] > greatest ? tile->keys[i] : greatest;
    }
    return greatest;
}

KILN_INLINE uint64_t kiln_row_sum(const kiln_row *row, kiln_choice choice, kiln_measure measure) {
    uint64_t sum = 0;
    size_t count;
    for (uint32_t col = 0; col < row->cols; col += (uint32_t)count)
        sum += take_measures(row, choice, measure, &scratch_of(row)->tile, col, &count);
    return sum;
}

/* Digit by digit, the highest first: the measures of the elements that agree in the digits so far are summed for each
 * value of their next digit, and these sums are added from the greatest digit on until they suffice. */
KILN_INLINE uint32_t kiln_row_key(const kiln_row *row, kiln_choice choice, kiln_measure measure,
                                  const kiln_filters *filters, uint64_t *need) {
    sample_scratch *scratch = scratch_of(row);
    row_tile *tile = &scratch->tile;
    uint64_t all = kiln_row_sum(row, choice, measure);
    uint32_t key = 0;
    size_t count;
    *need = measure == KILN_COUNT ? filters->top_k : kiln_sample_need(filters->top_p, all);
    if (*need >= all) {
        *need = 0;
        return 0;
    }
    for (unsigned left = 32, bits; left > 0; left -= bits) {
        bits = left % DIGIT_BITS ? left % DIGIT_BITS : DIGIT_BITS;
        unsigned shift = left - bits;
        uint32_t digit = (1u << bits) - 1;
        memset(scratch->sums, 0, sizeof scratch->sums);
        for (uint32_t col = 0; col < row->cols; col += (uint32_t)count) {
            take_measures(row, choice, measure, tile, col, &count);
            for (size_t i = 0; i < count; i++)
                if ((uint64_t)tile->keys[i] >> left == (uint64_t)key >> left)
                    scratch->sums[tile->keys[i] >> shift & digit] += tile->measures[i];
        }
        for (; scratch->sums[digit] < *need; digit--)
            *need -= scratch->sums[digit];
        key |= digit << shift;
        if (!shift && scratch->sums[digit] == *need) *need = 0;
    }
    return key;
}

KILN_INLINE uint32_t kiln_row_find(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t rest) {
    row_tile *tile = &scratch_of(row)->tile;
    size_t count, i = 0;
    uint32_t col = 0;
    for (; col < row->cols; col += (uint32_t)count) {
        uint64_t sum = take_measures(row, choice, measure, tile, col, &count);
        if (rest < sum) break;
        rest -= sum;
    }
    if (col == row->cols) return col - 1;
    for (; rest >= tile->measures[i]; i++)
        rest -= tile->measures[i];
    return col + (uint32_t)i;
}

KILN_OUTLINED void sample(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_sample_args args = *(const kiln_sample_args *)arguments; /* a copy, which no store can change */
    uint64_t rows = kiln_min(span->end * args.each, (uint64_t)args.rows);
    for (uint64_t number = span->begin * args.each; number < rows; number++) {
        typed_row row = {.row = {.x = kiln_at(args.x, number * (uint64_t)args.x_stride, dtype), .cols = args.cols},
                         .dtype = dtype,
                         .scratch = span->scratch};
        uint32_t greatest = row_greatest(&row.row);
        args.y[number] = -1;
        if (!greatest) continue;
        kiln_filters filters = kiln_filters_of(&row.row, kiln_options_of(&args, number), greatest);
        const uint64_t bits = kiln_sample_bits(&args, number);
        args.y[number] = (int32_t)kiln_choose(&row.row, &filters, &bits);
    }
}
KILN_CPU_KERNEL(sample)
