/* gemm's kernels for any chip and any alignment: gemm_gpu.c describes them. A tuned source includes them too, for what
 * its own kernels do not do. */
#ifndef KILN_KERNELS_GEMM_PORTABLE_H
#define KILN_KERNELS_GEMM_PORTABLE_H

#include "kernels/common/device.h"
#include "kernels/gemm/gemm_args.h"

enum {
    TILE = KILN_GEMM_TILE,
    SIDE = 4,    /* a thread does SIDE x SIDE elements */
    VECTORS = 4, /* of a row in shared memory */
    DEPTH = VECTORS * KILN_VECTOR,
    SWIZZLE = KILN_SUBGROUP / VECTORS
};

typedef struct quad {
    float values[SIDE];
} __attribute__((aligned(SIDE * sizeof(float)))) quad;

/* ---- The end: from the sum of products to d ---- */

KILN_INLINE float finish(const kiln_gemm_args *args, float sum, float addend, float bias) {
    float value = KILN_FMA(args->scale, sum, addend) + bias;
    return args->gated ? kiln_gated(value, args->bound, args->coefficients, KILN_GEMM_COEFFICIENTS) : value;
}

KILN_INLINE void finish_element(const kiln_gemm_args *args, float sum, uint32_t batch, uint64_t row, uint64_t col) {
    const kiln_element *c = (const kiln_element *)args->c, *bias = (const kiln_element *)args->bias;
    kiln_element *d = (kiln_element *)args->d;
    float addend = 0.0f, offset = 0.0f;
    if (c) addend = kiln_element_to_f32(c[batch * args->c_batch_stride + row * args->c_stride + col]);
    if (bias) offset = kiln_element_to_f32(bias[col]);
    d[batch * args->d_batch_stride + row * args->d_stride + col] =
        kiln_element_from_f32(finish(args, sum, addend, offset));
}

/* ---- gemm_tiles ---- */

/* The vector of a row at element k of it; zeros from its end on. */
KILN_INLINE kiln_vector fetch(const kiln_element *row, uint32_t k, uint32_t end, bool wide) {
    kiln_vector vector = {{0, 0, 0, 0}};
    if (k >= end) return vector;
    const kiln_element *source = row + k;
    if (wide && k + KILN_VECTOR <= end) return kiln_vector_load(source);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++) {
        uint32_t bit = i * (uint32_t)sizeof(kiln_element) * 8;
        if (k + i < end) vector.words[bit / 32] |= (uint32_t)source[i] << bit % 32;
    }
    return vector;
}

/* Writes a vector of row `row`, which is vector number `part` of it, as a column. */
KILN_INLINE void put(float (*tile)[TILE], kiln_vector vector, uint32_t row, uint32_t part) {
    float values[4];
    uint32_t column = row ^ part * SWIZZLE, k = part * KILN_VECTOR;
    KILN_UNROLL
    for (uint32_t q = 0; q < KILN_QUADS; q++) {
        kiln_quad_take(&vector, values);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            tile[k + 4 * q + i][column] = values[i];
    }
}

/* Adds the products of what is in shared memory. */
KILN_INLINE void multiply(const float (*a)[TILE], const float (*b)[TILE], float (*sums)[SIDE]) {
    uint32_t row = kiln_thread() / (TILE / SIDE) * SIDE, col = kiln_thread() % (TILE / SIDE) * SIDE;
    KILN_LOOP
    for (uint32_t part = 0; part < VECTORS; part++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++) {
            uint32_t k = part * KILN_VECTOR + i;
            quad left = *(const quad *)&a[k][row ^ part * SWIZZLE];
            quad right = *(const quad *)&b[k][col ^ part * SWIZZLE];
            KILN_UNROLL
            for (uint32_t r = 0; r < SIDE; r++) {
                KILN_UNROLL
                for (uint32_t c = 0; c < SIDE; c++)
                    sums[r][c] = KILN_FMA(left.values[r], right.values[c], sums[r][c]);
            }
        }
    }
}

/* Writes SIDE elements of a row of d, or of the partial sums where blocks share k. */
KILN_INLINE void write_quad(const kiln_gemm_args *args, float *partials, const float *sums, uint32_t batch,
                            uint64_t row, uint64_t col) {
    KILN_UNROLL
    for (uint32_t i = 0; i < SIDE; i++) {
        if (col + i >= (uint64_t)args->n) continue;
        if (args->splits > 1)
            partials[row * (uint64_t)args->n + col + i] = sums[i];
        else
            finish_element(args, sums[i], batch, row, col + i);
    }
}

