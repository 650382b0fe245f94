/* gemm_nvfp4 on the CPU: the operator's definition. gemm_nvfp4_gpu.c says what its kernels and blocks do.
 *
 * Everything is dot products of up to 8 rows of a with a few rows of b, in vectors along k. A byte has the codes of an
 * even and an odd column, so rows of a are separated into their even and odd elements, as f32 times their blocks'
 * scales, once for all rows of b of a block. A vector of bytes of b is then two vectors of numbers, times the scales of
 * its blocks.
 *
 * Floor: one read of b at memory bandwidth for few rows, 2 m n k operations for many.
 * Test: build/tests/ops/gemm_nvfp4_test. Bench: build/kiln bench gemm_nvfp4 --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/float4_cpu.h"
#include "kernels/common/nvfp4_scale.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_args.h"

enum {
    TILE = KILN_NVFP4_TILE,
    ROWS = KILN_NVFP4_ROWS,
    COLUMNS = KILN_NVFP4_BLOCK_COLUMNS,       /* of a block of gemm_nvfp4_rows */
    KEPT = 1 << 13,                           /* elements of a's rows that are kept as f32 */
    STRIP = KILN_VEC_REGISTERS >= 32 ? 4 : 2, /* rows of b at a time, at most */
    BYTES = KILN_NVFP4_BLOCK_BYTES,
    BLOCKS = KEPT / KILN_NVFP4_BLOCK + 2, /* of a row, and zeros for a vector's end */
    E4M3_NUMBERS = 128,                   /* that are not negative */
    LEAST = 16,                           /* bytes: whole vectors on each level, and whole blocks */
    AHEAD = 512                           /* bytes of a row of b, prefetched before they are needed */
};

typedef struct product_scratch {
    float even[KEPT / 2], odd[KEPT / 2];
    float e4m3[E4M3_NUMBERS];
    float a_scales[BLOCKS], scales[STRIP][BLOCKS]; /* of a row of a, of rows of b */
    float sums[ROWS][TILE], results[TILE], addends[TILE];
} product_scratch;
_Static_assert(sizeof(product_scratch) <= KILN_CPU_SCRATCH, "fits");

/* ---- From codes to numbers ---- */

/* Makes the look-up table of E4M3. */
KILN_INLINE void make_table(product_scratch *scratch) {
    KILN_INDEPENDENT
    for (uint32_t code = 0; code < E4M3_NUMBERS; code++)
        scratch->e4m3[code] = kiln_e4m3_value((uint8_t)code);
}

/* The scales of count blocks of a row from `first` on, a multiple of 4; their signs are not read. */
KILN_OUTLINED void take_scales(const product_scratch *scratch, float *to, const kiln_nvfp4_operand *operand,
                               uint64_t row, uint64_t first, size_t count) {
    const uint64_t blocks = (uint64_t)operand->scale_cols;
    if (operand->swizzled) {
        const uint8_t *from = operand->scales + kiln_nvfp4_swizzled(row, first, blocks);
        for (size_t i = 0; i < count; i++)
            to[i] = scratch->e4m3[from[i / 4 * 512 + i % 4] & 0x7fu];
    } else {
        const uint8_t *from = operand->scales + row * blocks + first;
        for (size_t i = 0; i < count; i++)
            to[i] = scratch->e4m3[from[i] & 0x7fu];
    }
    to[count] = 0;
}

/* The scales of a vector of bytes from `at` on, of one block or two. */
KILN_INLINE kiln_vec scales_at(const float *scales, size_t at) {
#if defined(__AVX512F__)
    const float *two = scales + at / BYTES;
    return _mm512_mask_broadcastss_ps(KILN_VEC_SET(two[0]), 0xff00, _mm_set_ss(two[1]));
#else
    return KILN_VEC_SET(scales[at / BYTES]);
#endif
}

/* ---- Dot products ---- */

/* Rows of a and of b, and the k that is multiplied. */
typedef struct piece {
    uint64_t row, col;
    size_t rows, cols;
    uint64_t k, k_end;
} piece;

/* Where the elements of row r of a begin, with m rows in all. */
KILN_INLINE size_t kept_at(size_t r, size_t m) {
    return r * (KEPT / 2 / m);
}

/* The bytes of a piece's codes, of which the last may have one code that counts. */
KILN_INLINE size_t bytes_of(const piece *p) {
    return (size_t)(p->k_end - p->k + 1) / 2;
}

/* Separates the rows of a, the last one several times if there are fewer than m. Zeros fill up the last vector, so that
 * b's codes there do not count. */
