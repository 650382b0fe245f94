/* The kernels of gemm_fp8 and gemm_int8 for any chip and any alignment; gemm_int8_gpu.c and gemm_fp8_gpu.c describe
 * them. A tuned source has them too, for what its own kernels do not do. The includer defines its entry points, and
 * before this header
 *
 *   code_sum                  int32_t or float: what products of codes are added in
 *   code_word                 CODE_WORD codes in a register as they are multiplied: 4 int8, or 1 f32
 *   codes_take(words, codes)  makes words of 4 codes, those of a register
 *   codes_multiply(a, b, sum) adds the products of two words' codes
 *   codes_bits(sum), codes_value(bits)  the bits of such a sum, and its value as f32 */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_GPU_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/matmul/w8a8_scales.h"

enum {
    W8A8_TILE = KILN_W8A8_TILE,
    W8A8_SIDE = 4,                         /* a thread does SIDE x SIDE elements */
    W8A8_PIECE = CODE_WORD == 4 ? 16 : 8,  /* codes that a thread takes to shared memory at a time */
    W8A8_PIECES = 4,                       /* of a row in shared memory */
    W8A8_DEPTH = W8A8_PIECES * W8A8_PIECE, /* a group is a multiple of it */
    W8A8_WORDS = W8A8_PIECE / CODE_WORD,   /* of a piece */
    W8A8_SWIZZLE = KILN_SUBGROUP / W8A8_PIECES,
    W8A8_VECTOR = KILN_VECTOR_BYTES /* codes of a vector */
};

typedef struct w8a8_quad {
    code_word words[W8A8_SIDE];
} __attribute__((aligned(W8A8_SIDE * sizeof(code_word)))) w8a8_quad;

typedef struct w8a8_piece {
    uint32_t words[W8A8_PIECE / 4];
} __attribute__((aligned(W8A8_PIECE))) w8a8_piece;

typedef struct w8a8_vector {
    uint32_t words[W8A8_VECTOR / 4];
} __attribute__((aligned(W8A8_VECTOR))) w8a8_vector;

/* ---- The end: from the sum of scaled products to d ---- */

KILN_INLINE void w8a8_finish(const kiln_w8a8_args *args, float sum, uint64_t row, uint64_t col) {
    const kiln_element *bias = (const kiln_element *)args->bias;
    kiln_element *d = (kiln_element *)args->d;
    float value = KILN_FMA(args->scale, sum, bias ? kiln_element_to_f32(bias[col]) : 0.0f);
    if (args->gated) value = kiln_gated(value, args->bound, args->coefficients, KILN_W8A8_COEFFICIENTS);
    d[row * (uint64_t)args->d_stride + col] = kiln_element_from_f32(value);
}

/* ---- Tiles ---- */

/* The 4 codes of a row at column k of it, zeros from its end on, which is not 0: without a branch. */
KILN_INLINE uint32_t w8a8_fetch_word(const uint8_t *row, uint32_t k, uint32_t end) {
    uint32_t word = 0;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = k + i < end ? k + i : end - 1, code = row[at];
        word |= (k + i < end ? code : 0) << 8 * i;
    }
    return word;
}

/* The piece of a row at column k of it; zeros from its end on. */
KILN_INLINE w8a8_piece w8a8_fetch(const uint8_t *row, uint32_t k, uint32_t end, bool wide) {
    if (wide && k + W8A8_PIECE <= end) return *(const w8a8_piece *)(const void *)(row + k);
    uint32_t words[W8A8_PIECE / 4] = {0};
    w8a8_piece piece;
    if (k < end) {
        KILN_LOOP
        for (uint32_t i = 0; i < W8A8_PIECE; i += 8) { /* registers have no index: those of a piece move up */
            KILN_UNROLL
            for (uint32_t w = 2; w < W8A8_PIECE / 4; w++)
                words[w - 2] = words[w];
            words[W8A8_PIECE / 4 - 2] = w8a8_fetch_word(row, k + i, end);
            words[W8A8_PIECE / 4 - 1] = w8a8_fetch_word(row, k + i + 4, end);
        }
    }
    KILN_UNROLL
    for (uint32_t w = 0; w < W8A8_PIECE / 4; w++)
        piece.words[w] = words[w];
    return piece;
}

