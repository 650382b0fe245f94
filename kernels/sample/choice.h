/* How a column is chosen, one source for all backends. They choose the same, since the sums are of integers.
 *
 * Elements are ranked by key (total_order.h), greater ones first, equal ones by their column. The set that is chosen
 * from, a kiln_choice, always consists of the first elements of this ranking. Where it ends is found by sums over the
 * row: of ones for top-k and min-p, of weights for top-p. A weight is e^((x - max) / T) in units of 2^-40, rounded
 * down.
 *
 * The includer, sample_gpu.c or sample_cpu.c, defines KILN_INLINE before it includes this, and after it the functions
 * kiln_row_*, which go over a row with many threads or with one. */
#ifndef KILN_KERNELS_SAMPLE_CHOICE_H
#define KILN_KERNELS_SAMPLE_CHOICE_H

#include "kernels/common/logarithm.h"
#include "kernels/common/philox.h"
#include "kernels/common/total_order.h"
#include "kernels/sample/sample_args.h"

typedef struct kiln_row {
    const void *x;
    uint32_t cols;
    float max;
    float inverse_temperature;
    float least_exponent; /* ln of min-p */
} kiln_row;

/* A set of a row's elements: those with this key before a column, and those with greater keys, up to `most`. */
typedef struct kiln_choice {
    uint32_t key;
    uint32_t end;
    uint32_t most;
} kiln_choice;

/* What is summed for each element: 1; 1 if its probability is at least min-p times the greatest; its weight. */
typedef enum kiln_measure { KILN_COUNT, KILN_LIKELY, KILN_WEIGHT } kiln_measure;

/* The key of a number; 0 for -inf and NaN, which cannot be chosen. */
KILN_INLINE uint32_t kiln_sample_key(float value) {
    return value > -KILN_INFINITY ? kiln_order_key(value) : 0;
}

/* Whether a choice contains the element with this key and column. */
KILN_INLINE bool kiln_sample_chosen(kiln_choice choice, uint32_t key, uint32_t col) {
    bool inside = key == choice.key ? col < choice.end : key > choice.key && key <= choice.most;
    return inside && key;
}

/* ln of a number's probability relative to that of the greatest, which is finite. It does not decrease as the number
 * grows. */
KILN_INLINE float kiln_sample_exponent(const kiln_row *row, float value) {
    return (value - row->max) * row->inverse_temperature;
}

/* The weight of a number, not yet rounded down. If the row has infinite elements, their weight is 1, and that of all
 * others 0. */
KILN_INLINE float kiln_sample_weight(const kiln_row *row, float value) {
    if (row->max == KILN_INFINITY) return value == KILN_INFINITY ? 1.0f : 0.0f;
    return kiln_exp(kiln_sample_exponent(row, value)) * 0x1p40f;
}

/* What an element contributes to the measure of a choice. */
KILN_INLINE uint64_t kiln_sample_measure(const kiln_row *row, kiln_choice choice, kiln_measure measure, float value,
                                         uint32_t col) {
    if (!kiln_sample_chosen(choice, kiln_sample_key(value), col)) return 0;
    if (measure == KILN_LIKELY) return kiln_sample_exponent(row, value) >= row->least_exponent;
    return measure == KILN_COUNT ? 1 : (uint64_t)kiln_sample_weight(row, value);
}

/* The greatest key. */
KILN_INLINE uint32_t kiln_row_greatest(const kiln_row *row);
/* The measure of a whole choice. */
KILN_INLINE uint64_t kiln_row_sum(const kiln_row *row, kiln_choice choice, kiln_measure measure);
/* The first column such that the elements of a choice up to and including it measure more than `rest`. The whole choice
 * does. */
KILN_INLINE uint32_t kiln_row_find(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t rest);
/* The greatest key such that the elements of a choice with that key or a greater one measure at least `need`. The whole
 * choice does. */
KILN_INLINE uint32_t kiln_row_key(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t need);

