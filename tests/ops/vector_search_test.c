/* quantize_embedding and vector_search against plain C, bit for bit where they promise it; and how many of the nearest
 * rows searches on codes find, of random embeddings, whole and cut. */
#include "kernels/common/extensions.h"
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double any_number(void) {
    return random_number(-4, 4);
}

static double special_number(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-45, -1e-39, 65504, -1, INFINITY, -INFINITY, NAN};
    return values[random_integer(0, random_integer(0, 9) ? 6 : 9)];
}

static double tiny_number(void) {
    return random_number(-1e-40, 1e-40);
}

static double any_byte(void) {
    return (double)random_integer(0, 255);
}

/* Few values, so that rows that are as near as the last chosen one are many. */
static double few_bytes(void) {
    return (double)(random_integer(0, 1) * 0x11);
}

static double any_scale(void) {
    return random_number(0.5, 2);
}

/* Negative scales turn the order around, and make zeros negative. */
static double special_scale(void) {
    static const double values[] = {0, -0.0, -1, 1, 0x1p-149, INFINITY, NAN};
    return values[random_integer(0, random_integer(0, 20) ? 4 : 6)];
}

static const char *const code_names[] = {"binary", "int8", "int4"};

static int64_t code_bytes(int32_t code_type, int64_t cols) {
    return code_type == KILN_VECTOR_INT8 ? cols : code_type == KILN_VECTOR_INT4 ? (cols + 1) / 2 : (cols + 7) / 8;
}

/* ---- quantize_embedding ------------------------------------------------------------------------------------------ */

/* The codes of a row and its scale as f32 arithmetic gives them; its return value is the scale at length 1. */
static double define_codes(const double *x, int64_t cols, int32_t code_type, int64_t code_cols, double *codes,
                           float *out_scale) {
    const float smax = code_type == KILN_VECTOR_INT8 ? 127 : 7;
    float amax = 0;
    for (int64_t i = 0; i < cols; i++)
        amax = fmaxf(amax, fabsf((float)x[i]));
    amax = fminf(amax, 0x1.fffffep127f);
    const float scale = code_type != KILN_VECTOR_BINARY && amax >= smax * 0x1p-126f ? amax / smax : 1;
    const float factor = 1 / scale;
    double squares = 0;
    for (int64_t i = 0; i < code_cols; i++)
        codes[i] = code_type == KILN_VECTOR_INT4 ? 0x88 : 0;
    for (int64_t i = 0; i < cols; i++) {
        const float number = (float)x[i] * factor;
        const float bounded = isnan(number) ? 0 : fmaxf(-smax, fminf(number, smax));
        const int code = (int)nearbyintf(bounded);
        squares += (double)bounded * (double)bounded;
        if (code_type == KILN_VECTOR_BINARY)
            codes[i / 8] += x[i] > 0 ? 0x80 >> i % 8 : 0;
        else if (code_type == KILN_VECTOR_INT8)
            codes[i] = code & 0xff;
        else
            codes[i / 2] += code * (i % 2 ? 16 : 1);
    }
    *out_scale = scale;
    return squares >= 1 && code_type != KILN_VECTOR_BINARY ? 1 / sqrt(squares) : (double)scale;
}

typedef struct rows_case {
    int64_t rows, cols, more; /* bytes behind the codes */
    int64_t padding, place, codes_padding, codes_place;
    int32_t code_type, normalize;
    bool peaks; /* the greatest number of a row is one of the last of a thread that has several units */
} rows_case;