/* Writes a piece of row `row`, which is number `part` of it, as a column of words. */
KILN_INLINE void w8a8_put(code_word (*tile)[W8A8_TILE], w8a8_piece piece, uint32_t row, uint32_t part) {
    uint32_t column = row ^ part * W8A8_SWIZZLE;
    KILN_UNROLL
    for (uint32_t i = 0; i < W8A8_PIECE / 4; i++) {
        code_word words[4 / CODE_WORD];
        codes_take(words, piece.words[i]);
        KILN_UNROLL
        for (uint32_t j = 0; j < 4 / CODE_WORD; j++)
            tile[part * W8A8_WORDS + i * (4 / CODE_WORD) + j][column] = words[j];
    }
}

/* Adds the products of what is in shared memory. */
KILN_INLINE void w8a8_multiply(const code_word (*a)[W8A8_TILE], const code_word (*b)[W8A8_TILE],
                               code_sum (*sums)[W8A8_SIDE]) {
    uint32_t row = kiln_thread() / (W8A8_TILE / W8A8_SIDE) * W8A8_SIDE;
    uint32_t col = kiln_thread() % (W8A8_TILE / W8A8_SIDE) * W8A8_SIDE;
    KILN_LOOP
    for (uint32_t part = 0; part < W8A8_PIECES; part++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < W8A8_WORDS; i++) {
            uint32_t k = part * W8A8_WORDS + i;
            w8a8_quad left = *(const w8a8_quad *)&a[k][row ^ part * W8A8_SWIZZLE];
            w8a8_quad right = *(const w8a8_quad *)&b[k][col ^ part * W8A8_SWIZZLE];
            KILN_UNROLL
            for (uint32_t r = 0; r < W8A8_SIDE; r++) {
                KILN_UNROLL
                for (uint32_t c = 0; c < W8A8_SIDE; c++)
                    sums[r][c] = codes_multiply(left.words[r], right.words[c], sums[r][c]);
            }
        }
    }
}

/* Takes products of a group into the sums, and begins those of the next. Rows and columns beyond the last have the
 * scales of the last, for nothing. */
KILN_INLINE void w8a8_promote(const kiln_w8a8_args *args, float (*sums)[W8A8_SIDE], code_sum (*products)[W8A8_SIDE],
                              uint32_t row, uint32_t col, uint32_t group) {
    float left[W8A8_SIDE], right[W8A8_SIDE];
    KILN_UNROLL
    for (uint32_t i = 0; i < W8A8_SIDE; i++) {
        uint32_t last_row = (uint32_t)args->m - 1, last_col = (uint32_t)args->n - 1;
        left[i] = kiln_w8a8_scale(&args->a_scales, row + i < last_row ? row + i : last_row, group);
        right[i] = kiln_w8a8_scale(&args->b_scales, col + i < last_col ? col + i : last_col, group);
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < W8A8_SIDE; r++) {
        KILN_UNROLL
        for (uint32_t c = 0; c < W8A8_SIDE; c++) {
            sums[r][c] = KILN_FMA((float)products[r][c], left[r] * right[c], sums[r][c]);
            products[r][c] = 0;
        }
    }
}

