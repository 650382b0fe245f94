/* Caches of E4M3: kv_store's codes bit by bit against their formula, mha_paged on codes against f64, and copies within
 * such caches. */
#include "tests/ops/paged.h"
#include <math.h>
#include <stdlib.h>

/* ---- kv_store ---- */

static double random_code(void) {
    return (double)random_integer(0, 255);
}

/* The code nearest to a magnitude of at most 448, ties to even. */
static int magnitude_code(double magnitude) {
    int exponent;
    frexp(magnitude, &exponent);
    int field = exponent - 1 < -6 || magnitude == 0 ? -6 : exponent - 1;
    return (field + 6) * 8 + (int)nearbyint(ldexp(magnitude, 3 - field)); /* 16 is the next power's first number */
}

static double code_of(double x, double scale) {
    bool counts = scale >= 0x1p-126 && scale < (double)INFINITY;
    float factor = 1.0f / (counts ? (float)scale : 1.0f), product = (float)x * factor;
    if (isnan(product)) return 0x7f;
    return magnitude_code(fmin(fabs((double)product), 448)) | (signbit(product) ? 0x80 : 0);
}

static double any_number(void) {
    static const double specials[] = {0, -0.0, 1e-45, -1e-40, 448, 464, -465, 3e38, -INFINITY, INFINITY, NAN};
    if (!random_integer(0, 9)) return specials[random_integer(0, 10)];
    return random_number(-1, 1) * ldexp(1, (int)random_integer(-12, 9));
}

/* Scales that count as 1 are among them. */
static double any_scale(void) {
    static const double specials[] = {0, NAN, -1, 1e-40, INFINITY};
    return random_integer(0, 5) ? random_number(0.01, 4) : specials[random_integer(0, 4)];
}

typedef struct shape {
    int64_t tokens, scales, cols, padding, place; /* cols of each scale */
    bool scaled;
} shape;

enum { KEY, VALUE, TENSORS };

static void run_store(kiln_stream *stream, precision p, shape s) {
    const int64_t cols = s.scales * s.cols, capacity = s.tokens + 3;
    harness_describe("kv_store_%s of codes, %lld x %lld x %lld, padding %lld, at %lld%s", precision_name(p),
                     (long long)s.tokens, (long long)s.scales, (long long)s.cols, (long long)s.padding,
                     (long long)s.place, s.scaled ? ", scaled" : "");
    matrix caches[TENSORS], sources[TENSORS], scales[TENSORS], slots = matrix_create(stream, I64, 1, s.tokens, 0, 0);
    double *expected[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        caches[i] = matrix_create(stream, U8, capacity, cols, cols + s.padding * (i + 1), s.place);
        sources[i] = matrix_create(stream, p, s.tokens, cols, cols + s.padding, i ? 0 : s.place);
        scales[i] = matrix_create(stream, F32, 1, s.scales, 0, AT_END);
        matrix_fill(&caches[i], random_code);
        matrix_fill(&sources[i], any_number);
        matrix_fill(&scales[i], any_scale);
        expected[i] = malloc(sizeof(double) * (size_t)(capacity * cols));
        assert_non_null(expected[i]);
        for (int64_t at = 0; at < capacity * cols; at++)
            expected[i][at] = caches[i].values[at];
    }
    for (int64_t token = 0; token < s.tokens; token++) {
        int64_t slot = token % 5 == 2 ? -1 : capacity - 1 - token;
        slots.values[token] = (double)slot;
        for (int i = 0; slot >= 0 && i < TENSORS; i++)
            for (int64_t col = 0; col < cols; col++)
                expected[i][slot * cols + col] =
                    code_of(sources[i].values[token * cols + col], s.scaled ? scales[i].values[col / s.cols] : 1);
    }
    matrix_set(&slots, slots.values);
    kiln_kv_store_params params = {.key_cache = caches[KEY].data,
                                   .value_cache = caches[VALUE].data,
                                   .key = sources[KEY].data,
                                   .value = sources[VALUE].data,
                                   .slot_mapping = slots.data,
                                   .tokens = s.tokens,
                                   .cols = cols,
                                   .capacity = capacity,
                                   .key_stride = sources[KEY].stride,
                                   .value_stride = sources[VALUE].stride,
                                   .key_cache_stride = caches[KEY].stride,
                                   .value_cache_stride = caches[VALUE].stride,
                                   .index_type = KILN_INDEX_I64,
                                   .cache_type = KILN_CACHE_E4M3,
                                   .k_scale = s.scaled ? scales[KEY].data : NULL,
                                   .v_scale = s.scaled ? scales[VALUE].data : NULL,
                                   .cache_scales = s.scales};
    harness_ok(operator_function(&kiln__operator_kv_store, p)->call(stream, &params, sizeof params));
    for (int i = 0; i < TENSORS; i++) {
        matrix_expect_exact(&caches[i], expected[i]);
        matrix_expect_unchanged(&sources[i]);
        free(expected[i]);
        matrix_destroy(&caches[i]);
        matrix_destroy(&sources[i]);
        matrix_destroy(&scales[i]);
    }
    matrix_destroy(&slots);
}