static void quantize(kiln_stream *stream, precision p, rows_case c, double (*value)(void), bool wants_scales) {
    const int64_t code_cols = code_bytes(c.code_type, c.cols) + c.more;
    harness_describe("quantize_embedding_%s %s %lld x %lld, %lld bytes, padding %lld and %lld, at %lld and %lld%s",
                     precision_name(p), code_names[c.code_type], (long long)c.rows, (long long)c.cols,
                     (long long)code_cols, (long long)c.padding, (long long)c.codes_padding, (long long)c.place,
                     (long long)c.codes_place, c.normalize ? ", normalised" : "");
    matrix x = matrix_create(stream, p, c.rows, c.cols, c.cols + c.padding, c.place);
    matrix codes = matrix_create(stream, U8, c.rows, code_cols, code_cols + c.codes_padding, c.codes_place);
    matrix scales = matrix_create(stream, F32, 1, c.rows, 0, AT_END);
    double *expected = malloc(sizeof *expected * (size_t)(c.rows * code_cols));
    double *expected_scales = malloc(sizeof *expected_scales * (size_t)c.rows);
    double *allowed = malloc(sizeof *allowed * (size_t)c.rows);
    assert_non_null(expected);
    assert_non_null(expected_scales);
    assert_non_null(allowed);
    matrix_fill(&x, value);
    if (c.peaks) { /* near the end of each row, one place further in the next */
        for (int64_t row = 0; row < c.rows; row++)
            x.values[row * c.cols + c.cols - 1 - row] = 64;
        matrix_set(&x, x.values);
    }
    for (int64_t row = 0; row < c.rows; row++) {
        float scale;
        double normalized =
            define_codes(x.values + row * c.cols, c.cols, c.code_type, code_cols, expected + row * code_cols, &scale);
        expected_scales[row] = c.normalize ? normalized : (double)scale;
        allowed[row] = normalized * 0x1p-16;
    }
    kiln_quantize_embedding_params params = {.codes = codes.data,
                                             .scales = wants_scales ? scales.data : NULL,
                                             .x = x.data,
                                             .rows = c.rows,
                                             .cols = c.cols,
                                             .code_cols = code_cols,
                                             .codes_stride = c.codes_padding ? codes.stride : 0,
                                             .x_stride = c.padding ? x.stride : 0,
                                             .code_type = c.code_type,
                                             .normalize = c.normalize};
    harness_ok(operator_function(&kiln__operator_quantize_embedding, p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&codes, expected);
    if (!wants_scales)
        matrix_expect_unchanged(&scales);
    else if (c.normalize)
        matrix_expect(&scales, expected_scales, allowed);
    else
        matrix_expect_exact(&scales, expected_scales);
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
    free(expected);
    free(expected_scales);
    free(allowed);
}

static void test_rows(kiln_stream *stream) {
    static const int64_t cols[] = {1, 7, 8, 31, 64, 100, 256, 257, 1000, 2100};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < 6 * sizeof cols / sizeof *cols; i++) {
            rows_case c = {.cols = cols[i / 6], .code_type = (int32_t)(i % 3), .normalize = i / 2 % 2};
            c.rows = c.cols < 64 ? 33 : 3;
            if (i % 4 == 1) c.more = random_integer(0, 9);
            if (i % 4 > 1) c.codes_padding = random_integer(0, 9), c.codes_place = random_place();
            if (i / 3 % 2) c.padding = random_integer(1, 9), c.place = random_place();
            quantize(stream, p, c, any_number, i % 5 != 0);
        }
    for (precision p = precision_first(); p < precision_end(); p++)
        quantize(stream, p, (rows_case){.rows = 5, .cols = 512, .code_type = KILN_VECTOR_INT8}, special_number, true);
    quantize(stream, precision_first(),
             (rows_case){.rows = 9, .cols = 2100, .padding = 3, .code_type = KILN_VECTOR_INT8, .peaks = true},
             any_number, true);
    for (int32_t code_type = KILN_VECTOR_BINARY; code_type <= KILN_VECTOR_INT4; code_type++) {
        rows_case c = {.rows = 20, .cols = 24, .code_type = code_type};
        quantize(stream, precision_first(), c, special_number, true);
        c.normalize = 1;
        quantize(stream, precision_first(), c, special_number, true);
        quantize(stream, precision_first(), c, tiny_number, true);
    }
}

