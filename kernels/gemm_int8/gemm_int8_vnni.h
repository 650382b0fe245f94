/* gemm_int8 by VNNI, which adds products of four pairs of bytes to each lane of int32: of level x86-64-v4 with
 * AVX512_VNNI, of x86-64-v3 with AVX-VNNI. Not every machine of these levels has it, so that is checked.
 *
 * It multiplies unsigned bytes with signed ones: 128 is added to the codes of one factor, and sums start from minus 128
 * times the sum of the other's codes. Sums of products are exact, and so the same as in w8a8_cpu.h.
 *
 * Tiles: as there, but a lane of a column is four codes of k, and a step of k four of them. Rows: vectors along k, and
 * where groups have scales, which are multiplied with each lane's sum, codes are reordered so that a lane has the
 * products that it has there: those of each KILN_VEC-th code. The processor's own prefetching stops at a page: the next
 * row of b is prefetched while one is multiplied.
 *
 * Measured on an AMD EPYC (Zen 5) that was busy with other work, one thread, processor time, beside w8a8_cpu.h in the
 * same run, one scale a tensor: 512 x 2048 x 4096 in 13.1 ms (656 G operations a second), 2.9 times as fast, on
 * x86-64-v4 and 20.9 ms, 3.4 times, on x86-64-v3; with 8192 rows of b and k = 4096, 1 row in 0.77 ms (43 GB/s) and 0.94
 * ms, 2.1 and 2.2 times; 8 rows in 1.73 ms and 1.96 ms, 2.8 and 3.3 times; with scales of groups 1.8 times at least.
 *
 * gemm_int8_amx.h computes tiles instead where it may.
 *
 * Included once, by gemm_int8_cpu.c. */
#include "kernels/common/extensions.h"
#include "kernels/common/matmul/w8a8_cpu.h"
#include <stddef.h>

/* Clang before 19 cannot ask for AVX-VNNI. */
#if defined(__AVX512BW__) || (defined(__AVX2__) && defined(__FMA__) && !(defined(__clang__) && __clang_major__ < 19))

#if defined(__AVX512BW__)
#define VNNI_FEATURE            "avx512vnni"
#define VNNI                    __attribute__((target("avx512vnni")))
#define DOT(sums, plain, signs) _mm512_dpbusd_epi32(sums, plain, signs)
#define LOAD(p)                 _mm512_loadu_si512(p)
#define STORE(p, v)             _mm512_storeu_si512(p, v)
#define SET_32(value)           _mm512_set1_epi32(value)
#define FLIP(v)                 _mm512_xor_si512(v, _mm512_set1_epi8((char)0x80))
#define ADD(a, b)               _mm512_add_epi32(a, b)
#define TO_F32(v)               _mm512_cvtepi32_ps(v)
#define AS_F32(v)               _mm512_castsi512_ps(v)
#define MINUS_128(v)            _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(v, 7))
typedef __m512i codes_vec;
#else
#define VNNI_FEATURE            "avxvnni"
#define VNNI                    __attribute__((target("avxvnni")))
#define DOT(sums, plain, signs) _mm256_dpbusd_avx_epi32(sums, plain, signs)
#define LOAD(p)                 _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v)             _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define SET_32(value)           _mm256_set1_epi32(value)
#define FLIP(v)                 _mm256_xor_si256(v, _mm256_set1_epi8((char)0x80))
#define ADD(a, b)               _mm256_add_epi32(a, b)
#define TO_F32(v)               _mm256_cvtepi32_ps(v)
#define AS_F32(v)               _mm256_castsi256_ps(v)
#define MINUS_128(v)            _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(v, 7))
typedef __m256i codes_vec;
#endif
#define VNNI_INLINE VNNI KILN_INLINE

enum { CODES = 4 * KILN_VEC /* of a vector */, UNROLLED = 8, ONES = 0x01010101 };

