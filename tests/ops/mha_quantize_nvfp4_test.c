/* mha_quantize_nvfp4 against its formulas, bit by bit: sequences of one length, of any and with fewer keys than there
 * is room for, means of v and without, infinities, NaN, zeros and tiny numbers. Means are those of mha_quantize_test.
 */
#include "tests/ops/codes_reference.h"
#include "tests/ops/harness.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, BLOCK = 16, TILE = 64 };

typedef struct shape {
    bool v_means, varlen, lengths;
    int64_t batch, tokens, heads, kv_heads, size, padding, place;
    int64_t room[BATCH], used[BATCH]; /* keys of each sequence */
    int64_t unowned;                  /* rows of k and v behind the last sequence, with varlen */
    int64_t more_blocks;              /* of v than there must be */
} shape;

typedef struct tensors {
    matrix q, k, v, q_codes, k_codes, v_codes, q_blocks, k_blocks, v_blocks, q_scales, k_scales, v_scales, k_means,
        v_means, cu_seqlens, lengths;
} tensors;

static double any_number(void) {
    return random_number(-1, 1) * ldexp(1, (int)random_integer(-6, 3));
}
static double special_number(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40, 1e-37, -INFINITY, INFINITY, NAN};
    return random_integer(0, 60) ? any_number() : values[random_integer(0, 7)];
}
static double zero_or_tiny(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40};
    return values[random_integer(0, 3)];
}

static int64_t keys_of(const shape *s) {
    int64_t keys = s->unowned;
    for (int64_t b = 0; b < s->batch; b++)
        keys += s->room[b];
    return keys;
}
static int64_t head_blocks(const shape *s) {
    return (s->size + TILE - 1) / TILE * 4;
}
static int64_t v_blocks(const shape *s) {
    return (keys_of(s) / TILE + s->batch + s->more_blocks) * 4;
}

static tensors create(kiln_stream *stream, precision p, const shape *s, double (*value)(void)) {
    const int64_t keys = keys_of(s), width = s->heads * s->size, kv_width = s->kv_heads * s->size;
    tensors t = {
        .q = matrix_create(stream, p, s->tokens, width, width + s->padding, s->place),
        .k = matrix_create(stream, p, keys, kv_width, kv_width + s->padding, s->place),
        .v = matrix_create(stream, p, keys, kv_width, kv_width + s->padding, s->place),
        .q_codes = matrix_create(stream, U8, s->tokens * s->heads, 8 * head_blocks(s), 0, AT_END),
        .k_codes = matrix_create(stream, U8, keys * s->kv_heads, 8 * head_blocks(s), 0, AT_END),
        .v_codes = matrix_create(stream, U8, kv_width, 8 * v_blocks(s), 0, AT_END),
        .q_blocks = matrix_create(stream, U8, s->tokens * s->heads, head_blocks(s), 0, AT_END),
        .k_blocks = matrix_create(stream, U8, keys * s->kv_heads, head_blocks(s), 0, AT_END),
        .v_blocks = matrix_create(stream, U8, kv_width, v_blocks(s), 0, AT_END),
        .q_scales = matrix_create(stream, F32, s->heads, s->tokens, 0, AT_END),
        .k_scales = matrix_create(stream, F32, s->kv_heads, keys, 0, AT_END),
        .v_scales = matrix_create(stream, F32, s->batch, kv_width, 0, AT_END),
        .k_means = matrix_create(stream, F32, s->batch, kv_width, 0, AT_END),
        .v_means = matrix_create(stream, F32, s->batch, kv_width, 0, AT_END),
        .cu_seqlens = matrix_create(stream, I32, 1, s->batch + 1, 0, AT_END),
        .lengths = matrix_create(stream, I32, 1, s->batch, 0, AT_END),
    };
    matrix_fill(&t.q, value);
    matrix_fill(&t.k, value);
    matrix_fill(&t.v, value);
    t.cu_seqlens.values[0] = 0;
    for (int64_t b = 0; b < s->batch; b++) {
        t.cu_seqlens.values[b + 1] = t.cu_seqlens.values[b] + (double)s->room[b];
        t.lengths.values[b] = (double)s->used[b];
    }
    matrix_set(&t.cu_seqlens, t.cu_seqlens.values);
    matrix_set(&t.lengths, t.lengths.values);
    return t;
}