/* The int8 codes and scales of rows are those of quantize_int8 with a scale for each row. */
static void test_codes_are_those_of_quantize_int8(kiln_stream *stream) {
    const int64_t rows = harness_on_cpu(stream) ? 64 : 4, cols = 1000;
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("quantize_embedding_%s and quantize_int8_%s", precision_name(p), precision_name(p));
        matrix x = matrix_create(stream, p, rows, cols, 0, AT_END);
        matrix codes = matrix_create(stream, I8, rows, cols, 0, AT_END);
        matrix scales = matrix_create(stream, F32, 1, rows, 0, AT_END);
        matrix embedding_codes = matrix_create(stream, I8, rows, cols, 0, AT_END);
        matrix embedding_scales = matrix_create(stream, F32, 1, rows, 0, AT_END);
        matrix_fill(&x, any_number);
        kiln_quantize_int8_params quantize_int8 = {
            .codes = codes.data, .scales = scales.data, .x = x.data, .rows = rows, .cols = cols};
        harness_ok(
            operator_function(&kiln__operator_quantize_int8, p)->call(stream, &quantize_int8, sizeof quantize_int8));
        kiln_quantize_embedding_params quantize_embedding = {.codes = embedding_codes.data,
                                                             .scales = embedding_scales.data,
                                                             .x = x.data,
                                                             .rows = rows,
                                                             .cols = cols,
                                                             .code_cols = cols,
                                                             .code_type = KILN_VECTOR_INT8};
        harness_ok(operator_function(&kiln__operator_quantize_embedding, p)
                       ->call(stream, &quantize_embedding, sizeof quantize_embedding));
        matrix_get(&codes);
        matrix_get(&scales);
        matrix_expect_exact(&embedding_codes, codes.values);
        matrix_expect_exact(&embedding_scales, scales.values);
        matrix *const all[] = {&x, &codes, &scales, &embedding_codes, &embedding_scales};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            matrix_destroy(all[i]);
    }
}

/* ---- vector_search ----------------------------------------------------------------------------------------------- */

static int32_t code_of(const double *codes, int32_t code_type, int64_t i) {
    if (code_type == KILN_VECTOR_INT8) return (int8_t)(uint8_t)codes[i];
    return (((int32_t)codes[i / 2] >> (i % 2 ? 4 : 0)) & 15) - 8;
}

/* The sum of a row with a query: bits that differ, or products. */
static int64_t sum_of(const double *a, const double *b, int32_t code_type, int64_t bytes) {
    int64_t sum = 0, count = code_type == KILN_VECTOR_INT4 ? 2 * bytes : bytes;
    for (int64_t i = 0; i < count; i++)
        if (code_type == KILN_VECTOR_BINARY)
            sum += __builtin_popcount((uint32_t)a[i] ^ (uint32_t)b[i]);
        else
            sum += code_of(a, code_type, i) * code_of(b, code_type, i);
    return sum;
}

typedef struct found_row {
    double score, order; /* greater ones first */
    int64_t row;
} found_row;

