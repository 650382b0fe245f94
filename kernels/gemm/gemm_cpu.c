/* gemm on the CPU, and its definition: see gemm_gpu.c for the meaning of its kernels and groups.
 *
 * Both factors have k along their rows, so an element of d is a dot product of two rows, and nothing needs to be
 * transposed: a few rows of each are multiplied at a time, all pairs of them, in vectors along k whose sums stay in
 * registers. gemm_tiles copies the tile's rows of a, some DEPTH elements of each, to one place that stays in the
 * second-level cache, and goes through the rows of b with them.
 *
 * Floor: 2 m n k operations for gemm_tiles, one read of b at memory bandwidth for gemm_rows.
 * Test: build/tests/ops/gemm_test */
#include "kernels/common/vec.h"
#include "kernels/gemm/gemm_args.h"

enum {
    TILE = KILN_GEMM_TILE,
    DEPTH = 256,
    A_ROWS = 4,                               /* rows of a multiplied at a time */
    B_ROWS = KILN_VEC_REGISTERS >= 32 ? 4 : 2 /* with rows of b */
};

/* Writes count elements of a row of d from the sums of products, at most a tile; sums is changed. */
KILN_INLINE void finish(const kiln_gemm_args *args, float *sums, uint32_t batch, uint64_t row, uint64_t col,
                        size_t count, kiln_cpu_part part) {
    float addend_tile[KILN_TILE], bias_tile[KILN_TILE];
    uint64_t place = batch * (uint64_t)args->d_batch_stride + row * (uint64_t)args->d_stride + col;
    for (size_t i = 0; i < count; i++)
        sums[i] *= args->alpha;
    if (args->c) {
        uint64_t c = batch * (uint64_t)args->c_batch_stride + row * (uint64_t)args->c_stride + col;
        const float *addends = kiln_tile_load(addend_tile, kiln_at(args->c, c, part), count, part);
        for (size_t i = 0; i < count; i++)
            sums[i] += addends[i];
    }
    if (args->bias) {
        const float *biases = kiln_tile_load(bias_tile, kiln_at(args->bias, col, part), count, part);
        for (size_t i = 0; i < count; i++)
            sums[i] += biases[i];
    }
    if (args->gated)
        for (size_t i = 0; i < count; i++)
            sums[i] = kiln_gated(sums[i], args->bound, args->coefficients, KILN_GEMM_COEFFICIENTS);
    void *d = kiln_at_mut(args->d, place, part);
    if (part == KILN_CPU_f32)
        memcpy(d, sums, count * sizeof *sums);
    else
        kiln_tile_write(d, sums, count, part, false);
}

/* ---- gemm_tiles ---- */

/* What a group does. */
typedef struct product {
    uint32_t batch, split;
    uint64_t row, col, k, k_end;
    size_t rows, cols;
} product;

KILN_INLINE product product_of(const kiln_gemm_args *args, const kiln_cpu_span *span, uint64_t group) {
    uint64_t block = group / span->grid[0], rest = block / args->tile_rows;
    product p = {.split = (uint32_t)(rest % args->splits),
                 .batch = (uint32_t)(rest / args->splits),
                 .row = block % args->tile_rows * TILE,
                 .col = group % span->grid[0] * TILE};
    p.rows = kiln_min((uint64_t)args->m - p.row, TILE);
    p.cols = kiln_min((uint64_t)args->n - p.col, TILE);
    p.k = (uint64_t)p.split * args->split;
    p.k_end = kiln_min(p.k + args->split, (uint64_t)args->k);
    return p;
}

/* Copies n elements of each of count rows as f32, and zeros where they end before DEPTH or there are less than A_ROWS
 * of them: sums of those are not used. */
KILN_INLINE void copy_rows(float (*rows)[DEPTH], const void *source, int64_t stride, size_t count, size_t n,
                           kiln_cpu_part part) {
    for (size_t i = 0; i < count; i++) {
        const void *row = kiln_at(source, i * (uint64_t)stride, part);
        for (size_t start = 0; start < n; start += KILN_TILE) {
            size_t some = kiln_min(n - start, KILN_TILE);
            const float *values = kiln_tile_load(rows[i] + start, kiln_at(row, start, part), some, part);
            if (values != rows[i] + start) memcpy(rows[i] + start, values, some * sizeof *values);
        }
        size_t end = (n + KILN_VEC - 1) / KILN_VEC * KILN_VEC;
        for (size_t k = n; k < end; k++)
            rows[i][k] = 0.0f;
    }
}

/* Adds to sums, from column col on, the products of the tile's rows with count rows of b, over n elements. */
KILN_INLINE void multiply(float (*sums)[TILE], size_t col, const float (*a)[DEPTH], size_t rows,
                          const float (*b)[DEPTH], size_t count, size_t n) {
    float products[A_ROWS * B_ROWS];
    size_t padded = (n + KILN_VEC - 1) / KILN_VEC * KILN_VEC;
    for (size_t i = 0; i < rows; i += A_ROWS) {
        kiln_dots(products, a[i], DEPTH, b[0], DEPTH, padded, A_ROWS, B_ROWS);
        for (size_t r = 0; r < A_ROWS; r++)
            for (size_t c = 0; c < count; c++)
                sums[i + r][col + c] += products[r * B_ROWS + c];
    }
}

