/* sample: a random column of each row of logits; choice.h says how it is chosen.
 *
 * A group does a row. It goes over the row once for each bit of a key, for top-k and for top-p, and the row comes from
 * a cache after the first time; what is found does not depend on the order of its threads. To find a column, each
 * thread measures a 256th of what is left of the row, and the one that has it gives the next range.
 *
 * Floor: one read of the row at memory bandwidth, and some 40 readings more from a cache for each of top-k and top-p.
 * Test: build/tests/ops/sample_test */
#include "kernels/common/device.h"
#include "kernels/sample/choice.h"

/* What threads tell each other. */
KILN_INLINE uint64_t *exchange(void) {
    KILN_SHARED uint64_t values[KILN_GROUP];
    return values;
}

KILN_INLINE float value_at(const kiln_row *row, uint32_t col) {
    return kiln_element_to_f32(((const kiln_element *)row->x)[col]);
}

/* Of all threads' values the sum, or the greatest. */
KILN_INLINE uint64_t combine(uint64_t value, bool sum) {
    uint64_t *values = exchange(), result = 0;
    kiln_barrier(); /* the last values have been read by all */
    values[kiln_thread()] = value;
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_GROUP; i++)
        result = sum ? result + values[i] : result > values[i] ? result : values[i];
    return result;
}

KILN_INLINE uint32_t kiln_row_greatest(const kiln_row *row) {
    uint32_t greatest = 0;
    KILN_LOOP
    for (uint32_t col = kiln_thread(); col < row->cols; col += KILN_GROUP) {
        uint32_t key = kiln_sample_key(value_at(row, col));
        greatest = key > greatest ? key : greatest;
    }
    return (uint32_t)combine(greatest, false);
}

KILN_INLINE uint64_t kiln_row_sum(const kiln_row *row, kiln_choice choice, kiln_measure measure) {
    uint64_t sum = 0;
    KILN_LOOP
    for (uint32_t col = kiln_thread(); col < row->cols; col += KILN_GROUP)
        sum += kiln_sample_measure(row, choice, measure, value_at(row, col), col);
    return combine(sum, true);
}

KILN_INLINE uint32_t kiln_row_find(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t rest) {
    uint64_t *values = exchange();
    uint32_t begin = 0, end = row->cols;
    KILN_LOOP
    while (end - begin > 1) {
        uint32_t part = (end - begin + KILN_GROUP - 1) / KILN_GROUP, first = begin + kiln_thread() * part;
        uint32_t last = first + part < end ? first + part : end;
        uint64_t sum = 0;
        KILN_LOOP
        for (uint32_t col = first; col < last; col++)
            sum += kiln_sample_measure(row, choice, measure, value_at(row, col), col);
        kiln_barrier(); /* the last values have been read by all */
        values[kiln_thread()] = sum;
        kiln_barrier();
        uint32_t found = 0;
        KILN_LOOP
        while (found < KILN_GROUP - 1 && rest >= values[found])
            rest -= values[found++];
        begin += found * part;
        end = begin + part < end ? begin + part : end;
    }
    return begin;
}

KILN_ENTRY(sample, kiln_sample_args) {
    uint64_t number = kiln_block();
    if (number >= (uint64_t)args.rows) return; /* the whole group */
    kiln_row row = {(const kiln_element *)args.x + number * (uint64_t)args.x_stride, args.cols, 0.0f,
                    args.inverse_temperature};
    int32_t col = kiln_choose(&args, &row, number);
    if (kiln_thread() == 0) args.y[number] = col;
}