static int nearest_first(const void *a, const void *b) {
    const found_row *x = a, *y = b;
    bool x_nan = isnan(x->order), y_nan = isnan(y->order);
    if (x_nan != y_nan) return x_nan ? -1 : 1;
    if (!x_nan && x->order != y->order) return x->order > y->order ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

typedef struct search_case {
    int64_t queries, rows, bytes, k;
    int64_t padding, place, query_padding;
    int32_t code_type;
} search_case;

static void define_search(const search_case *c, const matrix *queries, const matrix *table, const matrix *query_scales,
                          const matrix *table_scales, double *all, double *scores, double *indices) {
    found_row *rows = malloc(sizeof *rows * (size_t)c->rows);
    assert_non_null(rows);
    for (int64_t q = 0; q < c->queries; q++) {
        for (int64_t row = 0; row < c->rows; row++) {
            const float sum =
                (float)sum_of(queries->values + q * c->bytes, table->values + row * c->bytes, c->code_type, c->bytes);
            const float left = query_scales ? (float)query_scales->values[q] : 1;
            const float right = table_scales ? (float)table_scales->values[row] : 1;
            const float score = sum * (left * right);
            rows[row].row = row;
            rows[row].score = c->code_type == KILN_VECTOR_BINARY ? (double)sum : (double)(score + 0.0f);
            rows[row].order = c->code_type == KILN_VECTOR_BINARY ? -(double)sum : (double)score;
        }
        for (int64_t row = 0; row < c->rows; row++)
            all[q * c->rows + row] = rows[row].score;
        qsort(rows, (size_t)c->rows, sizeof *rows, nearest_first);
        for (int64_t i = 0; i < c->k; i++) {
            scores[q * c->k + i] = rows[i].score;
            indices[q * c->k + i] = (double)rows[i].row;
        }
    }
    free(rows);
}

static void search(kiln_stream *stream, precision p, search_case c, double (*byte)(void), double (*scale)(void),
                   bool wants_scores) {
    const bool wants_all = random_integer(0, 1);
    harness_describe("vector_search_%s %s %lld of %lld x %lld for %lld, padding %lld and %lld, at %lld%s",
                     precision_name(p), code_names[c.code_type], (long long)c.k, (long long)c.rows, (long long)c.bytes,
                     (long long)c.queries, (long long)c.padding, (long long)c.query_padding, (long long)c.place,
                     scale ? ", scales" : "");
    matrix queries = matrix_create(stream, U8, c.queries, c.bytes, c.bytes + c.query_padding, AT_END);
    matrix table = matrix_create(stream, U8, c.rows, c.bytes, c.bytes + c.padding, c.place);
    matrix query_scales = matrix_create(stream, F32, 1, c.queries, 0, AT_END);
    matrix table_scales = matrix_create(stream, F32, 1, c.rows, 0, AT_END);
    matrix scores = matrix_create(stream, p, c.queries, c.k, 0, AT_END);
    matrix indices = matrix_create(stream, I32, c.queries, c.k, 0, AT_END);
    matrix all = matrix_create(stream, p, c.queries, c.rows, 0, AT_END);
    double *expected = malloc(sizeof *expected * (size_t)(2 * c.queries * c.k));
    double *expected_all = malloc(sizeof *expected_all * (size_t)(c.queries * c.rows));
    assert_non_null(expected);
    assert_non_null(expected_all);
    matrix_fill(&queries, byte);
    matrix_fill(&table, byte);
    if (scale) matrix_fill(&query_scales, scale), matrix_fill(&table_scales, scale);
    define_search(&c, &queries, &table, scale ? &query_scales : NULL, scale ? &table_scales : NULL, expected_all,
                  expected, expected + c.queries * c.k);
    kiln_vector_search_params params = {.scores = wants_scores ? scores.data : NULL,
                                        .indices = indices.data,
                                        .all_scores = wants_all ? all.data : NULL,
                                        .query_codes = queries.data,
                                        .table_codes = table.data,
                                        .query_scales = scale ? query_scales.data : NULL,
                                        .table_scales = scale ? table_scales.data : NULL,
                                        .queries = c.queries,
                                        .rows = c.rows,
                                        .code_cols = c.bytes,
                                        .k = c.k,
                                        .query_codes_stride = c.query_padding ? queries.stride : 0,
                                        .table_codes_stride = c.padding ? table.stride : 0,
                                        .code_type = c.code_type};
    const kiln_operator_function *function = operator_function(&kiln__operator_vector_search, p);
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4 + 4, 0, 0);
    if (params.workspace_size) params.workspace = workspace.data;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_exact(&indices, expected + c.queries * c.k);
    if (wants_scores)
        matrix_expect_exact(&scores, expected);
    else
        matrix_expect_unchanged(&scores);
    if (wants_all)
        matrix_expect_exact(&all, expected_all);
    else
        matrix_expect_unchanged(&all);
    matrix_expect_unchanged(&table);
    matrix_destroy(&queries);
    matrix_destroy(&table);
    matrix_destroy(&query_scales);
    matrix_destroy(&table_scales);
    matrix_destroy(&scores);
    matrix_destroy(&indices);
    matrix_destroy(&all);
    matrix_destroy(&workspace);
    free(expected);
    free(expected_all);
}

/* One slice and several, tiles of queries and single ones, rows of vectors and of bytes. */
static void test_searches(kiln_stream *stream) {
    static const struct {
        int64_t queries, rows, bytes, k;
    } sizes[] = {{1, 1, 1, 1},       {1, 300, 3, 7},   {2, 65, 16, 65},   {3, 130, 17, 10},
                 {2, 4200, 16, 10},  {5, 140, 65, 4},  {1, 129, 96, 129}, {1, 2100, 80, 10},
                 {4, 260, 132, 259}, {1, 513, 200, 1}, {2, 40, 1600, 5},  {1, 30, 3100, 30}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes * 3; i++) {
            search_case c = {.queries = sizes[i / 3].queries, .rows = sizes[i / 3].rows, .bytes = sizes[i / 3].bytes};
            c.k = sizes[i / 3].k;
            c.code_type = (int32_t)(i % 3);
            if (i % 2) c.query_padding = random_integer(0, 5);
            if (i % 4 == 3) c.padding = random_integer(0, 17), c.place = random_place();
            search(stream, p, c, i % 5 ? any_byte : few_bytes, i % 3 ? any_scale : NULL, i % 7 != 0);
        }
    search_case c = {.queries = 2, .rows = 200, .bytes = 8, .k = 20, .code_type = KILN_VECTOR_INT8};
    search(stream, precision_first(), c, few_bytes, special_scale, true);
    c.code_type = KILN_VECTOR_INT4;
    search(stream, precision_first(), c, any_byte, special_scale, true);
}