/* The first count codes from source on, at most a vector, and zeros after them. */
KILN_INLINE codes_vec load_codes(const uint8_t *source, size_t count) {
    if (count >= CODES) return LOAD(source);
#if defined(__AVX512BW__)
    return _mm512_maskz_loadu_epi8((1ull << count) - 1, source);
#else
    uint8_t codes[CODES] = {0};
    memcpy(codes, source, count);
    return LOAD(codes);
#endif
}

/* How many of count codes are at place i or after it. */
KILN_INLINE size_t behind(size_t count, size_t i) {
    return count > i ? count - i : 0;
}

/* ---- Tiles ---- */

/* Working memory for a strip, with lanes of four codes in place of floats. */
typedef struct vnni_strip {
    codes_vec columns[GROUP / 4][TILE / KILN_VEC];
    codes_vec starts[TILE / KILN_VEC]; /* of sums */
    uint8_t a[ROWS][GROUP];            /* with 128 added */
} vnni_strip;
_Static_assert(sizeof(vnni_strip) <= sizeof(((strip_scratch *)0)->columns), "is where columns are");
_Static_assert(offsetof(strip_scratch, columns) % sizeof(codes_vec) == 0, "vectors are aligned");

/* Loads a vector of each of b's rows from row v * KILN_VEC on, of the n codes that are left, as vector v of the
 * columns; rows as in transpose. */
KILN_INLINE void transpose_codes(codes_vec (*columns)[TILE / KILN_VEC], size_t v, const uint8_t *b, uint64_t stride,
                                 size_t rows, size_t n) {
    kiln_vec block[KILN_VEC];
    KILN_UNROLL
    for (size_t i = 0; i < KILN_VEC; i++)
        block[i] = AS_F32(load_codes(b + kiln_min(v * KILN_VEC + i, rows - 1) * stride, n));
    kiln_vec_transpose(block);
    KILN_UNROLL
    for (size_t i = 0; i < KILN_VEC; i++)
        columns[i][v] = (codes_vec)block[i];
}

/* Loads n codes of each of b's rows as columns, with zeros after them up to whole vectors. */
VNNI_INLINE void take_columns(vnni_strip *codes, const uint8_t *b, uint64_t stride, size_t rows, size_t n) {
    const size_t end = (rows + VECS * KILN_VEC - 1) / (VECS * KILN_VEC) * VECS;
    for (size_t v = 0; v < end; v++) {
        codes_vec sums = SET_32(0);
        for (size_t k = 0; k < n; k += CODES) {
            transpose_codes(&codes->columns[k / 4], v, b + k, stride, rows, n - k);
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++)
                sums = DOT(sums, SET_32(ONES), codes->columns[k / 4 + i][v]);
        }
        codes->starts[v] = MINUS_128(sums);
    }
}

/* Adds the products of four codes of ROWS rows with VECS vectors of columns. */
VNNI_INLINE void multiply_four(codes_vec (*products)[VECS], const uint8_t (*a)[GROUP], const codes_vec *columns,
                               size_t k) {
    codes_vec factors[VECS];
    KILN_UNROLL
    for (size_t v = 0; v < VECS; v++)
        factors[v] = columns[k / 4 * (TILE / KILN_VEC) + v];
    KILN_UNROLL
    for (size_t r = 0; r < ROWS; r++) {
        int32_t four;
        memcpy(&four, &a[r][k], sizeof four);
        const codes_vec element = SET_32(four);
        KILN_UNROLL
        for (size_t v = 0; v < VECS; v++)
            products[r][v] = DOT(products[r][v], element, factors[v]);
    }
}