static void test_store(kiln_stream *stream) {
    static const int64_t cols[] = {1, 3, 8, 16, 64, 128, 257, 1100};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            shape s = {.tokens = random_integer(1, 12), .scales = 1, .cols = cols[i]};
            run_store(stream, p, s);
            s.scaled = true;
            s.scales = random_integer(1, 5);
            run_store(stream, p, s);
            s.padding = random_integer(0, 1) * random_integer(1, 17);
            s.place = random_place();
            run_store(stream, p, s);
        }
}

/* ---- mha_paged ---- */

static void run(kiln_stream *stream, precision p, attention_shape s, int64_t block_size, int64_t nan) {
    attention_describe("mha_paged", p, s);
    attention_tensors t = attention_create(stream, p, s);
    paged c = paged_create_codes(stream, p, s, &t, block_size, random_integer(0, 1) ? s.kv_heads : 1, nan);
    s.rounding = attention_rounding(stream, p, s.portable);
    attention_reference(&s, &t);
    kiln_mha_paged_params params = paged_params(&c, &t, s);
    harness_ok(operator_function(&kiln__operator_mha_paged, p)->call(stream, &params, sizeof params));
    matrix_expect(&t.out, t.expected, t.allowed);
    if (s.lse)
        matrix_expect(&t.lse, t.lses, t.lses_allowed);
    else
        matrix_expect_unchanged(&t.lse);
    paged_destroy(&c, s);
    attention_destroy(&t);
}

static void test_random(kiln_stream *stream) {
    static const int64_t blocks[] = {1, 8, 16, 64, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
            run(stream, p, attention_random_shape(), blocks[i], 0);
}

/* Each kernel that matrix units have for codes, with several tiles of keys: few rows and many; groups that share keys,
 * and that do not. */
static void test_kernels(kiln_stream *stream) {
    static const int64_t sizes[] = {64, 96, 128, 144, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += p == F32 ? 2 : 1) {
            attention_shape s = attention_plain(1, i % 2 ? 270 : 530, 4, 2, sizes[i]);
            s.lse = s.workspace = !(i % 2);
            run(stream, p, s, 32, 0);
            s = attention_plain(9, 135, 2, 1, sizes[i]);
            s.causal = true;
            s.left = i % 2 ? 100 : 0;
            s.softcap = i == 2 ? 5 : 0;
            run(stream, p, s, 16, 0);
            if (i == 2 && p != F32) run(stream, p, attention_plain(1, 40, 140, 140, 64), 16, 0);
        }
}

/* Codes that are NaN make NaN of what they are multiplied with and of nothing else. */
static void test_nan(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        attention_shape s = attention_plain(3, 2, 4, 2, 64);
        s.lse = true;
        run(stream, p, s, 16, 1);
        s.seqlens_q[0] = 20;
        run(stream, p, s, 16, 1);
    }
}

/* ---- Copies ---- */

/* Blocks of codes, copied as elements of the precision. */
static void test_copy_blocks(kiln_stream *stream) {
    enum { BLOCKS = 6, COLS = 36 };
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("kv_copy_blocks_%s of codes", precision_name(p));
        matrix caches[TENSORS], pairs = matrix_create(stream, I32, 2, 2, 0, 0);
        double expected[BLOCKS * COLS];
        matrix_set(&pairs, (const double[]){0, 4, 3, 1});
        for (int i = 0; i < TENSORS; i++) {
            caches[i] = matrix_create(stream, U8, BLOCKS, COLS, 0, 4);
            matrix_fill(&caches[i], random_code);
        }
        kiln_kv_copy_blocks_params params = {.key_cache = caches[KEY].data,
                                             .value_cache = caches[VALUE].data,
                                             .pairs = pairs.data,
                                             .count = 2,
                                             .blocks = BLOCKS,
                                             .cols = COLS,
                                             .cache_type = KILN_CACHE_E4M3};
        harness_ok(operator_function(&kiln__operator_kv_copy_blocks, p)->call(stream, &params, sizeof params));
        for (int i = 0; i < TENSORS; i++) {
            for (int64_t at = 0; at < BLOCKS * COLS; at++) {
                int64_t block = at / COLS, from = block == 4 ? 0 : block == 1 ? 3 : block;
                expected[at] = caches[i].values[from * COLS + at % COLS];
            }
            matrix_expect_exact(&caches[i], expected);
            matrix_destroy(&caches[i]);
        }
        matrix_destroy(&pairs);
    }
}

