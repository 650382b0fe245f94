/* How a column is chosen, one source for all backends. They choose the same, since the sums are of integers.
 *
 * Elements are ranked by key (total_order.h), greater ones first, equal ones by their column. The set that is chosen
 * from, a kiln_choice, always consists of the first elements of this ranking. Where it ends is known for min-p, and is
 * found by sums over the row otherwise: of ones for top-k, of weights for top-p. A weight is e^((x - max) / T) in units
 * of 2^-40, rounded down.
 *
 * The includer, row_gpu.h or sample_cpu.c, defines KILN_INLINE and KILN_LOOP before it includes this, and after it the
 * functions kiln_row_*, which go over a row with many threads or with one. */
#ifndef KILN_KERNELS_SAMPLE_CHOICE_H
#define KILN_KERNELS_SAMPLE_CHOICE_H

#include "kernels/common/global.h"
#include "kernels/common/math/logarithm.h"
#include "kernels/common/reduce/total_order.h"
#include "kernels/common/sampling/philox.h"
#include "kernels/sample/sample_args.h"

typedef struct kiln_row {
    const void *x;
    uint32_t cols;
    float max;
    float inverse_temperature;
} kiln_row;

/* A row's own options, or those of all rows. */
typedef struct kiln_row_options {
    float temperature;
    int32_t top_k;
    float top_p;
    float min_p;
} kiln_row_options;

/* What a row's elements are filtered by. */
typedef struct kiln_filters {
    uint32_t top_k; /* 0: all */
    uint32_t least; /* the least key that min-p keeps; 0: all */
    float top_p;    /* 0: all */
} kiln_filters;

/* A set of a row's elements: those with this key before a column, and those with greater keys, up to `most`. If the key
 * is 0, so is `end`: elements with the key 0 are never in it. */
typedef struct kiln_choice {
    uint32_t key;
    uint32_t end;
    uint32_t most;
} kiln_choice;

#define KILN_NOWHERE 0xffffffffu

/* What is summed for each element: 1, or its weight. */
typedef enum kiln_measure { KILN_COUNT, KILN_WEIGHT } kiln_measure;

/* The key of a number; 0 for -inf and NaN, which cannot be chosen. */
KILN_INLINE uint32_t kiln_sample_key(float value) {
    return value > -KILN_INFINITY ? kiln_order_key(value) : 0;
}

/* Whether a choice contains the element with this key and column. */
KILN_INLINE bool kiln_sample_chosen(kiln_choice choice, uint32_t key, uint32_t col) {
    return key == choice.key ? col < choice.end : key > choice.key && key <= choice.most;
}

/* ln of a number's probability relative to that of the greatest, which is finite. It does not decrease as the number
 * grows. */
KILN_INLINE float kiln_sample_exponent(const kiln_row *row, float value) {
    return (value - row->max) * row->inverse_temperature;
}

/* The weight of a number, not yet rounded down. If the row has infinite elements, their weight is 1, and that of all
 * others 0. */
KILN_INLINE float kiln_sample_weight(const kiln_row *row, float value) {
    float weight = kiln_exp(kiln_sample_exponent(row, value)) * 0x1p40f,
          infinite = value == KILN_INFINITY ? 1.0f : 0.0f;
    return row->max == KILN_INFINITY ? infinite : weight;
}

/* The weight itself. */
KILN_INLINE uint64_t kiln_sample_units(const kiln_row *row, float value) {
    return (uint64_t)kiln_sample_weight(row, value);
}

#ifdef KILN_ROW_FEW
/* The chosen column, if it is found among few elements; else KILN_NOWHERE. all is what all elements weigh, where only
 * top-p filters. */
KILN_INLINE uint32_t kiln_row_few(const kiln_row *row, const kiln_filters *filters, uint64_t all, const uint64_t *bits);
/* Whether few elements may well have most of the weight. */
KILN_INLINE bool kiln_row_peaked(const kiln_row *row);
#endif
/* The measure of a whole choice. */
KILN_INLINE uint64_t kiln_row_sum(const kiln_row *row, kiln_choice choice, kiln_measure measure);
/* The first column such that the elements of a choice up to and including it measure more than `rest`. The whole choice
 * does, and kiln_row_sum has just found how much. */
KILN_INLINE uint32_t kiln_row_find(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t rest);
/* The greatest key such that the elements of a choice with that key or a greater one measure at least as much as a
 * filter keeps: top-k of ones, top-p of weights. *need is how much of it those with the key itself measure, or 0: all
 * of them are kept. Returns 0 if the whole choice is kept; *need is 0 then. */
KILN_INLINE uint32_t kiln_row_key(const kiln_row *row, kiln_choice choice, kiln_measure measure,
                                  const kiln_filters *filters, uint64_t *need);

/* A row's own number, or that of all rows. AMD's compiler would itself choose between the addresses, and read by an
 * access to any kind of memory. */
#if defined(__HIP__)
#define OF_ROW(type, rows, all) \
    (*KILN_GLOBAL(const type, (rows) ? (const type *)&(rows)[number] : (const type *)&(all)))
#else
#define OF_ROW(type, rows, all) ((rows) ? (type)(rows)[number] : (all))
#endif

/* The 64 random bits of a row. */
KILN_INLINE uint64_t kiln_sample_bits(const kiln_sample_args *args, uint64_t number) {
    uint64_t seed = OF_ROW(uint64_t, args->row_seed, args->seed), position = args->position;
    if (args->row_position && args->positions_64)
        position = (uint64_t)KILN_GLOBAL(const int64_t, args->row_position)[number];
    else if (args->row_position)
        position = (uint64_t)KILN_GLOBAL(const int32_t, args->row_position)[number];
    return kiln_philox(seed, position, args->row_seed ? 0 : number);
}