/* Adds to sums the products of n codes of ROWS rows with VECS vectors of columns, from vector `first` on. */
VNNI_INLINE void multiply_codes(w8a8_sum *sums, const vnni_strip *codes, size_t first, size_t n, const float *a_scales,
                                const float *b_scales, bool grouped) {
    const codes_vec *columns = &codes->columns[0][first];
    codes_vec products[ROWS][VECS];
    KILN_UNROLL
    for (size_t r = 0; r < ROWS; r++) {
        KILN_UNROLL
        for (size_t v = 0; v < VECS; v++)
            products[r][v] = codes->starts[first + v];
    }
    for (size_t k = 0; k < n; k += 4 * UNROLLED) {
        KILN_UNROLL
        for (size_t step = 0; step < UNROLLED; step++)
            multiply_four(products, codes->a, columns, k + 4 * step);
    }
    KILN_UNROLL
    for (size_t r = 0; r < ROWS; r++) {
        const kiln_vec left = KILN_VEC_SET(a_scales[r]);
        KILN_UNROLL
        for (size_t v = 0; v < VECS; v++) {
            w8a8_sum *sum = &sums[r * TILE + v * KILN_VEC];
            if (grouped) {
                const kiln_vec factors = KILN_VEC_MUL(left, KILN_VEC_LOAD(b_scales + v * KILN_VEC));
                KILN_VEC_STORE(&sum->scaled,
                               KILN_VEC_FMA(TO_F32(products[r][v]), factors, KILN_VEC_LOAD(&sum->scaled)));
            } else {
                STORE(sum, ADD(LOAD(sum), products[r][v]));
            }
        }
    }
}

VNNI static void multiply_strip_vnni(strip_scratch *scratch, const kiln_w8a8_args *args, const strip *s, uint64_t k,
                                     size_t n) {
    vnni_strip *codes = (vnni_strip *)(void *)scratch->columns;
    take_columns(codes, args->b + s->col * (uint64_t)args->b_stride + k, (uint64_t)args->b_stride, s->cols, n);
    for (size_t i = 0; args->grouped && i < s->cols; i++)
        scratch->b_scales[i] = kiln_w8a8_scale(&args->b_scales, s->col + i, k / GROUP);
    for (size_t row = 0; row < s->rows; row += ROWS) {
        float a_scales[ROWS] = {0};
        for (size_t r = 0; r < ROWS; r++) { /* the last row several times, if there are no more */
            uint64_t place = s->row + kiln_min(row + r, s->rows - 1);
            for (size_t i = 0; i < n; i += CODES)
                STORE(codes->a[r] + i, FLIP(load_codes(args->a + place * (uint64_t)args->a_stride + k + i, n - i)));
            if (args->grouped) a_scales[r] = kiln_w8a8_scale(&args->a_scales, place, k / GROUP);
        }
        for (size_t col = 0; col < s->cols; col += VECS * KILN_VEC)
            if (args->grouped)
                multiply_codes(&scratch->sums[row][col], codes, col / KILN_VEC, n, a_scales, scratch->b_scales + col,
                               true);
            else
                multiply_codes(&scratch->sums[row][col], codes, col / KILN_VEC, n, a_scales, scratch->b_scales + col,
                               false);
    }
}

#if defined(__AVX512BW__)
#include "kernels/gemm_int8/gemm_int8_amx.h"
#endif

static size_t multiply_strip_extended(strip_scratch *scratch, const kiln_w8a8_args *args, const strip *s, uint64_t k) {
    const size_t n = kiln_min(s->k_end - k, GROUP);
    if (!KILN_CPU_HAS(VNNI_FEATURE)) return 0;
    multiply_strip_vnni(scratch, args, s, k, n);
    return n;
}

static bool tiles_extended(const kiln_w8a8_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
#if defined(__AVX512BW__)
    if (args->k && KILN_CPU_HAS_AMX(KILN__CPU_AMX_INT8)) {
        amx_tiles(args, span, dtype);
        return true;
    }
#endif
    (void)args, (void)span, (void)dtype;
    return false;
}

/* ---- Few rows ---- */

enum { KEPT_CODES = 1 << 15 /* of a's rows: whole groups of each */, KEPT_GROUPS = KEPT_CODES / GROUP };