/* Rows of codes, which are apart, likewise. */
static void test_compact(kiln_stream *stream) {
    enum { ROWS = 8, COLS = 24 };
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("kv_compact_%s of codes", precision_name(p));
        matrix caches[TENSORS], slots = matrix_create(stream, I32, 1, 4, 0, 0),
                                path = matrix_create(stream, I32, 1, 3, 0, 0);
        matrix accepted = matrix_create(stream, I32, 1, 1, 0, 0);
        double expected[ROWS * COLS];
        matrix_set(&slots, (const double[]){5, 2, 7, 0});
        matrix_set(&path, (const double[]){0, 2, 3});
        matrix_set(&accepted, (const double[]){3});
        for (int i = 0; i < TENSORS; i++) {
            caches[i] = matrix_create(stream, U8, ROWS, COLS, COLS + 4 * (i + 1), 0);
            matrix_fill(&caches[i], random_code);
        }
        kiln_kv_compact_params params = {.key_cache = caches[KEY].data,
                                         .value_cache = caches[VALUE].data,
                                         .slot_mapping = slots.data,
                                         .path = path.data,
                                         .accepted = accepted.data,
                                         .batch = 1,
                                         .nodes = 4,
                                         .depth = 3,
                                         .cols = COLS,
                                         .capacity = ROWS,
                                         .key_cache_stride = caches[KEY].stride,
                                         .value_cache_stride = caches[VALUE].stride,
                                         .cache_type = KILN_CACHE_E4M3};
        harness_ok(operator_function(&kiln__operator_kv_compact, p)->call(stream, &params, sizeof params));
        for (int i = 0; i < TENSORS; i++) {
            for (int64_t at = 0; at < ROWS * COLS; at++) {
                int64_t row = at / COLS, from = row == 2 ? 7 : row == 7 ? 0 : row;
                expected[at] = caches[i].values[from * COLS + at % COLS];
            }
            matrix_expect_exact(&caches[i], expected);
            matrix_destroy(&caches[i]);
        }
        matrix_destroy(&slots);
        matrix_destroy(&path);
        matrix_destroy(&accepted);
    }
}

/* ---- Refusals ---- */

static void test_refusals(kiln_stream *stream) {
    harness_describe("caches of codes refused");
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    kiln_kv_store_params store = {.key_cache = x.data,
                                  .value_cache = x.data,
                                  .key = x.data,
                                  .value = x.data,
                                  .slot_mapping = x.data,
                                  .tokens = 1,
                                  .cols = 6,
                                  .capacity = 1,
                                  .k_scale = x.data};
    const kiln_operator_function *function = operator_function(&kiln__operator_kv_store, F32);
    store.cache_type = 2;
    expect_refusal(stream, function, &store, sizeof store, "cache_type");
    store.cache_type = KILN_CACHE_E4M3;
    store.cache_scales = 4;
    expect_refusal(stream, function, &store, sizeof store, "cache_scales");
    store.cache_scales = 3;
    store.v_scale = (const float *)((const char *)x.data + 2);
    expect_refusal(stream, function, &store, sizeof store, "v_scale");

    kiln_kv_copy_blocks_params blocks = {.key_cache = x.data,
                                         .value_cache = x.data,
                                         .pairs = x.data,
                                         .count = 1,
                                         .blocks = 2,
                                         .cols = 6,
                                         .cache_type = KILN_CACHE_E4M3};
    expect_refusal(stream, operator_function(&kiln__operator_kv_copy_blocks, F32), &blocks, sizeof blocks, "cols");
    blocks.cache_type = -1;
    expect_refusal(stream, operator_function(&kiln__operator_kv_copy_blocks, F32), &blocks, sizeof blocks,
                   "cache_type");

    kiln_kv_compact_params compact = {.key_cache = x.data,
                                      .value_cache = x.data,
                                      .slot_mapping = x.data,
                                      .path = x.data,
                                      .accepted = x.data,
                                      .batch = 1,
                                      .nodes = 1,
                                      .depth = 1,
                                      .cols = 8,
                                      .capacity = 2,
                                      .value_cache_stride = 9,
                                      .cache_type = KILN_CACHE_E4M3};
    expect_refusal(stream, operator_function(&kiln__operator_kv_compact, F16), &compact, sizeof compact,
                   "value_cache_stride");

    kiln_mha_paged_params attention = {.out = x.data,
                                       .q = x.data,
                                       .k_cache = x.data,
                                       .v_cache = x.data,
                                       .block_table = x.data,
                                       .seqlens_k = x.data,
                                       .tokens = 1,
                                       .blocks = 4,
                                       .block_size = 16,
                                       .batch = 1,
                                       .max_blocks_per_seq = 2,
                                       .heads = 4,
                                       .kv_heads = 4,
                                       .head_dim = 8,
                                       .v_scale = x.data};
    function = operator_function(&kiln__operator_mha_paged, F32);
    attention.cache_type = 2;
    expect_refusal(stream, function, &attention, sizeof attention, "cache_type");
    attention.cache_type = KILN_CACHE_E4M3;
    attention.cache_scales = 2;
    expect_refusal(stream, function, &attention, sizeof attention, "cache_scales");
    attention.cache_scales = 4;
    attention.reserved = 1;
    expect_refusal(stream, function, &attention, sizeof attention, "reserved");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_store),   on_each_device(test_random),     on_one_device(test_kernels),
        on_one_device(test_nan),      on_one_device(test_copy_blocks), on_one_device(test_compact),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