KILN_INLINE kiln_row_options kiln_options_of(const kiln_sample_args *args, uint64_t number) {
    kiln_row_options options = {
        OF_ROW(float, args->row_temperature, args->temperature), OF_ROW(int32_t, args->row_top_k, args->top_k),
        OF_ROW(float, args->row_top_p, args->top_p), OF_ROW(float, args->row_min_p, args->min_p)};
    return options;
}
#undef OF_ROW

/* The least key of the numbers, up to the greatest, whose exponent is at least this one: most often between two that
 * are close to where it would be without rounding. */
KILN_INLINE uint32_t kiln_least_key(const kiln_row *row, uint32_t greatest, float exponent) {
    float about = row->max + exponent * kiln_reciprocal(row->inverse_temperature);
    float error = (kiln_max(row->max, -row->max) + kiln_max(about, -about)) * 0x1p-20f;
    uint32_t low = kiln_sample_key(about - error), high = kiln_sample_key(about + error);
    uint32_t below = 0; /* some key whose number's exponent is less, or is none */
    if (low < greatest && kiln_sample_exponent(row, kiln_order_value(low)) < exponent) below = low;
    if (below < high && high < greatest && kiln_sample_exponent(row, kiln_order_value(high)) >= exponent)
        greatest = high;
    KILN_LOOP
    while (greatest - below > 1) {
        uint32_t middle = below + (greatest - below) / 2;
        bool enough = kiln_sample_exponent(row, kiln_order_value(middle)) >= exponent;
        greatest = enough ? middle : greatest;
        below = enough ? below : middle;
    }
    return greatest;
}

/* The filters of a row, whose greatest key is not 0. Sets max and inverse_temperature. A temperature of 0 is a top_k of
 * 1. */
KILN_INLINE kiln_filters kiln_filters_of(kiln_row *row, kiln_row_options options, uint32_t greatest) {
    kiln_filters greedy = {1, 0, 0.0f}, filters = {0, 0, 0.0f};
    row->max = kiln_order_value(greatest);
    row->inverse_temperature = 1.0f;
    if (!(options.temperature >= 1e-6f)) return greedy;
    row->inverse_temperature = kiln_reciprocal(options.temperature < 1e6f ? options.temperature : 1e6f);
    if (options.top_k > 0 && (uint32_t)options.top_k < row->cols) filters.top_k = (uint32_t)options.top_k;
    if (options.top_p > 0.0f && options.top_p < 1.0f) filters.top_p = options.top_p;
    if (options.min_p >= 0x1p-126f && row->max < KILN_INFINITY)
        filters.least = kiln_least_key(row, greatest, options.min_p < 1.0f ? kiln_log(options.min_p) : 0.0f);
    return filters;
}

/* How much of all weights top-p keeps: from 1 to all of them, which is positive. */
KILN_INLINE uint64_t kiln_sample_need(float top_p, uint64_t all) {
    double enough = (double)top_p * (double)all;
    uint64_t need = (uint64_t)enough;
    need += (double)need < enough ? 1 : 0;
    return need > all ? all : need < 1 ? 1 : need;
}

/* The chosen column, from the row's random bits: among few elements if it can be found there, else by sums over the
 * row.
 *
 * Top-k and then top-p shorten the choice to the fewest of its first elements that measure at least as much as these
 * keep: the key of the last of them is found in one step, its column in the next, among the elements with that key,
 * which weigh the same. The last step draws.
 * The steps are a loop, so that an image has one copy of what they call. */
KILN_INLINE uint32_t kiln_choose(const kiln_row *row, const kiln_filters *filters, const uint64_t *bits) {
    enum { TOP_K, TOP_K_EQUAL, TOP_P, TOP_P_EQUAL, DRAW };
#ifdef KILN_ROW_FEW
    bool only_top_p = !filters->top_k && !filters->least;
    if (!only_top_p || (filters->top_p != 0.0f && kiln_row_peaked(row))) {
        const kiln_choice whole = {0, 0, 0xffffffffu};
        uint64_t all = only_top_p ? kiln_row_sum(row, whole, KILN_WEIGHT) : 0;
        uint32_t col = kiln_row_few(row, filters, all, bits);
        if (col != KILN_NOWHERE) return col;
    }
#endif
    kiln_choice choice = {filters->least, filters->least ? row->cols : 0, 0xffffffffu};
    uint64_t need = 0;
    KILN_LOOP
    for (int step = TOP_K; step <= DRAW; step++) {
        bool equal = step == TOP_K_EQUAL || step == TOP_P_EQUAL;
        if ((step == TOP_K && !filters->top_k) || (step == TOP_P && filters->top_p == 0.0f) || (equal && !need))
            continue;
        if (equal || step == DRAW) {
            kiln_measure measure = equal ? KILN_COUNT : KILN_WEIGHT;
            uint64_t all = kiln_row_sum(row, choice, measure);
            uint64_t each = step == TOP_P_EQUAL ? kiln_sample_units(row, kiln_order_value(choice.key)) : 1;
            uint64_t rest = equal ? (need - 1) / each : kiln_scaled(*bits, all);
            choice.end = kiln_row_find(row, choice, measure, rest) + 1;
            choice.most = 0xffffffffu;
            need = 0;
            continue;
        }
        uint32_t key = kiln_row_key(row, choice, step == TOP_K ? KILN_COUNT : KILN_WEIGHT, filters, &need);
        if (!key) continue;
        choice.most = need ? key : 0xffffffffu;
        choice.end = key > choice.key ? row->cols : choice.end;
        choice.key = key;
    }
    return choice.end - 1;
}

#endif