static void destroy(tensors *t) {
    matrix *all[] = {&t->q,        &t->k,        &t->v,          &t->q_codes,  &t->k_codes,  &t->v_codes,
                     &t->q_blocks, &t->k_blocks, &t->v_blocks,   &t->q_scales, &t->k_scales, &t->v_scales,
                     &t->k_means,  &t->v_means,  &t->cu_seqlens, &t->lengths};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
}

static kiln_mha_quantize_nvfp4_params params_of(const shape *s, const tensors *t) {
    kiln_mha_quantize_nvfp4_params params = {.q_codes = t->q_codes.data,
                                             .k_codes = t->k_codes.data,
                                             .v_codes = t->v_codes.data,
                                             .q_block_scales = t->q_blocks.data,
                                             .k_block_scales = t->k_blocks.data,
                                             .v_block_scales = t->v_blocks.data,
                                             .q_scales = t->q_scales.data,
                                             .k_scales = t->k_scales.data,
                                             .v_scales = t->v_scales.data,
                                             .k_means = t->k_means.data,
                                             .v_means = s->v_means ? t->v_means.data : NULL,
                                             .q = t->q.data,
                                             .k = t->k.data,
                                             .v = t->v.data,
                                             .cu_seqlens_k = s->varlen ? t->cu_seqlens.data : NULL,
                                             .seqlens_k = s->lengths ? t->lengths.data : NULL,
                                             .tokens = s->tokens,
                                             .kv_tokens = t->k.rows,
                                             .batch = s->batch,
                                             .heads = s->heads,
                                             .kv_heads = s->kv_heads,
                                             .head_dim = s->size,
                                             .v_blocks = s->more_blocks ? v_blocks(s) : 0,
                                             .q_stride = t->q.stride,
                                             .k_stride = t->k.stride,
                                             .v_stride = t->v.stride};
    for (int64_t b = 0; s->varlen && b < s->batch; b++)
        params.max_seqlen_k = s->room[b] > params.max_seqlen_k ? s->room[b] : params.max_seqlen_k;
    return params;
}

/* ---- What must be ---- */

/* The sequence that a row of k and v belongs to; batch: none. */
static int64_t sequence_of(const shape *s, int64_t row) {
    int64_t first = 0;
    for (int64_t b = 0; b < s->batch; first += s->room[b++])
        if (row >= first && row < first + s->room[b]) return row - first < s->used[b] ? b : s->batch;
    return s->batch;
}

/* Codes, scales of blocks and of tokens of rows of heads, those of k less their sequence's means. */
static void expect_tokens(const shape *s, const matrix *x, int64_t heads, const matrix *means, matrix *codes,
                          matrix *blocks, matrix *scales) {
    const quantising q = {.format = NVFP4,
                          .rows = x->rows * heads,
                          .cols = s->size,
                          .scale_rows = codes->rows,
                          .scale_cols = blocks->cols};
    float *numbers = calloc((size_t)(x->rows * x->cols + 1), sizeof *numbers);
    double *expected = malloc(sizeof(double) * (size_t)(codes->rows * (codes->cols + blocks->cols + 2) + 1));
    double *of_blocks = expected + codes->rows * codes->cols, *globals = of_blocks + blocks->rows * blocks->cols;
    double *transposed = globals + codes->rows;
    assert_true(numbers && expected);
    for (int64_t i = 0; i < x->rows * x->cols; i++) {
        const int64_t b = means ? sequence_of(s, i / x->cols) : 0;
        if (b == s->batch) continue;
        numbers[i] = (float)x->values[i];
        if (means) numbers[i] -= (float)means->values[b * x->cols + i % x->cols];
    }
    codes_reference(&q, numbers, expected, of_blocks, globals);
    for (int64_t i = 0; i < codes->rows; i++)
        transposed[i % heads * x->rows + i / heads] = globals[i];
    matrix_expect_exact(codes, expected);
    matrix_expect_exact(blocks, of_blocks);
    matrix_expect_exact(scales, transposed);
    free(numbers);
    free(expected);
}