/* a_tile and b_tile: in shared memory. */
KILN_INLINE void w8a8_tiles(const kiln_w8a8_args *args, code_word (*a_tile)[W8A8_TILE],
                            code_word (*b_tile)[W8A8_TILE]) {
    uint32_t block = (uint32_t)kiln_block(), tile_row = block % args->tile_rows, split = block / args->tile_rows;
    if (split >= args->splits) return; /* the whole block */
    uint64_t first_row = (uint64_t)tile_row * W8A8_TILE, first_col = (uint64_t)kiln_tile() * W8A8_TILE;
    uint32_t row = kiln_thread() / W8A8_PIECES, part = kiln_thread() % W8A8_PIECES;
    uint32_t begin = split * args->split, end = begin + args->split;
    if (end > (uint32_t)args->k) end = (uint32_t)args->k;
    /* The rows that this thread reads; beyond the last one that once more, for nothing. */
    uint64_t a_row = first_row + row < (uint64_t)args->m ? first_row + row : (uint64_t)args->m - 1;
    uint64_t b_row = first_col + row < (uint64_t)args->n ? first_col + row : (uint64_t)args->n - 1;
    const uint8_t *a = args->a + a_row * (uint64_t)args->a_stride, *b = args->b + b_row * (uint64_t)args->b_stride;
    uint32_t d_row = (uint32_t)first_row + kiln_thread() / (W8A8_TILE / W8A8_SIDE) * W8A8_SIDE;
    uint32_t d_col = (uint32_t)first_col + kiln_thread() % (W8A8_TILE / W8A8_SIDE) * W8A8_SIDE;

    uint32_t k = begin + part * W8A8_PIECE;
    code_sum products[W8A8_SIDE][W8A8_SIDE] = {{0}};
    float sums[W8A8_SIDE][W8A8_SIDE] = {{0.0f}};
    w8a8_piece left = w8a8_fetch(a, k, end, args->wide), right = w8a8_fetch(b, k, end, args->wide);
    KILN_LOOP
    while (begin < end) {
        w8a8_put(a_tile, left, row, part);
        w8a8_put(b_tile, right, row, part);
        kiln_barrier();
        k += W8A8_DEPTH;
        left = w8a8_fetch(a, k, end, args->wide);
        right = w8a8_fetch(b, k, end, args->wide);
        w8a8_multiply(a_tile, b_tile, products);
        kiln_barrier();
        begin += W8A8_DEPTH;
        if (begin >= end || (args->grouped && begin % KILN_W8A8_GROUP == 0))
            w8a8_promote(args, sums, products, d_row, d_col, (begin - 1) >> KILN_W8A8_GROUP_LOG2);
    }

    float *partials = args->partials;
    partials += (uint64_t)split * (uint64_t)args->m * (uint64_t)args->n;
    KILN_LOOP
    for (uint32_t i = 0; i < W8A8_SIDE * W8A8_SIDE; i++) { /* registers have no index: the sums move up */
        const uint32_t at_row = d_row + i / W8A8_SIDE, at_col = d_col + i % W8A8_SIDE;
        const float sum = sums[0][0];
        KILN_UNROLL
        for (uint32_t j = 1; j < W8A8_SIDE * W8A8_SIDE; j++)
            sums[(j - 1) / W8A8_SIDE][(j - 1) % W8A8_SIDE] = sums[j / W8A8_SIDE][j % W8A8_SIDE];
        if (at_row >= (uint32_t)args->m || at_col >= (uint32_t)args->n) continue;
        if (args->splits > 1)
            partials[at_row * (uint64_t)args->n + at_col] = sum;
        else
            w8a8_finish(args, sum, at_row, at_col);
    }
}

/* ---- What blocks that share k have added up, together ---- */

KILN_INLINE void w8a8_join(const kiln_w8a8_args *args) {
    uint64_t col = (uint64_t)kiln_tile() * KILN_BLOCK + kiln_thread(), row = kiln_block();
    if (col >= (uint64_t)args->n || row >= (uint64_t)args->m) return;
    uint64_t step = (uint64_t)args->m * (uint64_t)args->n;
    const float *partial = args->partials + row * (uint64_t)args->n + col;
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t split = 0; split < args->splits; split++, partial += step)
        sum += *partial;
    w8a8_finish(args, sum, row, col);
}

/* ---- Few rows ---- */

