/* How a column is chosen, one text for all backends: they choose the same, since what is added up is integers.
 *
 * Elements are ranked by key (total_order.h), greater ones first, and equal ones by their column. What is chosen from
 * is always a beginning of this ranking. Where it ends is found by sums over the row: of ones for top-k, of weights for
 * top-p. A weight is e^((x - max) / T) in units of 2^-40, rounded down.
 *
 * The includer, sample_gpu.c or sample_cpu.c, defines KILN_INLINE before, and behind the ways to go over a row with
 * many threads or one: the functions kiln_row_. */
#ifndef KILN_KERNELS_SAMPLE_CHOICE_H
#define KILN_KERNELS_SAMPLE_CHOICE_H

#include "kernels/common/total_order.h"
#include "kernels/sample/sample_args.h"

typedef struct kiln_row {
    const void *x;
    uint32_t cols;
    float max;
    float inverse_temperature;
} kiln_row;

/* Elements of a row: those with this key before a column, and those with greater keys up to most. */
typedef struct kiln_choice {
    uint32_t key;
    uint32_t end;
    uint32_t most;
} kiln_choice;

typedef enum kiln_measure { KILN_COUNT, KILN_WEIGHT } kiln_measure;

/* Of a number that can be chosen; 0 for -inf and NaN. */
KILN_INLINE uint32_t kiln_sample_key(float value) {
    return value > -KILN_INFINITY ? kiln_order_key(value) : 0;
}

/* Whether a choice has the element with this key and column. */
KILN_INLINE bool kiln_sample_chosen(kiln_choice choice, uint32_t key, uint32_t col) {
    bool inside = key == choice.key ? col < choice.end : key > choice.key && key <= choice.most;
    return inside && key;
}

/* The weight of a number, not yet rounded down. Where there are infinite ones it is 1 for them and 0 for all others. */
KILN_INLINE float kiln_sample_weight(const kiln_row *row, float value) {
    if (row->max == KILN_INFINITY) return value == KILN_INFINITY ? 1.0f : 0.0f;
    return kiln_exp((value - row->max) * row->inverse_temperature) * 0x1p40f;
}

/* What an element adds to the measure of a choice. */
KILN_INLINE uint64_t kiln_sample_measure(const kiln_row *row, kiln_choice choice, kiln_measure measure, float value,
                                         uint32_t col) {
    if (!kiln_sample_chosen(choice, kiln_sample_key(value), col)) return 0;
    return measure == KILN_COUNT ? 1 : (uint64_t)kiln_sample_weight(row, value);
}

/* The greatest key. */
KILN_INLINE uint32_t kiln_row_greatest(const kiln_row *row);
/* What all of a choice measures. */
KILN_INLINE uint64_t kiln_row_sum(const kiln_row *row, kiln_choice choice, kiln_measure measure);
/* The first column up to which, with it, a choice measures more than rest; all of it does. */
KILN_INLINE uint32_t kiln_row_find(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t rest);
/* The greatest key down to which a choice measures at least need, which all of it does. */
KILN_INLINE uint32_t kiln_row_key(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t need);

/* The beginning of a choice down to a key. */
KILN_INLINE kiln_choice kiln_choice_from(const kiln_row *row, kiln_choice choice, uint32_t key) {
    kiln_choice shorter = {key, row->cols, 0xffffffffu};
    return key > choice.key ? shorter : choice;
}

/* The shortest beginning of a choice that measures at least need: at least 1, and no more than all of it. */
KILN_INLINE kiln_choice kiln_shortest(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t need) {
    uint32_t key = kiln_row_key(row, choice, measure, need);
    kiln_choice shorter = kiln_choice_from(row, choice, key), above = shorter, equal = shorter;
    above.end = 0;
    equal.most = shorter.key;
    shorter.end = kiln_row_find(row, equal, measure, need - 1 - kiln_row_sum(row, above, measure)) + 1;
    return shorter;
}

/* 64 random bits: Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 */
KILN_INLINE uint64_t kiln_philox(uint64_t seed, uint64_t draw, uint64_t row) {
    uint32_t a = (uint32_t)draw, b = (uint32_t)(draw >> 32), c = (uint32_t)row, d = (uint32_t)(row >> 32);
    uint32_t key = (uint32_t)seed, other_key = (uint32_t)(seed >> 32);
    KILN_LOOP
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)a * 0xd2511f53u, second = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(second >> 32) ^ b ^ key;
        c = (uint32_t)(first >> 32) ^ d ^ other_key;
        b = (uint32_t)second;
        d = (uint32_t)first;
        key += 0x9e3779b9u;
        other_key += 0xbb67ae85u;
    }
    return (uint64_t)b << 32 | a;
}

/* A number from 0 to count - 1 of 64 random bits: the upper half of their product. */
KILN_INLINE uint64_t kiln_scaled(uint64_t bits, uint64_t count) {
    uint64_t low = (uint32_t)bits * (count >> 32), high = (bits >> 32) * (uint32_t)count;
    uint64_t lowest = (bits & 0xffffffffu) * (count & 0xffffffffu);
    uint64_t carry = ((lowest >> 32) + (uint32_t)low + (uint32_t)high) >> 32;
    return (bits >> 32) * (count >> 32) + (low >> 32) + (high >> 32) + carry;
}

/* The column; -1 if there is none. */
KILN_INLINE int32_t kiln_choose(const kiln_sample_args *args, kiln_row *row, uint64_t number) {
    uint32_t greatest = kiln_row_greatest(row);
    kiln_choice choice = {greatest, row->cols, greatest};
    if (!greatest) return -1;
    if (args->inverse_temperature == 0.0f) return (int32_t)kiln_row_find(row, choice, KILN_COUNT, 0);
    row->max = kiln_order_value(greatest);

    choice.key = 0;
    choice.most = 0xffffffffu;
    if (args->top_k && kiln_row_sum(row, choice, KILN_COUNT) > args->top_k)
        choice = kiln_shortest(row, choice, KILN_COUNT, args->top_k);
    uint64_t all = kiln_row_sum(row, choice, KILN_WEIGHT);
    if (args->top_p < 1.0f) {
        double enough = (double)args->top_p * (double)all;
        uint64_t need = (uint64_t)enough;
        need += (double)need < enough ? 1 : 0;
        need = need > all ? all : need < 1 ? 1 : need;
        choice = kiln_shortest(row, choice, KILN_WEIGHT, need);
        all = kiln_row_sum(row, choice, KILN_WEIGHT);
    }
    uint64_t draw = args->draws ? (uint64_t)args->draws[number] : 0;
    return (int32_t)kiln_row_find(row, choice, KILN_WEIGHT, kiln_scaled(kiln_philox(args->seed, draw, number), all));
}

#endif