KILN_OUTLINED void take_rows(product_scratch *scratch, const kiln_gemm_nvfp4_args *args, const piece *p, size_t m) {
    const size_t bytes = bytes_of(p);
    for (size_t r = 0; r < m; r++) {
        const uint64_t row = p->row + kiln_min(r, p->rows - 1);
        const uint8_t *codes = args->a.codes + row * (uint64_t)args->a.stride + p->k / 2;
        float *even = scratch->even + kept_at(r, m), *odd = scratch->odd + kept_at(r, m);
        take_scales(scratch, scratch->a_scales, &args->a, row, p->k / KILN_NVFP4_BLOCK, (bytes + BYTES - 1) / BYTES);
        for (size_t at = 0; at < bytes; at += KILN_VEC) {
            uint8_t last[KILN_VEC] = {0};
            const uint8_t *from = codes + at;
            kiln_vec low, high, scales = scales_at(scratch->a_scales, at);
            if (bytes - at < KILN_VEC) from = memcpy(last, from, bytes - at);
            kiln_e2m1_numbers(from, &low, &high);
            KILN_VEC_STORE(even + at, KILN_VEC_MUL(low, scales));
            KILN_VEC_STORE(odd + at, KILN_VEC_MUL(high, scales));
        }
        if ((p->k_end - p->k) % 2) odd[bytes - 1] = 0;
        for (size_t i = bytes; i % LEAST; i++)
            even[i] = odd[i] = 0;
    }
}

/* How many rows of b are multiplied at a time with m rows of a. */
KILN_INLINE size_t strip_of(size_t m) {
    return m <= 2 ? STRIP : STRIP / 2;
}

/* Adds the products of a vector of bytes of each row of b, the byte at `at` of what is kept the first of them. */
KILN_INLINE void step(kiln_vec (*products)[STRIP], const product_scratch *scratch, const uint8_t *const *bytes,
                      size_t at, size_t m) {
    const size_t strip = strip_of(m);
    kiln_vec low[STRIP], high[STRIP];
    KILN_UNROLL
    for (size_t c = 0; c < strip; c++) {
        const kiln_vec scales = scales_at(scratch->scales[c], at);
        kiln_e2m1_numbers(bytes[c], &low[c], &high[c]);
        low[c] = KILN_VEC_MUL(low[c], scales);
        high[c] = KILN_VEC_MUL(high[c], scales);
    }
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        const kiln_vec even = KILN_VEC_LOAD(scratch->even + kept_at(r, m) + at);
        const kiln_vec odd = KILN_VEC_LOAD(scratch->odd + kept_at(r, m) + at);
        KILN_UNROLL
        for (size_t c = 0; c < strip; c++)
            products[r][c] = KILN_VEC_FMA(odd, high[c], KILN_VEC_FMA(even, low[c], products[r][c]));
    }
}

KILN_INLINE float total(kiln_vec vector) {
    float lanes[KILN_VEC];
    KILN_VEC_STORE(lanes, vector);
    KILN_UNROLL
    for (size_t half = KILN_VEC / 2; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

/* Adds to the sums the products of m rows of a with a strip of rows of b, from column col of the piece on. */
KILN_INLINE void multiply_strip(product_scratch *scratch, const kiln_gemm_nvfp4_args *args, const piece *p, size_t col,
                                size_t m) {
    const size_t strip = strip_of(m), count = kiln_min(p->cols - col, strip), bytes = bytes_of(p);
    const uint8_t *rows[STRIP], *from[STRIP];
    kiln_vec products[ROWS][STRIP];
    size_t at = 0;
    for (size_t c = 0; c < count; c++)
        take_scales(scratch, scratch->scales[c], &args->b, p->col + col + c, p->k / KILN_NVFP4_BLOCK,
                    (bytes + BYTES - 1) / BYTES);
    KILN_UNROLL
    for (size_t c = 0; c < strip; c++) /* rows that do not exist: the last row with old scales, not used */
        rows[c] = args->b.codes + (p->col + col + kiln_min(c, count - 1)) * (uint64_t)args->b.stride + p->k / 2;
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < strip; c++)
            products[r][c] = KILN_VEC_ZERO();
    }
    for (; at + KILN_VEC <= bytes; at += KILN_VEC) {
        KILN_UNROLL
        for (size_t c = 0; c < strip; c++) {
            from[c] = rows[c] + at;
            if (at % 64 == 0) __builtin_prefetch(from[c] + AHEAD, 0, 2);
        }
        step(products, scratch, from, at, m);
    }
    if (at < bytes) {
        uint8_t last[STRIP][KILN_VEC] = {{0}};
        for (size_t c = 0; c < strip; c++) {
            memcpy(last[c], rows[c] + at, bytes - at);
            from[c] = last[c];
        }
        step(products, scratch, from, at, m);
    }
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < strip; c++)
            if (c < count) scratch->sums[r][col + c] += total(products[r][c]);
    }
}

/* Computes the sums of up to m rows of a with all rows of b of `all`. */
KILN_INLINE void multiply_rows(product_scratch *scratch, const kiln_gemm_nvfp4_args *args, const piece *all, size_t m) {
    memset(scratch->sums, 0, sizeof scratch->sums);
    for (uint64_t k = all->k; k < all->k_end; k += KEPT / m) {
        piece p = *all;
        p.k = k;
        p.k_end = kiln_min(k + KEPT / m, all->k_end);
        take_rows(scratch, args, &p, m);
        for (size_t col = 0; col < p.cols; col += strip_of(m))
            multiply_strip(scratch, args, &p, col, m);
    }
}