/* Long lists, of which blocks sort what they have again and again, and many slices: ranks are joined more than once. */
static void test_long_lists(kiln_stream *stream) {
    search_case c = {.queries = 1, .rows = 2100, .bytes = 4, .k = 1000, .code_type = KILN_VECTOR_BINARY};
    search(stream, precision_first(), c, any_byte, NULL, true);
    /* A floor from the greatest ranks of every list; and from those of every second list. */
    c = (search_case){.queries = 2, .rows = 9000, .bytes = 128, .k = 3, .code_type = KILN_VECTOR_INT8};
    search(stream, precision_first(), c, any_byte, any_scale, true);
    c = (search_case){.queries = 1, .rows = 300000, .bytes = 4, .k = 7, .code_type = KILN_VECTOR_BINARY};
    search(stream, precision_first(), c, any_byte, NULL, true);
    if (!harness_on_cpu(stream)) return;
    c = (search_case){.queries = 5, .rows = 50000, .bytes = 8, .k = 1024, .code_type = KILN_VECTOR_INT8};
    search(stream, precision_first(), c, any_byte, any_scale, true);
    c = (search_case){.queries = 1, .rows = 70000, .bytes = 128, .k = 200, .code_type = KILN_VECTOR_BINARY};
    search(stream, precision_first(), c, any_byte, NULL, true);
}

/* The longest rows that there may be, with products as great as they can be. */
static void test_long_rows(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    search_case c = {.queries = 2, .rows = 70, .bytes = KILN_VECTOR_CODE_COLS_MOST, .k = 3};
    for (c.code_type = KILN_VECTOR_BINARY; c.code_type <= KILN_VECTOR_INT4; c.code_type++)
        search(stream, F32, c, any_byte, any_scale, true);
}

/* ---- Recall ------------------------------------------------------------------------------------------------------ */

enum { RECALL_QUERIES = 32, RECALL_ROWS = 1000, RECALL_COLS = 256, RECALL_K = 10 };

/* Sums of 12 numbers are nearly normal. The first elements of a row have more of its length, as those of embeddings
 * that were trained to be cut. */
static void fill_embeddings(matrix *m) {
    double *values = malloc(sizeof *values * (size_t)(m->rows * m->cols));
    assert_non_null(values);
    for (int64_t i = 0; i < m->rows * m->cols; i++) {
        double sum = 0;
        for (int n = 0; n < 12; n++)
            sum += random_number(-0.5, 0.5);
        values[i] = sum / sqrt(1 + (double)(i % m->cols) / 64);
    }
    matrix_set(m, values);
    free(values);
}

/* The nearest by cosine, in f64. */
static void define_nearest(const matrix *queries, const matrix *table, int64_t *nearest) {
    found_row *rows = malloc(sizeof *rows * RECALL_ROWS);
    assert_non_null(rows);
    for (int64_t q = 0; q < RECALL_QUERIES; q++) {
        for (int64_t row = 0; row < RECALL_ROWS; row++) {
            const double *a = queries->values + q * RECALL_COLS, *b = table->values + row * RECALL_COLS;
            double dot = 0, squares = 0;
            for (int64_t i = 0; i < RECALL_COLS; i++)
                dot += a[i] * b[i], squares += b[i] * b[i];
            rows[row] = (found_row){.order = dot / sqrt(squares), .row = row};
        }
        qsort(rows, RECALL_ROWS, sizeof *rows, nearest_first);
        for (int64_t i = 0; i < RECALL_K; i++)
            nearest[q * RECALL_K + i] = rows[i].row;
    }
    free(rows);
}