/* Working memory for the rows, after rows_scratch: whole groups of each row of a, with zeros after the last. */
typedef struct vnni_rows {
    uint8_t a[KEPT_CODES];
    codes_vec starts[KEPT_GROUPS]; /* of a group's sums; without groups, the first is that of the row */
    float a_scales[KEPT_GROUPS];
} vnni_rows;
_Static_assert(sizeof(vnni_rows) + sizeof(rows_scratch) <= KILN_CPU_SCRATCH, "fits");
_Static_assert(sizeof(rows_scratch) % sizeof(codes_vec) == 0, "vectors are aligned behind it");

/* Moves code i of a vector into lane i mod KILN_VEC. */
KILN_INLINE codes_vec reorder(codes_vec codes) {
    const __m128i turn = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#if defined(__AVX512BW__)
    const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, codes), _mm512_broadcast_i32x4(turn));
#else
    const __m256i lanes = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    return _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(codes, lanes), _mm256_broadcastsi128_si256(turn));
#endif
}

/* Loads a piece's codes of row r of a. */
VNNI KILN_OUTLINED void take_row(vnni_rows *kept, const kiln_w8a8_args *args, const rows_piece *piece, size_t r,
                                 size_t m, bool grouped) {
    const uint64_t row = piece->row + kiln_min(r, piece->rows - 1);
    const uint8_t *source = args->a + row * (uint64_t)args->a_stride + piece->k;
    uint8_t *a = kept->a + r * (KEPT_CODES / m);
    codes_vec sums = SET_32(0);
    for (size_t k = 0; k < piece->n; k += GROUP) {
        const size_t place = r * (KEPT_GROUPS / m) + k / GROUP;
        if (grouped) sums = SET_32(0);
        for (size_t i = k; i < k + GROUP; i += CODES) {
            codes_vec codes = load_codes(source + i, behind(piece->n, i));
            if (grouped) codes = reorder(codes);
            STORE(a + i, codes);
            sums = DOT(sums, SET_32(ONES), codes);
        }
        kept->starts[grouped ? place : r * (KEPT_GROUPS / m)] = MINUS_128(sums);
        if (grouped) kept->a_scales[place] = kiln_w8a8_scale(&args->a_scales, row, (piece->k + k) / GROUP);
    }
}

/* Adds to sums the products of a row of b with m rows of a, if groups have no scales. */
VNNI_INLINE void dot_rows(codes_vec *sums, const vnni_rows *kept, const uint8_t *b, uint64_t stride, size_t n,
                          size_t m) {
    KILN_UNROLL
    for (size_t r = 0; r < m; r++)
        sums[r] = ADD(sums[r], kept->starts[r * (KEPT_GROUPS / m)]);
    for (size_t k = 0; k < n; k += CODES) {
        const codes_vec codes = FLIP(load_codes(b + k, n - k));
        __builtin_prefetch(b + stride + k);
        KILN_UNROLL
        for (size_t r = 0; r < m; r++)
            sums[r] = DOT(sums[r], codes, LOAD(kept->a + r * (KEPT_CODES / m) + k));
    }
}

/* The same for codes whose groups have scales. */
VNNI_INLINE void dot_groups(codes_vec *sums, const vnni_rows *kept, const uint8_t *b, uint64_t stride, size_t n,
                            size_t m, const kiln_w8a8_scales *b_scales, uint64_t row, uint64_t group) {
    for (size_t k = 0; k < n; k += GROUP) {
        const float right = kiln_w8a8_scale(b_scales, row, group + k / GROUP);
        codes_vec codes[GROUP / CODES];
        KILN_UNROLL
        for (size_t i = 0; i < GROUP / CODES; i++)
            codes[i] = reorder(FLIP(load_codes(b + k + i * CODES, behind(n, k + i * CODES))));
        for (size_t i = 0; i < GROUP; i += 64)
            __builtin_prefetch(b + stride + k + i);
        KILN_UNROLL
        for (size_t r = 0; r < m; r++) {
            const size_t place = r * (KEPT_GROUPS / m) + k / GROUP;
            codes_vec products = kept->starts[place];
            KILN_UNROLL
            for (size_t i = 0; i < GROUP / CODES; i++)
                products = DOT(products, codes[i], LOAD(kept->a + r * (KEPT_CODES / m) + k + i * CODES));
            sums[r] =
                (codes_vec)KILN_VEC_FMA(TO_F32(products), KILN_VEC_SET(kept->a_scales[place] * right), AS_F32(sums[r]));
        }
    }
}

