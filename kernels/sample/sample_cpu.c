/* sample on the CPU, and its definition: see choice.h.
 *
 * Floor: one read of the row at memory bandwidth, and some 40 readings more from a cache for each of top-k and top-p.
 * Test: build/tests/ops/sample_test. Bench: build/kiln bench sample --device cpu */
#include "kernels/common/cpu.h"
#define KILN_LOOP
#include "kernels/sample/choice.h"

/* The part is known where the kernel is defined, and a row does not say it. */
typedef struct typed_row {
    kiln_row row;
    kiln_cpu_part part;
} typed_row;

/* The elements of a row from col on, at most a tile; how many in *count. */
KILN_INLINE const float *values_at(const kiln_row *row, float *tile, uint32_t col, size_t *count) {
    kiln_cpu_part part = ((const typed_row *)(const void *)row)->part;
    *count = kiln_min(row->cols - col, KILN_TILE);
    return kiln_tile_load(tile, kiln_at(row->x, col, part), *count, part);
}

KILN_INLINE uint32_t kiln_row_greatest(const kiln_row *row) {
    float tile[KILN_TILE];
    uint32_t greatest = 0;
    size_t count;
    for (uint32_t col = 0; col < row->cols; col += (uint32_t)count) {
        const float *values = values_at(row, tile, col, &count);
        for (size_t i = 0; i < count; i++) {
            uint32_t key = kiln_sample_key(values[i]);
            greatest = key > greatest ? key : greatest;
        }
    }
    return greatest;
}

KILN_INLINE uint64_t kiln_row_sum(const kiln_row *row, kiln_choice choice, kiln_measure measure) {
    float tile[KILN_TILE];
    uint64_t sum = 0;
    size_t count;
    for (uint32_t col = 0; col < row->cols; col += (uint32_t)count) {
        const float *values = values_at(row, tile, col, &count);
        for (size_t i = 0; i < count; i++)
            sum += kiln_sample_measure(row, choice, measure, values[i], col + (uint32_t)i);
    }
    return sum;
}

KILN_INLINE uint32_t kiln_row_find(const kiln_row *row, kiln_choice choice, kiln_measure measure, uint64_t rest) {
    float tile[KILN_TILE];
    size_t count;
    for (uint32_t col = 0; col < row->cols; col += (uint32_t)count) {
        const float *values = values_at(row, tile, col, &count);
        for (size_t i = 0; i < count; i++) {
            uint64_t one = kiln_sample_measure(row, choice, measure, values[i], col + (uint32_t)i);
            if (rest < one) return col + (uint32_t)i;
            rest -= one;
        }
    }
    return row->cols - 1;
}

KILN_INLINE void sample(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_sample_args args = *(const kiln_sample_args *)arguments; /* what no store can change */
    for (uint64_t number = span->begin; number < span->end && number < (uint64_t)args.rows; number++) {
        typed_row row = {.row = {.x = kiln_at(args.x, number * (uint64_t)args.x_stride, part),
                                 .cols = args.cols,
                                 .inverse_temperature = args.inverse_temperature},
                         .part = part};
        args.y[number] = kiln_choose(&args, &row.row, number);
    }
}
KILN_CPU_KERNEL(sample)