KILN_INLINE void gemm_tiles(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_gemm_args args = *(const kiln_gemm_args *)arguments; /* what no store can change */
    float a_rows[TILE][DEPTH], b_rows[B_ROWS][DEPTH], sums[TILE][TILE];
    memset(a_rows, 0, sizeof a_rows);
    memset(b_rows, 0, sizeof b_rows);
    for (uint64_t group = span->begin; group < span->end; group++) {
        product p = product_of(&args, span, group);
        if (p.batch >= args.batch) break;
        memset(sums, 0, sizeof sums);
        for (uint64_t k = p.k; k < p.k_end; k += DEPTH) {
            size_t n = kiln_min(p.k_end - k, DEPTH);
            uint64_t a = p.batch * (uint64_t)args.a_batch_stride + p.row * (uint64_t)args.a_stride + k;
            copy_rows(a_rows, kiln_at(args.a, a, part), args.a_stride, p.rows, n, part);
            for (size_t col = 0; col < p.cols; col += B_ROWS) {
                size_t count = kiln_min(p.cols - col, B_ROWS);
                uint64_t b = p.batch * (uint64_t)args.b_batch_stride + (p.col + col) * (uint64_t)args.b_stride + k;
                copy_rows(b_rows, kiln_at(args.b, b, part), args.b_stride, count, n, part);
                multiply(sums, col, a_rows, p.rows, b_rows, count, n);
            }
        }
        for (size_t r = 0; r < p.rows; r++) {
            if (args.partials) {
                uint64_t matrix = ((uint64_t)p.split * args.batch + p.batch) * (uint64_t)args.m;
                memcpy(args.partials + (matrix + p.row + r) * (uint64_t)args.n + p.col, sums[r],
                       p.cols * sizeof *sums[r]);
            } else {
                finish(&args, sums[r], p.batch, p.row + r, p.col, p.cols, part);
            }
        }
    }
}
KILN_CPU_KERNEL(gemm_tiles)

/* ---- gemm_join ---- */

KILN_INLINE void gemm_join(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_gemm_args args = *(const kiln_gemm_args *)arguments; /* what no store can change */
    uint64_t step = (uint64_t)args.batch * (uint64_t)args.m * (uint64_t)args.n;
    float sums[KILN_GROUP];
    for (uint64_t group = span->begin; group < span->end; group++) {
        uint64_t col = group % span->grid[0] * KILN_GROUP, row = group / span->grid[0];
        if (row >= (uint64_t)args.m * args.batch) break;
        size_t count = kiln_min((uint64_t)args.n - col, KILN_GROUP);
        const float *partial = args.partials + row * (uint64_t)args.n + col;
        memset(sums, 0, sizeof sums);
        for (uint32_t split = 0; split < args.splits; split++, partial += step)
            for (size_t i = 0; i < count; i++)
                sums[i] += partial[i];
        finish(&args, sums, (uint32_t)(row / (uint64_t)args.m), row % (uint64_t)args.m, col, count, part);
    }
}
KILN_CPU_KERNEL(gemm_join)

/* ---- gemm_rows ---- */

/* The products of all rows of a with COLUMNS rows of b, over n elements, added to sums. */
KILN_INLINE void multiply_rows(float (*sums)[KILN_GEMM_COLUMNS], const kiln_gemm_args *args, const void *a,
                               const void *b, size_t columns, size_t n, kiln_cpu_part part) {
    float a_row[KILN_TILE], b_rows[KILN_GEMM_COLUMNS][KILN_TILE];
    float products[KILN_GEMM_COLUMNS];
    const float *rows[KILN_GEMM_COLUMNS];
    for (size_t c = 0; c < columns; c++)
        rows[c] = kiln_tile_read(b_rows[c], kiln_at(b, c * (uint64_t)args->b_stride, part), n, part);
    for (size_t r = 0; r < (size_t)args->m; r++) {
        const float *row = kiln_tile_load(a_row, kiln_at(a, r * (uint64_t)args->a_stride, part), n, part);
        size_t step = columns > 1 ? (size_t)(rows[1] - rows[0]) : 0;
        if (columns == KILN_GEMM_COLUMNS) {
            kiln_dots(products, row, 0, rows[0], step, n, 1, KILN_GEMM_COLUMNS);
        } else {
            for (size_t c = 0; c < columns; c++)
                kiln_dots(&products[c], row, 0, rows[c], 0, n, 1, 1);
        }
        for (size_t c = 0; c < columns; c++)
            sums[r][c] += products[c];
    }
}

KILN_INLINE void gemm_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_gemm_args args = *(const kiln_gemm_args *)arguments; /* what no store can change */
    for (uint64_t group = span->begin; group < span->end; group++) {
        uint32_t batch = (uint32_t)(group / span->grid[0]);
        uint64_t first = group % span->grid[0] * KILN_GEMM_GROUP_COLUMNS;
        if (batch >= args.batch) break;
        uint64_t end = kiln_min(first + KILN_GEMM_GROUP_COLUMNS, (uint64_t)args.n);
        for (uint64_t col = first; col < end; col += KILN_GEMM_COLUMNS) {
            size_t columns = kiln_min(end - col, KILN_GEMM_COLUMNS);
            float sums[KILN_GEMM_ROWS][KILN_GEMM_COLUMNS] = {{0}};
            for (uint64_t k = 0; k < (uint64_t)args.k; k += KILN_TILE) {
                uint64_t a = batch * (uint64_t)args.a_batch_stride + k;
                uint64_t b = batch * (uint64_t)args.b_batch_stride + col * (uint64_t)args.b_stride + k;
                size_t n = kiln_min((uint64_t)args.k - k, KILN_TILE);
                multiply_rows(sums, &args, kiln_at(args.a, a, part), kiln_at(args.b, b, part), columns, n, part);
            }
            for (uint64_t row = 0; row < (uint64_t)args.m; row++)
                finish(&args, sums[row], batch, row, col, columns, part);
        }
    }
}
KILN_CPU_KERNEL(gemm_rows)