/* The codes of the first cols of m. */
static void code_embeddings(kiln_stream *stream, const matrix *m, int64_t cols, int32_t code_type, matrix *codes,
                            matrix *scales) {
    kiln_quantize_embedding_params params = {.codes = codes->data,
                                             .scales = scales->data,
                                             .x = m->data,
                                             .rows = m->rows,
                                             .cols = cols,
                                             .code_cols = codes->cols,
                                             .x_stride = m->stride,
                                             .code_type = code_type,
                                             .normalize = 1};
    harness_ok(kiln_quantize_embedding_f32(stream, &params));
}

/* How many of the nearest a search on codes finds, from 0 to 1. */
static double recall(kiln_stream *stream, const matrix *queries, const matrix *table, const int64_t *nearest,
                     int64_t cols, int32_t code_type) {
    const int64_t bytes = code_bytes(code_type, cols);
    matrix query_codes = matrix_create(stream, U8, RECALL_QUERIES, bytes, 0, 0);
    matrix table_codes = matrix_create(stream, U8, RECALL_ROWS, bytes, 0, 0);
    matrix query_scales = matrix_create(stream, F32, 1, RECALL_QUERIES, 0, 0);
    matrix table_scales = matrix_create(stream, F32, 1, RECALL_ROWS, 0, 0);
    matrix indices = matrix_create(stream, I32, RECALL_QUERIES, RECALL_K, 0, 0);
    code_embeddings(stream, queries, cols, code_type, &query_codes, &query_scales);
    code_embeddings(stream, table, cols, code_type, &table_codes, &table_scales);
    kiln_vector_search_params params = {.indices = indices.data,
                                        .query_codes = query_codes.data,
                                        .table_codes = table_codes.data,
                                        .query_scales = query_scales.data,
                                        .table_scales = table_scales.data,
                                        .queries = RECALL_QUERIES,
                                        .rows = RECALL_ROWS,
                                        .code_cols = bytes,
                                        .k = RECALL_K,
                                        .code_type = code_type};
    harness_ok(kiln_vector_search_f32_workspace_size(stream, &params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4 + 4, 0, 0);
    if (params.workspace_size) params.workspace = workspace.data;
    harness_ok(kiln_vector_search_f32(stream, &params));
    matrix_get(&indices);
    int64_t found = 0;
    for (int64_t i = 0; i < RECALL_QUERIES * RECALL_K; i++)
        for (int64_t j = 0; j < RECALL_K; j++)
            found += (int64_t)indices.values[i] == nearest[i / RECALL_K * RECALL_K + j];
    matrix_destroy(&query_codes);
    matrix_destroy(&table_codes);
    matrix_destroy(&query_scales);
    matrix_destroy(&table_scales);
    matrix_destroy(&indices);
    matrix_destroy(&workspace);
    return (double)found / (RECALL_QUERIES * RECALL_K);
}

/* The bounds are what is seen on average less five standard deviations; chance finds one of a hundred. */
static void test_recall(kiln_stream *stream) {
    static const struct {
        int32_t code_type;
        int64_t cols;
        double least;
    } cases[] = {{KILN_VECTOR_INT8, 256, 0.95}, {KILN_VECTOR_INT4, 256, 0.68}, {KILN_VECTOR_BINARY, 256, 0.09},
                 {KILN_VECTOR_INT8, 128, 0.44}, {KILN_VECTOR_INT4, 128, 0.4},  {KILN_VECTOR_BINARY, 128, 0.06}};
    int64_t nearest[RECALL_QUERIES * RECALL_K];
    matrix queries = matrix_create(stream, F32, RECALL_QUERIES, RECALL_COLS, 0, 0);
    matrix table = matrix_create(stream, F32, RECALL_ROWS, RECALL_COLS, 0, 0);
    fill_embeddings(&queries);
    fill_embeddings(&table);
    define_nearest(&queries, &table, nearest);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = code_names[cases[i].code_type];
        harness_describe("recall of %s, %lld of %d columns", name, (long long)cases[i].cols, RECALL_COLS);
        double part = recall(stream, &queries, &table, nearest, cases[i].cols, cases[i].code_type);
        print_message("recall@%d of %s, %lld of %d columns: %.3f\n", RECALL_K, name, (long long)cases[i].cols,
                      RECALL_COLS, part);
        if (part < cases[i].least) harness_fail("recall is %.3f: less than %.3f", part, cases[i].least);
    }
    matrix_destroy(&queries);
    matrix_destroy(&table);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void test_refused_rows(kiln_stream *stream) {
    harness_describe("quantize_embedding_f32 and what it refuses");
    matrix x = matrix_create(stream, F32, 2, 16, 0, 0), codes = matrix_create(stream, U8, 2, 8, 0, 0);
    const kiln_quantize_embedding_params good = {
        .codes = codes.data, .x = x.data, .rows = 2, .cols = 16, .code_cols = 8, .code_type = KILN_VECTOR_INT4};
    const kiln_operator_function *function = operator_function(&kiln__operator_quantize_embedding, F32);
    kiln_quantize_embedding_params params = good;
#define REFUSED(field, value, parameter) \
    params = good;                       \
    params.field = value;                \
    expect_refusal(stream, function, &params, sizeof params, parameter)
    REFUSED(code_type, 3, "code_type");
    REFUSED(normalize, 2, "normalize");
    REFUSED(code_cols, 7, "code_cols");
    REFUSED(cols, 16385, "cols");
    REFUSED(rows, -1, "rows");
    REFUSED(codes, NULL, "codes");
    REFUSED(x, (char *)x.data + 2, "x");
    REFUSED(codes_stride, 7, "codes");
    REFUSED(scales, (float *)(void *)((char *)x.data + 1), "scales");
    params = good;
    params.rows = 0;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_unchanged(&codes);
    matrix_destroy(&x);
    matrix_destroy(&codes);
}

static void test_refused_searches(kiln_stream *stream) {
    harness_describe("vector_search_f32 and what it refuses");
    matrix codes = matrix_create(stream, U8, 5000, 16, 0, 0), indices = matrix_create(stream, I32, 1, 4, 0, 0);
    const kiln_vector_search_params good = {.indices = indices.data,
                                            .query_codes = codes.data,
                                            .table_codes = codes.data,
                                            .queries = 1,
                                            .rows = 5000,
                                            .code_cols = 16,
                                            .k = 4,
                                            .workspace_size = 1 << 20};
    const kiln_operator_function *function = operator_function(&kiln__operator_vector_search, F32);
    kiln_vector_search_params params = good;
    REFUSED(k, KILN_VECTOR_SEARCH_MOST + 1, "k");
    REFUSED(rows, 3, "k");
    REFUSED(rows, (int64_t)INT32_MAX + 1, "rows");
    REFUSED(queries, (int64_t)INT32_MAX + 1, "queries");
    REFUSED(code_cols, KILN_VECTOR_CODE_COLS_MOST + 1, "code_cols");
    REFUSED(code_type, -1, "code_type");
    REFUSED(reserved, 1, "reserved");
    REFUSED(indices, NULL, "indices");
    REFUSED(all_scores, (char *)codes.data + 1, "all_scores");
    REFUSED(query_codes, NULL, "query_codes");
    REFUSED(table_codes_stride, 15, "table_codes");
    REFUSED(table_scales, (float *)(void *)((char *)codes.data + 2), "table_scales");
    REFUSED(workspace_size, 0, "workspace_size");
    params = good;
    expect_refusal(stream, function, &params, sizeof params, "workspace");
    size_t size = 1;
    params.k = -1;
    assert_int_equal(kiln_vector_search_f32_workspace_size(stream, &params, &size), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(size, 0);
    params = good;
    params.k = 0;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_unchanged(&codes);
    matrix_expect_unchanged(&indices);
    matrix_destroy(&codes);
    matrix_destroy(&indices);
}

/* By what the level of the CPU has alone. */
static void test_without_extensions(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    kiln__cpu_extensions_off = true;
    test_searches(stream);
    kiln__cpu_extensions_off = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_rows),
        on_each_device(test_codes_are_those_of_quantize_int8),
        on_each_device(test_searches),
        on_each_device(test_without_extensions),
        on_one_device(test_long_lists),
        on_one_device(test_long_rows),
        on_one_device(test_recall),
        on_one_device(test_refused_rows),
        on_one_device(test_refused_searches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