/* The elements of a choice with this key or a greater one. */
KILN_INLINE kiln_choice kiln_choice_from(const kiln_row *row, kiln_choice choice, uint32_t key) {
    kiln_choice shorter = {key, row->cols, 0xffffffffu};
    return key > choice.key ? shorter : choice;
}

/* The fewest first elements of a choice that measure at least `need`, which is from 1 to the measure of the whole
 * choice. */
KILN_INLINE kiln_choice kiln_shortest(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t need) {
    uint32_t key = kiln_row_key(row, choice, measure, need);
    kiln_choice shorter = kiln_choice_from(row, choice, key), above = shorter, equal = shorter;
    above.end = 0;
    equal.most = shorter.key;
    shorter.end = kiln_row_find(row, equal, measure, need - 1 - kiln_row_sum(row, above, measure)) + 1;
    return shorter;
}

/* The 64 random bits of a row. */
KILN_INLINE uint64_t kiln_sample_bits(const kiln_sample_args *args, uint64_t number) {
    uint64_t seed = args->seed, position = args->position;
    if (args->row_seed) seed = (uint64_t)args->row_seed[number];
    if (args->row_position && args->positions_64)
        position = (uint64_t)((const int64_t *)args->row_position)[number];
    else if (args->row_position)
        position = (uint64_t)((const int32_t *)args->row_position)[number];
    return kiln_philox(seed, position, args->row_seed ? 0 : number);
}

/* An option of a row: its own, or the one for all rows. */
KILN_INLINE float kiln_row_option(const float *own, uint64_t number, float of_all) {
    return own ? own[number] : of_all;
}

/* How many of the greatest elements remain after top-k and min-p; 0: all. */
KILN_INLINE uint32_t kiln_row_limit(const kiln_sample_args *args, kiln_row *row, kiln_choice all, uint64_t number) {
    int32_t top_k = args->row_top_k ? args->row_top_k[number] : args->top_k;
    float min_p = kiln_row_option(args->row_min_p, number, args->min_p);
    uint32_t limit = top_k > 0 && (uint32_t)top_k < row->cols ? (uint32_t)top_k : 0;
    if (!(min_p >= 0x1p-126f) || row->max == KILN_INFINITY) return limit;
    row->least_exponent = min_p < 1.0f ? kiln_log(min_p) : 0.0f;
    uint32_t likely = (uint32_t)kiln_row_sum(row, all, KILN_LIKELY);
    return limit && limit < likely ? limit : likely;
}

/* The chosen column; -1 if there is none. */
KILN_INLINE int32_t kiln_choose(const kiln_sample_args *args, kiln_row *row, uint64_t number) {
    uint32_t greatest = kiln_row_greatest(row);
    kiln_choice choice = {greatest, row->cols, greatest};
    if (!greatest) return -1;
    float temperature = kiln_row_option(args->row_temperature, number, args->temperature);
    if (!(temperature >= 1e-6f)) return (int32_t)kiln_row_find(row, choice, KILN_COUNT, 0);
    row->inverse_temperature = 1.0f / (temperature < 1e6f ? temperature : 1e6f);
    row->max = kiln_order_value(greatest);

    choice.key = 0;
    choice.most = 0xffffffffu;
    uint32_t limit = kiln_row_limit(args, row, choice, number);
    if (limit && kiln_row_sum(row, choice, KILN_COUNT) > limit) choice = kiln_shortest(row, choice, KILN_COUNT, limit);
    uint64_t all = kiln_row_sum(row, choice, KILN_WEIGHT);
    float top_p = kiln_row_option(args->row_top_p, number, args->top_p);
    if (top_p > 0.0f && top_p < 1.0f) {
        double enough = (double)top_p * (double)all;
        uint64_t need = (uint64_t)enough;
        need += (double)need < enough ? 1 : 0;
        need = need > all ? all : need < 1 ? 1 : need;
        choice = kiln_shortest(row, choice, KILN_WEIGHT, need);
        all = kiln_row_sum(row, choice, KILN_WEIGHT);
    }
    return (int32_t)kiln_row_find(row, choice, KILN_WEIGHT, kiln_scaled(kiln_sample_bits(args, number), all));
}

#endif