/* ---- Kernels ---- */

/* Writes count elements of a row of d. Global scales come one by one: the product of two may be infinite. */
KILN_OUTLINED void finish(product_scratch *scratch, const kiln_gemm_nvfp4_args *args, const float *sums, uint64_t row,
                          uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    void *d = kiln_at_mut(args->d, row * (uint64_t)args->d_stride + col, dtype);
    float *results = kiln_tile_target(scratch->results, d, dtype, false);
    const float left = args->k ? args->a.global_scale[args->a.each ? row : 0] : 1.0f;
    for (size_t i = 0; i < count; i++) {
        float right = args->k ? args->b.global_scale[args->b.each ? col + i : 0] : 1.0f;
        results[i] = sums[i] * left * right * args->scale;
    }
    if (args->bias) {
        const float *biases = kiln_tile_load(scratch->addends, kiln_at(args->bias, col, dtype), count, dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] += biases[i];
    }
    if (args->gated) {
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] = kiln_gated(results[i], args->bound, args->coefficients, KILN_NVFP4_COEFFICIENTS);
    }
    kiln_tile_write(d, results, count, dtype, false);
}

KILN_OUTLINED void gemm_nvfp4_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_nvfp4_args args = *(const kiln_gemm_nvfp4_args *)arguments; /* a copy, which no store can change */
    product_scratch *scratch = span->scratch;
    make_table(scratch);
    for (uint64_t block = span->begin; block < span->end; block++) {
        piece p = {.row = block / span->grid[0] * ROWS, .col = block % span->grid[0] * COLUMNS};
        if (p.row >= (uint64_t)args.m) break;
        p.rows = kiln_min((uint64_t)args.m - p.row, ROWS);
        p.cols = kiln_min((uint64_t)args.n - p.col, COLUMNS);
        p.k_end = (uint64_t)args.k;
        if (p.rows == 1)
            multiply_rows(scratch, &args, &p, 1);
        else if (p.rows == 2)
            multiply_rows(scratch, &args, &p, 2);
        else if (p.rows <= 4)
            multiply_rows(scratch, &args, &p, 4);
        else
            multiply_rows(scratch, &args, &p, ROWS);
        for (size_t row = 0; row < p.rows; row++)
            finish(scratch, &args, scratch->sums[row], p.row + row, p.col, p.cols, dtype);
    }
}
KILN_CPU_KERNEL(gemm_nvfp4_rows)

KILN_OUTLINED void gemm_nvfp4_tiles(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_nvfp4_args args = *(const kiln_gemm_nvfp4_args *)arguments; /* a copy, which no store can change */
    product_scratch *scratch = span->scratch;
    make_table(scratch);
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t down = block / span->grid[0], split = down / args.tile_rows;
        uint64_t row = down % args.tile_rows * TILE, row_end = kiln_min(row + TILE, (uint64_t)args.m);
        piece p = {.col = block % span->grid[0] * TILE, .k = split * args.split};
        if (split >= args.splits) break;
        p.cols = kiln_min((uint64_t)args.n - p.col, TILE);
        p.k_end = kiln_min(p.k + args.split, (uint64_t)args.k);
        for (p.row = row; p.row < row_end; p.row += ROWS) {
            p.rows = kiln_min(row_end - p.row, ROWS);
            multiply_rows(scratch, &args, &p, ROWS);
            for (size_t r = 0; r < p.rows; r++) {
                uint64_t place = (split * (uint64_t)args.m + p.row + r) * (uint64_t)args.n + p.col;
                if (args.partials)
                    memcpy(args.partials + place, scratch->sums[r], p.cols * sizeof(float));
                else
                    finish(scratch, &args, scratch->sums[r], p.row + r, p.col, p.cols, dtype);
            }
        }
    }
}
KILN_CPU_KERNEL(gemm_nvfp4_tiles)

KILN_OUTLINED void gemm_nvfp4_join(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_nvfp4_args args = *(const kiln_gemm_nvfp4_args *)arguments; /* a copy, which no store can change */
    product_scratch *scratch = span->scratch;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t first = block % span->grid[0] * KILN_BLOCK, row = block / span->grid[0];
        uint64_t end = kiln_min(first + KILN_BLOCK, (uint64_t)args.n);
        if (row >= (uint64_t)args.m) break;
        for (uint64_t col = first; col < end; col += TILE) {
            size_t count = kiln_min(end - col, TILE);
            float *sums = scratch->sums[0];
            memset(sums, 0, sizeof scratch->sums[0]);
            for (uint64_t split = 0; split < args.splits; split++) {
                const float *partial = args.partials + (split * (uint64_t)args.m + row) * (uint64_t)args.n + col;
                for (size_t i = 0; i < count; i++)
                    sums[i] += partial[i];
            }
            finish(scratch, &args, sums, row, col, count, dtype);
        }
    }
}
KILN_CPU_KERNEL(gemm_nvfp4_join)