/* As many results as a subgroup has threads. */
enum {
    W8A8_ROWS = KILN_W8A8_ROWS,
    W8A8_COLUMNS = KILN_W8A8_COLUMNS,
    W8A8_RESULTS_LOG2 = KILN_SUBGROUP_LOG2,
    W8A8_RESULTS = 1 << W8A8_RESULTS_LOG2
};

/* A subgroup's rows of a and of b; beyond the last of b that once more, for nothing. */
typedef struct w8a8_few {
    const uint8_t *a, *columns[W8A8_COLUMNS];
    uint64_t first_row, first_col, last_col;
    uint32_t rows;
} w8a8_few;

/* Adds the products of 4 codes of each row, or of the first alone. */
KILN_INLINE void w8a8_few_multiply(const kiln_w8a8_args *args, const w8a8_few *few, const uint32_t *right, uint64_t k,
                                   bool whole, code_sum *products) {
    code_word factors[W8A8_COLUMNS][4 / CODE_WORD];
    KILN_UNROLL
    for (uint32_t c = 0; c < W8A8_COLUMNS; c++)
        codes_take(factors[c], right[c]);
    KILN_UNROLL
    for (uint32_t r = 0; r < W8A8_ROWS; r++) {
        if (r >= few->rows) continue;
        const uint8_t *source = few->a + r * (uint64_t)args->a_stride + k;
        code_word left[4 / CODE_WORD];
        codes_take(left, whole ? *(const uint32_t *)(const void *)source : (uint32_t)*source);
        KILN_UNROLL
        for (uint32_t c = 0; c < W8A8_COLUMNS; c++) {
            KILN_UNROLL
            for (uint32_t i = 0; i < (whole ? 4 / CODE_WORD : 1); i++)
                products[r * W8A8_COLUMNS + c] = codes_multiply(left[i], factors[c][i], products[r * W8A8_COLUMNS + c]);
        }
    }
}

KILN_INLINE void w8a8_few_promote(const kiln_w8a8_args *args, const w8a8_few *few, uint64_t k, code_sum *products,
                                  float *sums) {
    const uint64_t group = k >> KILN_W8A8_GROUP_LOG2;
    float right[W8A8_COLUMNS];
    KILN_UNROLL
    for (uint32_t c = 0; c < W8A8_COLUMNS; c++) {
        uint64_t col = few->first_col + c;
        right[c] = kiln_w8a8_scale(&args->b_scales, col < few->last_col ? col : few->last_col, group);
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < W8A8_ROWS; r++) {
        if (r >= few->rows) continue;
        float left = kiln_w8a8_scale(&args->a_scales, few->first_row + r, group);
        KILN_UNROLL
        for (uint32_t c = 0; c < W8A8_COLUMNS; c++) {
            uint32_t i = r * W8A8_COLUMNS + c;
            sums[i] = KILN_FMA((float)products[i], left * right[c], sums[i]);
            products[i] = 0;
        }
    }
}

/* The sum over a subgroup's threads of each of its results, which its thread gets: each round gives half of the results
 * that are left to the other half of the threads. */
KILN_INLINE uint32_t w8a8_few_sum(uint32_t *values, bool integers) {
    uint32_t lane = kiln_thread() % KILN_SUBGROUP;
    KILN_UNROLL
    for (uint32_t round = 1; round <= W8A8_RESULTS_LOG2; round++) {
        const uint32_t half = W8A8_RESULTS >> round;
        KILN_UNROLL
        for (uint32_t i = 0; i < W8A8_RESULTS / 2; i++) {
            if (i >= half) continue;
            const uint32_t low = values[i], high = values[i + half];
            const uint32_t kept = lane & half ? high : low, given = lane & half ? low : high;
            const uint32_t other = kiln_bits(kiln_shuffle_xor(kiln_float(given), half));
            values[i] = integers ? kept + other : kiln_bits(kiln_float(kept) + kiln_float(other));
        }
    }
    return values[0];
}