/* The same of v, transposed: rows are a channel's keys of one sequence. */
static void expect_values(const shape *s, tensors *t) {
    const int64_t channels = t->v.cols, columns = t->v_codes.cols, count = t->v_blocks.cols;
    double *codes = calloc((size_t)(channels * columns + channels * count), sizeof(double));
    double *blocks = codes + channels * columns;
    double *scales = malloc(sizeof(double) * (size_t)(s->batch * channels));
    assert_true(codes && scales);
    int64_t first = 0;
    for (int64_t b = 0; b < s->batch; first += s->room[b++]) {
        const int64_t tile = first / TILE + b, used = (s->used[b] + BLOCK - 1) / BLOCK;
        const quantising q = {.format = NVFP4,
                              .rows = channels,
                              .cols = s->used[b],
                              .scale_rows = channels,
                              .scale_cols = used ? used : 1};
        float *numbers = malloc(sizeof *numbers * (size_t)(channels * s->used[b] + 1));
        double *own = malloc(sizeof(double) * (size_t)(channels * q.scale_cols * 9));
        assert_true(numbers && own);
        for (int64_t c = 0; c < channels; c++)
            for (int64_t key = 0; key < s->used[b]; key++) {
                float number = (float)t->v.values[(first + key) * channels + c];
                if (s->v_means) number -= (float)t->v_means.values[b * channels + c];
                numbers[c * s->used[b] + key] = number;
            }
        double *of_blocks = own + channels * q.scale_cols * 8;
        codes_reference(&q, numbers, own, of_blocks, scales + b * channels);
        for (int64_t c = 0; c < channels; c++) {
            if (s->v_means && !isfinite(t->v_means.values[b * channels + c])) /* of infinities: as of one */
                scales[b * channels + c] = (double)(FLT_MAX / 2688.0f);
            memcpy(codes + c * columns + tile * 32, own + c * q.scale_cols * 8, sizeof(double) * (size_t)used * 8);
            memcpy(blocks + c * count + tile * 4, of_blocks + c * q.scale_cols, sizeof(double) * (size_t)used);
        }
        free(numbers);
        free(own);
    }
    matrix_expect_exact(&t->v_scales, scales);
    matrix_expect_exact(&t->v_codes, codes);
    matrix_expect_exact(&t->v_blocks, blocks);
    free(codes);
    free(scales);
}

/* Means are about right; how they are rounded mha_quantize_test knows. */
static void expect_means(const shape *s, const matrix *x, matrix *means) {
    int64_t first = 0;
    matrix_get(means);
    for (int64_t b = 0; b < s->batch; first += s->room[b++])
        for (int64_t c = 0; c < x->cols; c++) {
            double sum = 0, magnitude = 0, found = means->values[b * x->cols + c];
            for (int64_t key = 0; key < s->used[b]; key++) {
                sum += x->values[(first + key) * x->cols + c];
                magnitude += fabs(x->values[(first + key) * x->cols + c]);
            }
            if (!isfinite(sum)) continue;
            if (s->used[b] && fabs(found * (double)s->used[b] - sum) > magnitude * 1e-5 + 1e-30)
                harness_fail("mean %lld of sequence %lld is %g", (long long)c, (long long)b, found);
            if (!s->used[b] && found != 0) harness_fail("a mean of no keys is %g", found);
        }
}

static void run(kiln_stream *stream, precision p, const shape *s, double (*value)(void)) {
    harness_describe("mha_quantize_nvfp4_%s %lld tokens of %lld heads, keys of %lld sequences %lld/%lld.., %lld heads "
                     "of %lld, padding %lld, at %lld%s%s%s",
                     precision_name(p), (long long)s->tokens, (long long)s->heads, (long long)s->batch,
                     (long long)s->used[0], (long long)s->room[0], (long long)s->kv_heads, (long long)s->size,
                     (long long)s->padding, (long long)s->place, s->v_means ? ", v_means" : "",
                     s->varlen ? ", varlen" : "", s->lengths ? ", lengths" : "");
    tensors t = create(stream, p, s, value);
    kiln_mha_quantize_nvfp4_params params = params_of(s, &t);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha_quantize_nvfp4, p);
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
    if (params.workspace_size) params.workspace = workspace.data;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_get(&workspace); /* nothing around it is written */
    matrix_destroy(&workspace);
    expect_means(s, &t.k, &t.k_means);
    if (s->v_means)
        expect_means(s, &t.v, &t.v_means);
    else
        matrix_expect_unchanged(&t.v_means);
    expect_tokens(s, &t.q, s->heads, NULL, &t.q_codes, &t.q_blocks, &t.q_scales);
    expect_tokens(s, &t.k, s->kv_heads, &t.k_means, &t.k_codes, &t.k_blocks, &t.k_scales);
    expect_values(s, &t);
    matrix_expect_unchanged(&t.q);
    matrix_expect_unchanged(&t.k);
    matrix_expect_unchanged(&t.v);
    destroy(&t);
}