/* A block's columns of d, with m rows, at least as many as a has: the last one several times. */
VNNI_INLINE void codes_block_of(rows_scratch *scratch, const kiln_w8a8_args *args, rows_piece piece, size_t cols,
                                size_t m, bool grouped) {
    vnni_rows *kept = (vnni_rows *)(void *)(scratch + 1);
    const uint64_t most = KEPT_CODES / m;
    for (; piece.k < (uint64_t)args->k; piece.k += most) {
        piece.n = kiln_min((uint64_t)args->k - piece.k, most);
        for (size_t r = 0; r < m; r++)
            take_row(kept, args, &piece, r, m, grouped);
        for (size_t col = 0; col < cols; col++) {
            const uint64_t stride = (uint64_t)args->b_stride;
            const uint8_t *b = args->b + (piece.col + col) * stride + piece.k;
            codes_vec sums[KILN_W8A8_ROWS];
            KILN_UNROLL
            for (size_t r = 0; r < m; r++)
                sums[r] = LOAD(scratch->sums[r][col]);
            if (grouped)
                dot_groups(sums, kept, b, stride, piece.n, m, &args->b_scales, piece.col + col, piece.k / GROUP);
            else
                dot_rows(sums, kept, b, stride, piece.n, m);
            KILN_UNROLL
            for (size_t r = 0; r < m; r++)
                STORE(scratch->sums[r][col], sums[r]);
        }
    }
}

VNNI_INLINE void codes_block(rows_scratch *scratch, const kiln_w8a8_args *args, const rows_piece *piece, size_t cols,
                             bool grouped) {
    if (piece->rows == 1)
        codes_block_of(scratch, args, *piece, cols, 1, grouped);
    else if (piece->rows == 2)
        codes_block_of(scratch, args, *piece, cols, 2, grouped);
    else if (piece->rows <= 4)
        codes_block_of(scratch, args, *piece, cols, 4, grouped);
    else
        codes_block_of(scratch, args, *piece, cols, KILN_W8A8_ROWS, grouped);
}

VNNI static void rows_block_vnni(rows_scratch *scratch, const kiln_w8a8_args *args, const rows_piece *piece,
                                 size_t cols) {
    if (args->grouped)
        codes_block(scratch, args, piece, cols, true);
    else
        codes_block(scratch, args, piece, cols, false);
}

static bool rows_block_extended(rows_scratch *scratch, const kiln_w8a8_args *args, const rows_piece *piece,
                                size_t cols) {
    if (!KILN_CPU_HAS(VNNI_FEATURE)) return false;
    rows_block_vnni(scratch, args, piece, cols);
    return true;
}

#else

static size_t multiply_strip_extended(strip_scratch *scratch, const kiln_w8a8_args *args, const strip *s, uint64_t k) {
    (void)scratch, (void)args, (void)s, (void)k;
    return 0;
}

static bool tiles_extended(const kiln_w8a8_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    (void)args, (void)span, (void)dtype;
    return false;
}

static bool rows_block_extended(rows_scratch *scratch, const kiln_w8a8_args *args, const rows_piece *piece,
                                size_t cols) {
    (void)scratch, (void)args, (void)piece, (void)cols;
    return false;
}

#endif