KILN_INLINE void w8a8_rows(const kiln_w8a8_args *args) {
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP;
    const uint64_t block_row = kiln_block() * W8A8_ROWS, cols = (uint64_t)args->n;
    if (block_row >= (uint64_t)args->m) return; /* the whole block */
    w8a8_few few;
    few.first_row = block_row;
    few.first_col =
        ((uint64_t)kiln_tile() * (KILN_BLOCK / KILN_SUBGROUP) + kiln_thread() / KILN_SUBGROUP) * W8A8_COLUMNS;
    few.last_col = cols - 1;
    few.rows = (uint32_t)((uint64_t)args->m - block_row < W8A8_ROWS ? (uint64_t)args->m - block_row : W8A8_ROWS);
    few.a = args->a + block_row * (uint64_t)args->a_stride;
    KILN_UNROLL
    for (uint32_t c = 0; c < W8A8_COLUMNS; c++) {
        uint64_t col = few.first_col + c < cols ? few.first_col + c : few.last_col;
        few.columns[c] = args->b + col * (uint64_t)args->b_stride;
    }

    code_sum products[W8A8_RESULTS] = {0};
    float sums[W8A8_RESULTS] = {0.0f};
    const uint64_t whole = args->wide ? (uint64_t)args->k / W8A8_VECTOR * W8A8_VECTOR : 0;
    KILN_LOOP
    for (uint64_t k = lane * W8A8_VECTOR; k < whole; k += KILN_SUBGROUP * W8A8_VECTOR) {
        w8a8_vector vectors[W8A8_COLUMNS];
        KILN_UNROLL
        for (uint32_t c = 0; c < W8A8_COLUMNS; c++)
            vectors[c] = *(const w8a8_vector *)(const void *)(few.columns[c] + k);
        KILN_LOOP
        for (uint32_t i = 0; i < W8A8_VECTOR; i += 4) { /* registers have no index: those of a vector move up */
            uint32_t right[W8A8_COLUMNS];
            KILN_UNROLL
            for (uint32_t c = 0; c < W8A8_COLUMNS; c++) {
                right[c] = vectors[c].words[0];
                KILN_UNROLL
                for (uint32_t w = 1; w < W8A8_VECTOR / 4; w++)
                    vectors[c].words[w - 1] = vectors[c].words[w];
            }
            w8a8_few_multiply(args, &few, right, k + i, true, products);
        }
        if (args->grouped) w8a8_few_promote(args, &few, k, products, sums);
    }
    KILN_LOOP
    for (uint64_t k = whole + lane; k < (uint64_t)args->k; k += KILN_SUBGROUP) {
        uint32_t right[W8A8_COLUMNS];
        KILN_UNROLL
        for (uint32_t c = 0; c < W8A8_COLUMNS; c++)
            right[c] = few.columns[c][k];
        w8a8_few_multiply(args, &few, right, k, false, products);
        if (args->grouped) w8a8_few_promote(args, &few, k, products, sums);
    }

    uint32_t values[W8A8_RESULTS];
    KILN_UNROLL
    for (uint32_t i = 0; i < W8A8_RESULTS; i++) { /* registers have no address to choose */
        const uint32_t sum = kiln_bits(sums[i]), product = codes_bits(products[i]);
        values[i] = args->grouped ? sum : product;
    }
    const uint32_t total = w8a8_few_sum(values, CODE_WORD == 4 && !args->grouped);
    const uint64_t row = few.first_row + lane / W8A8_COLUMNS, col = few.first_col + lane % W8A8_COLUMNS;
    if (lane / W8A8_COLUMNS >= few.rows || col >= cols) return;
    float sum = kiln_float(total);
    if (!args->grouped && args->k) /* else there may be no scales */
        sum =
            codes_value(total) * (kiln_w8a8_scale(&args->a_scales, row, 0) * kiln_w8a8_scale(&args->b_scales, col, 0));
    w8a8_finish(args, sum, row, col);
}

#endif