/* ---- Tests ---- */

static shape random_shape(void) {
    shape s = {.v_means = random_integer(0, 1),
               .varlen = random_integer(0, 1),
               .lengths = random_integer(0, 1),
               .batch = random_integer(1, BATCH),
               .tokens = random_integer(1, 70),
               .heads = random_integer(1, 4),
               .kv_heads = random_integer(1, 3),
               .size = random_integer(0, 1) ? random_integer(1, 12) * 8 : random_integer(1, 140),
               .padding = random_integer(0, 1) * random_integer(1, 17),
               .place = random_place(),
               .more_blocks = random_integer(0, 1)};
    for (int64_t b = 0; b < s.batch; b++) {
        s.room[b] = b && !s.varlen ? s.room[0] : random_integer(s.varlen ? 0 : 1, 90);
        s.used[b] = s.lengths ? random_integer(0, s.room[b]) : s.room[b];
    }
    s.unowned = s.varlen ? random_integer(0, 9) : 0;
    if (s.varlen && !s.room[0]) s.room[0] = s.used[0] = 5; /* some keys */
    return s;
}

static void test_random(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 24); i++) {
            const shape s = random_shape();
            run(stream, p, &s, i % 6 == 4 ? special_number : i % 6 == 5 ? zero_or_tiny : any_number);
        }
}

/* More tokens than a block does, heads of the greatest size, and so many keys that their sums have several chunks. */
static void test_large(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        if (!harness_on_cpu(stream) && p != BF16) continue;
        shape s = {.batch = 1, .tokens = 131, .heads = 1, .kv_heads = 1, .size = 256, .room = {300}, .used = {300}};
        s.v_means = true;
        run(stream, p, &s, any_number);
        s = (shape){
            .batch = 2, .tokens = 3, .heads = 1, .kv_heads = 2, .size = 200, .room = {70, 70}, .used = {70, 70}};
        run(stream, p, &s, any_number);
    }
}

static void test_refusals(kiln_stream *stream) {
    static const struct {
        const char *names;
        size_t offset;
        int64_t value;
    } wrong[] = {
#define WRONG(field, value) {#field, offsetof(kiln_mha_quantize_nvfp4_params, field), value}
        WRONG(tokens, -1),
        WRONG(kv_tokens, -1),
        WRONG(batch, 1 << 25),
        WRONG(heads, 1 << 17),
        WRONG(kv_heads, -1),
        WRONG(head_dim, 257),
        WRONG(head_blocks, 8),
        WRONG(v_blocks, 2),
        WRONG(v_blocks, 6),
        WRONG(q_codes, 0),
        WRONG(q_codes, 8),
        WRONG(k_codes, 0),
        WRONG(v_codes, 24),
        WRONG(q_block_scales, 2),
        WRONG(v_block_scales, 0),
        WRONG(q_scales, 0),
        WRONG(k_scales, 0),
        WRONG(k_means, 0),
        WRONG(q, 0),
        WRONG(v, 0),
        WRONG(q_stride, 3),
        WRONG(v_stride, 3),
        WRONG(max_seqlen_k, 1),
        WRONG(workspace, 0),
        WRONG(workspace, 4),
        WRONG(workspace_size, 8),
#undef WRONG
    };
    harness_describe("mha_quantize_nvfp4 refused");
    const shape s = {.batch = 1, .tokens = 5, .heads = 2, .kv_heads = 1, .size = 24, .room = {70}, .used = {70}};
    tensors t = create(stream, F32, &s, any_number);
    kiln_mha_quantize_nvfp4_params good = params_of(&s, &t);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha_quantize_nvfp4, F32);
    harness_ok(function->workspace_size(stream, &good, sizeof good, &good.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)good.workspace_size / 4, 0, 0);
    good.workspace = workspace.data;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kiln_mha_quantize_nvfp4_params params = good;
        memcpy((char *)&params + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
        expect_refusal(stream, function, &params, sizeof params, wrong[i].names);
    }
    matrix_expect_unchanged(&t.q_codes);
    matrix_destroy(&workspace);
    destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_random),
        on_each_device(test_large),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
