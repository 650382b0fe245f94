/* quantize_embedding on the CPU, and its definition: see embedding_codes.h for its formulas and
 * quantize_embedding_gpu.c for the meaning of its blocks.
 *
 * Floor: one read of the rows and one write of their codes at memory bandwidth.
 * Test: build/tests/ops/vector_search_test. Bench: build/kiln bench quantize_embedding --device cpu */
#include "kernels/common/reduce/greatest_cpu.h"
#include "kernels/quantize_embedding/embedding_codes.h"

/* Working memory for the tiles of a row. */
typedef struct row_scratch {
    float tile[KILN_TILE], numbers[KILN_TILE], squares[KILN_TILE];
    uint8_t codes[KILN_TILE];
} row_scratch;
_Static_assert(sizeof(row_scratch) <= KILN_CPU_SCRATCH, "fits");

/* A tile of a row in units of its scale, with zeros up to a whole unit. */
KILN_INLINE size_t take_numbers(row_scratch *scratch, const void *x, size_t count, float factor, kiln_cpu_dtype dtype) {
    float *numbers = scratch->numbers;
    const float *values = kiln_tile_load(scratch->tile, x, count, dtype);
    const size_t end = (count + KILN_EMBEDDING_UNIT - 1) / KILN_EMBEDDING_UNIT * KILN_EMBEDDING_UNIT;
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        numbers[i] = values[i] * factor;
    for (size_t i = count; i < end; i++)
        numbers[i] = 0.0f;
    return end;
}

KILN_INLINE float greatest_of(row_scratch *scratch, const void *x, size_t count, kiln_cpu_dtype dtype) {
    uint32_t greatest = 0;
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const float *values = kiln_tile_read(scratch->tile, kiln_at(x, start, dtype), n, dtype);
        greatest = kiln_greatest_magnitude(greatest, values, n);
    }
    return kiln_float(greatest);
}

/* A lane for each of KILN_LANES columns, so that sums are the same on every level. */
KILN_INLINE void add_squares(float *lanes, row_scratch *scratch, size_t count, float smax) {
    const float *numbers = scratch->numbers;
    float *squares = scratch->squares;
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        float number = kiln_embedding_bounded(numbers[i], smax);
        squares[i] = number * number;
    }
    for (size_t i = count; i % KILN_LANES; i++)
        squares[i] = 0.0f;
    for (size_t start = 0; start < count; start += KILN_LANES)
        for (size_t i = 0; i < KILN_LANES; i++)
            lanes[i] += squares[start + i];
}

/* The bytes of a tile's numbers: the same as kiln_embedding_codes gives, in loops that the compiler vectorises. */
KILN_INLINE void put_codes(uint8_t *target, row_scratch *scratch, size_t count, size_t room,
                           const kiln_quantize_embedding_args *args) {
    const float smax = args->smax, *numbers = scratch->numbers;
    uint8_t *codes = scratch->codes;
    size_t bytes = kiln_min(count / KILN_EMBEDDING_UNIT * args->unit_bytes, room);
    if (args->code_type == KILN_CODE_INT8) {
        KILN_INDEPENDENT
        for (size_t i = 0; i < bytes; i++)
            target[i] = (uint8_t)kiln_small_integer_of(numbers[i], -smax, smax);
    } else if (args->code_type == KILN_CODE_INT4) {
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            codes[i] = (uint8_t)(kiln_small_integer_of(numbers[i], -smax, smax) + 8);
        KILN_INDEPENDENT
        for (size_t i = 0; i < bytes; i++)
            target[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
    } else {
        for (size_t i = 0; i < bytes; i++)
            target[i] = (uint8_t)kiln_embedding_codes(numbers + i * KILN_EMBEDDING_UNIT, smax, KILN_CODE_BINARY);
    }
}

KILN_INLINE void quantize_row(row_scratch *scratch, const kiln_quantize_embedding_args *args, uint64_t row,
                              kiln_cpu_dtype dtype) {
    const void *x = kiln_at(args->x, row * (uint64_t)args->x_stride, dtype);
    uint8_t *codes = args->codes + row * (uint64_t)args->codes_stride;
    const size_t cols = (size_t)args->shape.cols;
    const bool binary = args->code_type == KILN_CODE_BINARY;
    const float scale = binary ? 1.0f : kiln_embedding_scale(greatest_of(scratch, x, cols, dtype), args->smax);
    float lanes[KILN_LANES] = {0}, squares = 0.0f;
    size_t done = 0; /* bytes */
    for (size_t start = 0; start < cols; start += KILN_TILE) {
        const size_t count =
            take_numbers(scratch, kiln_at(x, start, dtype), kiln_min(cols - start, KILN_TILE), 1.0f / scale, dtype);
        if (args->normalize && args->scales) add_squares(lanes, scratch, count, args->smax);
        put_codes(codes + done, scratch, count, args->code_cols - done, args);
        done = kiln_min(done + count / KILN_EMBEDDING_UNIT * args->unit_bytes, args->code_cols);
    }
    memset(codes + done, args->code_type == KILN_CODE_INT4 ? 0x88 : 0, args->code_cols - done);
    if (!args->scales) return;
    for (size_t i = 0; i < KILN_LANES; i++)
        squares += lanes[i];
    args->scales[row] = args->normalize ? kiln_embedding_normalized(scale, squares) : scale;
}

KILN_OUTLINED void quantize_embedding(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_quantize_embedding_args args = *(const kiln_quantize_embedding_args *)arguments;
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++)
            quantize_row(span->scratch, &args, work.row, dtype);
}
KILN_CPU_KERNEL(quantize_embedding)