KILN_ENTRY(gemm_tiles, kiln_gemm_args) {
    KILN_SHARED float a_tile[DEPTH][TILE];
    KILN_SHARED float b_tile[DEPTH][TILE];
    uint32_t block = (uint32_t)kiln_block(), tile_row = block % args.tile_rows, rest = block / args.tile_rows;
    uint32_t split = rest % args.splits, batch = rest / args.splits;
    if (batch >= args.batch) return;
    uint64_t first_row = (uint64_t)tile_row * TILE, first_col = (uint64_t)kiln_tile() * TILE;
    uint32_t row = kiln_thread() / VECTORS, part = kiln_thread() % VECTORS;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;
    /* The rows that this thread reads; beyond the last one that once more, for nothing. */
    uint64_t a_row = first_row + row < (uint64_t)args.m ? first_row + row : (uint64_t)args.m - 1;
    uint64_t b_row = first_col + row < (uint64_t)args.n ? first_col + row : (uint64_t)args.n - 1;
    const kiln_element *a = (const kiln_element *)args.a + batch * args.a_batch_stride + a_row * args.a_stride;
    const kiln_element *b = (const kiln_element *)args.b + batch * args.b_batch_stride + b_row * args.b_stride;

    uint32_t k = begin + part * KILN_VECTOR;
    float sums[SIDE][SIDE] = {{0.0f}};
    kiln_vector left = fetch(a, k, end, args.wide), right = fetch(b, k, end, args.wide);
    KILN_LOOP
    for (; begin < end; begin += DEPTH) {
        put(a_tile, left, row, part);
        put(b_tile, right, row, part);
        kiln_barrier();
        k += DEPTH;
        left = fetch(a, k, end, args.wide);
        right = fetch(b, k, end, args.wide);
        multiply(a_tile, b_tile, sums);
        kiln_barrier();
    }

    float *partials = args.partials;
    partials += ((uint64_t)split * args.batch + batch) * (uint64_t)args.m * (uint64_t)args.n;
    uint64_t d_row = first_row + kiln_thread() / (TILE / SIDE) * SIDE;
    uint64_t d_col = first_col + kiln_thread() % (TILE / SIDE) * SIDE;
    KILN_UNROLL
    for (uint32_t r = 0; r < SIDE; r++)
        if (d_row + r < (uint64_t)args.m) write_quad(&args, partials, sums[r], batch, d_row + r, d_col);
}

/* ---- gemm_join ---- */

KILN_ENTRY(gemm_join, kiln_gemm_args) {
    uint64_t col = (uint64_t)kiln_tile() * KILN_BLOCK + kiln_thread();
    uint32_t block = (uint32_t)kiln_block(), batch = block / (uint32_t)args.m, row = block % (uint32_t)args.m;
    if (col >= (uint64_t)args.n || batch >= args.batch) return;
    uint64_t step = (uint64_t)args.batch * (uint64_t)args.m * (uint64_t)args.n;
    const float *partial = args.partials + (uint64_t)block * (uint64_t)args.n + col;
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t split = 0; split < args.splits; split++, partial += step)
        sum += *partial;
    finish_element(&args, sum, batch, row, col);
}

/* ---- gemm_rows ---- */

/* A vector as f32. */
KILN_INLINE void widen(kiln_vector vector, float *values) {
    KILN_UNROLL
    for (int q = 0; q < KILN_QUADS; q++)
        kiln_quad_take(&vector, values + 4 * q);
}

KILN_ENTRY(gemm_rows, kiln_gemm_args) {
    enum { ROWS = KILN_GEMM_ROWS, COLUMNS = KILN_GEMM_COLUMNS };
    uint32_t lane = kiln_thread() % KILN_SUBGROUP, batch = (uint32_t)kiln_block(), rows = (uint32_t)args.m;
    uint64_t first = ((uint64_t)kiln_tile() * (KILN_BLOCK / KILN_SUBGROUP) + kiln_thread() / KILN_SUBGROUP) * COLUMNS;
    if (batch >= args.batch) return; /* the whole block */
    const kiln_element *a = (const kiln_element *)args.a + batch * args.a_batch_stride;
    const kiln_element *b = (const kiln_element *)args.b + batch * args.b_batch_stride, *columns[COLUMNS];
    float sums[ROWS][COLUMNS] = {{0.0f}}, left[KILN_VECTOR], right[COLUMNS][KILN_VECTOR];
    KILN_UNROLL
    for (uint32_t c = 0; c < COLUMNS; c++) { /* beyond the last one: that once more, for nothing */
        uint64_t col = first + c < (uint64_t)args.n ? first + c : (uint64_t)args.n - 1;
        columns[c] = b + col * (uint64_t)args.b_stride;
    }

    uint64_t whole = args.wide ? (uint64_t)args.k / KILN_VECTOR * KILN_VECTOR : 0;
    KILN_LOOP
    for (uint64_t k = lane * KILN_VECTOR; k < whole; k += KILN_SUBGROUP * KILN_VECTOR) {
        KILN_UNROLL
        for (uint32_t c = 0; c < COLUMNS; c++)
            widen(kiln_vector_load(columns[c] + k), right[c]);
        KILN_UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            if (r >= rows) continue;
            widen(kiln_vector_load(a + r * args.a_stride + k), left);
            KILN_UNROLL
            for (uint32_t c = 0; c < COLUMNS; c++) {
                KILN_UNROLL
                for (uint32_t i = 0; i < KILN_VECTOR; i++)
                    sums[r][c] = KILN_FMA(left[i], right[c][i], sums[r][c]);
            }
        }
    }
    KILN_LOOP
    for (uint64_t k = whole + lane; k < (uint64_t)args.k; k += KILN_SUBGROUP) {
        KILN_UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            if (r >= rows) continue;
            float factor = kiln_element_to_f32(a[r * args.a_stride + k]);
            KILN_UNROLL
            for (uint32_t c = 0; c < COLUMNS; c++)
                sums[r][c] = KILN_FMA(factor, kiln_element_to_f32(columns[c][k]), sums[r][c]);
        }
    }

    /* Each thread writes one element: that of its lane. */
    float result = 0.0f;
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        if (r >= rows) continue;
        KILN_UNROLL
        for (uint32_t c = 0; c < COLUMNS; c++) {
            float sum = sums[r][c];
            KILN_UNROLL
            for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
                sum += kiln_shuffle_xor(sum, mask);
            result = lane == r * COLUMNS + c ? sum : result;
        }
    }
    uint64_t row = lane / COLUMNS, col = first + lane % COLUMNS;
    if (row < rows && col < (uint64_t)args.n) finish_element(&args, result, batch, row, col);
}

#include "kernels/gemm/gemm_fused.h"

#endif
