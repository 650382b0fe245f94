/* mha_quantize against its formulas, bit by bit: every way to share scales, with means of v and without, sequences of
 * one length, of any and with fewer keys than there is room for; infinities, NaN, zeros and tiny numbers. */
#include "tests/ops/harness.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 8, CHUNK = 256, CHUNKS_MOST = 64, THREADS = 256, BATCH = 4 };

/* How tokens share scales. */
typedef enum sharing { EACH, BLOCKS, THREADS_OF_WARPS, WARPS, SHARINGS } sharing;

typedef struct shape {
    bool e4m3, v_means, varlen, lengths;
    int64_t batch, tokens, heads, kv_heads, size, padding, place;
    int64_t room[BATCH], used[BATCH]; /* keys of each sequence */
    int64_t unowned;                  /* rows of k and v behind the last sequence, with varlen */
    sharing q_sharing, k_sharing;
} shape;

static int64_t up(int64_t count, int64_t step) {
    return (count + step - 1) / step;
}

static int64_t q_scale(sharing how, int64_t token) {
    return how == EACH ? token : how == BLOCKS ? token / 128 : how == WARPS ? token / 32 : token / 32 * 8 + token % 8;
}
static int64_t k_scale(sharing how, int64_t token) {
    return how == EACH ? token : how == THREADS_OF_WARPS ? token / 64 * 4 + token % 8 / 2 : token / 64;
}
static int64_t q_scales(sharing how, int64_t tokens) {
    return how == EACH ? tokens : how == BLOCKS ? up(tokens, 128) : up(tokens, 32) * (how == WARPS ? 1 : 8);
}
static int64_t k_scales(sharing how, int64_t tokens) {
    return how == EACH ? tokens : up(tokens, 64) * (how == THREADS_OF_WARPS ? 4 : 1);
}

/* ---- Numbers ---- */

static double any_number(void) {
    return random_number(-1, 1) * ldexp(1, (int)random_integer(-6, 3));
}
static double number_or_special(int64_t numbers) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40, 1e-37, -INFINITY, INFINITY, NAN};
    return random_integer(0, numbers) ? any_number() : values[random_integer(0, 7)];
}
static double special_number(void) {
    return number_or_special(60);
}
static double rarely_special_number(void) { /* in some blocks, and not in others */
    return number_or_special(20000);
}
static double zero_or_tiny(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40};
    return values[random_integer(0, 3)];
}

/* The E4M3 nearest to a magnitude of at most 448, ties to even, as its code. */
static int e4m3_of(double magnitude) {
    int exponent;
    frexp(magnitude, &exponent);
    int field = exponent - 1 < -6 || magnitude == 0 ? -6 : exponent - 1;
    double units = nearbyint(ldexp(magnitude, 3 - field)); /* of the last place; 16 is the next power's first number */
    return (field + 6) * 8 + (int)units;
}

static double code_of(bool e4m3, float product) {
    double greatest = e4m3 ? 448 : 127;
    if (isnan(product)) return e4m3 ? 0x7f : 0;
    double magnitude = fmin(fabs((double)product), greatest);
    if (!e4m3) return copysign(nearbyint(magnitude), (double)product) + 0.0; /* no -0 */
    return e4m3_of(magnitude) + (signbit(product) ? 128 : 0);
}

static float scale_of(float amax, float greatest) {
    float scale = (amax < FLT_MAX ? amax : FLT_MAX) / greatest;
    return scale >= FLT_MIN ? scale : 1.0f;
}

/* ---- What must be ---- */

typedef struct tensors {
    matrix q, k, v, q_codes, k_codes, v_codes, q_scales, k_scales, v_scales, k_means, v_means, cu_seqlens, lengths;
    double *expected_q, *expected_k, *expected_v;
} tensors;

/* A channel's sum over some keys, in the order that is promised: threads that share its tokens have every so many of a
 * chunk, and meet by halves. */
static float sum_of(const matrix *x, int64_t column, int64_t first, int64_t count, int64_t longest, int64_t size) {
    int64_t columns = 1, chunk = up(longest, CHUNKS_MOST) > CHUNK ? up(longest, CHUNKS_MOST) : CHUNK;
    while (columns * PIECE < size)
        columns *= 2;
    int64_t lanes = THREADS / columns;
    float total = 0;
    for (int64_t begin = 0; begin < count; begin += chunk) {
        float sums[THREADS] = {0};
        for (int64_t key = begin; key < begin + chunk && key < count; key++)
            sums[(key - begin) % lanes] += (float)x->values[(first + key) * x->cols + column];
        for (int64_t half = lanes / 2; half; half /= 2)
            for (int64_t i = 0; i < half; i++)
                sums[i] += sums[i + half];
        total += sums[0];
    }
    return total;
}

/* Means in *means, and of v also scales; then codes of one sequence's keys less their mean into numbers. */
static void expect_channels(const shape *s, const tensors *t, bool of_v, double *numbers) {
    const matrix *x = of_v ? &t->v : &t->k;
    matrix *means = (matrix *)(of_v ? &t->v_means : &t->k_means), *scales = (matrix *)&t->v_scales;
    bool subtract = !of_v || s->v_means;
    int64_t longest = 0, first = 0;
    for (int64_t b = 0; b < s->batch; b++)
        longest = s->room[b] > longest ? s->room[b] : longest;
    for (int64_t i = 0; i < x->rows * x->cols; i++)
        numbers[i] = 0;
    for (int64_t b = 0; b < s->batch; first += s->room[b++])
        for (int64_t c = 0; c < x->cols; c++) {
            int64_t channel = b * x->cols + c;
            float mean = 0, amax = 0;
            if (subtract && s->used[b]) mean = sum_of(x, c, first, s->used[b], longest, s->size) / (float)s->used[b];
            means->values[channel] = (double)mean;
            double high = -INFINITY, low = -INFINITY;
            for (int64_t key = 0; key < s->used[b]; key++) {
                double value = x->values[(first + key) * x->cols + c];
                high = value > high ? value : high;
                low = -value > low ? -value : low;
                numbers[(first + key) * x->cols + c] = subtract ? (double)((float)value - mean) : value;
            }
            float above = (float)high - mean, below = (float)low + mean;
            amax = above > below ? above : below;
            if (of_v) scales->values[channel] = (double)scale_of(amax, 448.0f);
        }
}

/* Codes of tokens with a scale for those that share one. numbers become codes. */
static void expect_tokens(const shape *s, double *numbers, int64_t rows, int64_t heads, int64_t size,
                          int64_t (*index)(sharing, int64_t), sharing how, int64_t scale_rows, matrix *scales) {
    for (int64_t i = 0; i < heads * scale_rows; i++)
        scales->values[i] = -1; /* of no token */
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < heads * size; i++) {
            double *amax = &scales->values[i / size * scale_rows + index(how, row)];
            *amax = fmax(*amax, fabs(numbers[row * heads * size + i])); /* passes over NaN */
            if (*amax < 0) *amax = 0;
        }
    for (int64_t i = 0; i < heads * scale_rows; i++)
        if (scales->values[i] >= 0)
            scales->values[i] = (double)scale_of((float)scales->values[i], s->e4m3 ? 448.0f : 127.0f);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < heads * size; i++) {
            float scale = (float)scales->values[i / size * scale_rows + index(how, row)];
            double *number = &numbers[row * heads * size + i];
            *number = code_of(s->e4m3, (float)*number * (1.0f / scale));
        }
}

static void expect_values(const shape *s, const tensors *t, double *numbers) {
    int64_t first = 0;
    for (int64_t b = 0; b < s->batch; first += s->room[b++])
        for (int64_t i = 0; i < s->room[b] * t->v.cols; i++) {
            double *number = &numbers[first * t->v.cols + i];
            float scale = (float)t->v_scales.values[b * t->v.cols + i % t->v.cols];
            *number = i / t->v.cols < s->used[b] ? code_of(true, (float)*number * (1.0f / scale)) : 0;
        }
}

/* Fails unless m becomes what its values are now. partly: but for those below 0, of scales that no token has. */
static void expect_values_of(matrix *m, bool partly) {
    const size_t bytes = sizeof(double) * (size_t)(m->rows * m->cols);
    double *expected = malloc(bytes + 1);
    assert_non_null(expected);
    memcpy(expected, m->values, bytes);
    matrix_get(m);
    for (int64_t i = 0; i < m->rows * m->cols; i++)
        if (partly && expected[i] < 0) expected[i] = m->values[i];
    matrix_expect_exact(m, expected);
    free(expected);
}

/* ---- One call ---- */

static tensors create(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    int64_t keys = s.unowned, width = s.heads * s.size, kv_width = s.kv_heads * s.size;
    for (int64_t b = 0; b < s.batch; b++)
        keys += s.room[b];
    precision codes = s.e4m3 ? U8 : I8;
    tensors t = {
        .q = matrix_create(stream, p, s.tokens, width, width + s.padding, s.place),
        .k = matrix_create(stream, p, keys, kv_width, kv_width + s.padding, s.place),
        .v = matrix_create(stream, p, keys, kv_width, kv_width + s.padding, s.place),
        .q_codes = matrix_create(stream, codes, s.tokens, width, 0, s.place),
        .k_codes = matrix_create(stream, codes, keys, kv_width, 0, s.place),
        .v_codes = matrix_create(stream, U8, keys, kv_width, 0, s.place),
        .q_scales = matrix_create(stream, F32, s.heads, q_scales(s.q_sharing, s.tokens), 0, AT_END),
        .k_scales = matrix_create(stream, F32, s.kv_heads, k_scales(s.k_sharing, keys), 0, AT_END),
        .v_scales = matrix_create(stream, F32, s.batch, kv_width, 0, AT_END),
        .k_means = matrix_create(stream, F32, s.batch, kv_width, 0, AT_END),
        .v_means = matrix_create(stream, F32, s.batch, kv_width, 0, AT_END),
        .cu_seqlens = matrix_create(stream, I32, 1, s.batch + 1, 0, AT_END),
        .lengths = matrix_create(stream, I32, 1, s.batch, 0, AT_END),
        .expected_q = malloc(sizeof(double) * (size_t)(s.tokens * width + 1)),
        .expected_k = malloc(sizeof(double) * (size_t)(keys * kv_width + 1)),
        .expected_v = malloc(sizeof(double) * (size_t)(keys * kv_width + 1)),
    };
    assert_true(t.expected_q && t.expected_k && t.expected_v);
    matrix_fill(&t.q, value);
    matrix_fill(&t.k, value);
    matrix_fill(&t.v, value);
    t.cu_seqlens.values[0] = 0;
    for (int64_t b = 0; b < s.batch; b++) {
        t.cu_seqlens.values[b + 1] = t.cu_seqlens.values[b] + (double)s.room[b];
        t.lengths.values[b] = (double)s.used[b];
    }
    matrix_set(&t.cu_seqlens, t.cu_seqlens.values);
    matrix_set(&t.lengths, t.lengths.values);
    return t;
}

static void destroy(tensors *t) {
    matrix *all[] = {&t->q,        &t->k,        &t->v,       &t->q_codes, &t->k_codes,    &t->v_codes, &t->q_scales,
                     &t->k_scales, &t->v_scales, &t->k_means, &t->v_means, &t->cu_seqlens, &t->lengths};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    free(t->expected_q);
    free(t->expected_k);
    free(t->expected_v);
}

static void call(kiln_stream *stream, precision p, shape s, tensors *t) {
    kiln_mha_quantize_params params = {.q_codes = t->q_codes.data,
                                       .k_codes = t->k_codes.data,
                                       .v_codes = t->v_codes.data,
                                       .q_scales = t->q_scales.data,
                                       .k_scales = t->k_scales.data,
                                       .v_scales = t->v_scales.data,
                                       .k_means = t->k_means.data,
                                       .v_means = s.v_means ? t->v_means.data : NULL,
                                       .q = t->q.data,
                                       .k = t->k.data,
                                       .v = t->v.data,
                                       .cu_seqlens_k = s.varlen ? t->cu_seqlens.data : NULL,
                                       .seqlens_k = s.lengths ? t->lengths.data : NULL,
                                       .tokens = t->q.rows,
                                       .kv_tokens = t->k.rows,
                                       .batch = s.batch,
                                       .heads = s.heads,
                                       .kv_heads = s.kv_heads,
                                       .head_dim = s.size,
                                       .q_scale_rows = s.q_sharing == EACH ? 0 : t->q_scales.cols,
                                       .k_scale_rows = s.k_sharing == EACH ? 0 : t->k_scales.cols,
                                       .q_stride = s.padding ? t->q.stride : 0,
                                       .k_stride = s.padding ? t->k.stride : 0,
                                       .v_stride = s.padding ? t->v.stride : 0,
                                       .code_type = s.e4m3 ? KILN_MHA_CODE_E4M3 : KILN_MHA_CODE_INT8};
    for (int64_t b = 0; s.varlen && b < s.batch; b++)
        params.max_seqlen_k = s.room[b] > params.max_seqlen_k ? s.room[b] : params.max_seqlen_k;
    const kiln_operator_function *function = operator_function(&kiln__operator_mha_quantize, p);
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
    if (params.workspace_size) params.workspace = workspace.data;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_get(&workspace); /* nothing around it is written */
    matrix_destroy(&workspace);
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    harness_describe("mha_quantize_%s %s, %lld tokens of %lld heads, keys of %lld sequences %lld/%lld.., %lld heads of "
                     "%lld, padding %lld, at %lld, scales %d %d%s%s%s",
                     precision_name(p), s.e4m3 ? "E4M3" : "int8", (long long)s.tokens, (long long)s.heads,
                     (long long)s.batch, (long long)s.used[0], (long long)s.room[0], (long long)s.kv_heads,
                     (long long)s.size, (long long)s.padding, (long long)s.place, (int)s.q_sharing, (int)s.k_sharing,
                     s.v_means ? ", v_means" : "", s.varlen ? ", varlen" : "", s.lengths ? ", lengths" : "");
    tensors t = create(stream, p, s, value);
    memcpy(t.expected_q, t.q.values, sizeof(double) * (size_t)(t.q.rows * t.q.cols));
    expect_channels(&s, &t, true, t.expected_v);
    expect_values(&s, &t, t.expected_v);
    expect_channels(&s, &t, false, t.expected_k);
    expect_tokens(&s, t.expected_q, t.q.rows, s.heads, s.size, q_scale, s.q_sharing, t.q_scales.cols, &t.q_scales);
    expect_tokens(&s, t.expected_k, t.k.rows, s.kv_heads, s.size, k_scale, s.k_sharing, t.k_scales.cols, &t.k_scales);
    call(stream, p, s, &t);
    matrix_expect_exact(&t.q_codes, t.expected_q);
    matrix_expect_exact(&t.k_codes, t.expected_k);
    matrix_expect_exact(&t.v_codes, t.expected_v);
    expect_values_of(&t.q_scales, true);
    expect_values_of(&t.k_scales, true);
    expect_values_of(&t.v_scales, false);
    expect_values_of(&t.k_means, false);
    if (s.v_means)
        expect_values_of(&t.v_means, false);
    else
        matrix_expect_unchanged(&t.v_means);
    matrix_expect_unchanged(&t.q);
    matrix_expect_unchanged(&t.k);
    matrix_expect_unchanged(&t.v);
    destroy(&t);
}

/* ---- Tests ---- */

static shape random_shape(void) {
    shape s = {.e4m3 = random_integer(0, 1),
               .v_means = random_integer(0, 1),
               .varlen = random_integer(0, 1),
               .lengths = random_integer(0, 1),
               .batch = random_integer(1, BATCH),
               .tokens = random_integer(1, 70),
               .heads = random_integer(1, 4),
               .kv_heads = random_integer(1, 3),
               .size = random_integer(0, 1) ? random_integer(1, 12) * 8 : random_integer(1, 70),
               .padding = random_integer(0, 1) * random_integer(1, 17),
               .place = random_place(),
               .q_sharing = (sharing)random_integer(EACH, WARPS),
               .k_sharing = (sharing)random_integer(EACH, THREADS_OF_WARPS)};
    for (int64_t b = 0; b < s.batch; b++) {
        s.room[b] = b && !s.varlen ? s.room[0] : random_integer(s.varlen ? 0 : 1, 60);
        s.used[b] = s.lengths ? random_integer(0, s.room[b]) : s.room[b];
    }
    s.unowned = s.varlen ? random_integer(0, 9) : 0;
    if (s.varlen && !s.room[0]) s.room[0] = 5; /* k_scale_rows that stand for themselves */
    if (s.varlen && !s.lengths) s.used[0] = s.room[0];
    return s;
}

/* Numbers of scales that would be taken for another way to share them. */
static bool ambiguous(const shape *s) {
    int64_t keys = s->unowned;
    for (int64_t b = 0; b < s->batch; b++)
        keys += s->room[b];
    bool q = s->q_sharing != EACH && q_scales(s->q_sharing, s->tokens) == s->tokens;
    bool k = s->k_sharing != EACH && k_scales(s->k_sharing, keys) == keys;
    return q || k || (s->q_sharing == WARPS && q_scales(BLOCKS, s->tokens) == q_scales(WARPS, s->tokens));
}

static void test_random(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 24); i++) {
            shape s = random_shape();
            while (ambiguous(&s))
                s = random_shape();
            run(stream, p, s, i % 2 ? special_number : any_number);
        }
}

/* All ways to share scales, of more tokens than a block has; sums of several chunks. */
static void test_blocks(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < SHARINGS; i++) {
            shape s = {.e4m3 = i % 2,
                       .v_means = i != 2,
                       .batch = 1,
                       .tokens = 150 + i,
                       .heads = 1,
                       .kv_heads = 1,
                       .size = i == 3 ? 256 : 16,
                       .q_sharing = (sharing)i,
                       .k_sharing = (sharing)(i % WARPS)};
            s.room[0] = s.used[0] = i == 3 ? 70 : 530 + i;
            run(stream, p, s, any_number);
        }
}

/* Heads as models have them, of sequences of more tokens than a block has. */
static void test_heads(kiln_stream *stream) {
    static const int64_t sizes[] = {128, 64, 24, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++) {
            shape s = {.e4m3 = i % 2,
                       .v_means = i < 2,
                       .lengths = i == 1,
                       .batch = 1 + i % 2,
                       .tokens = 260 + i,
                       .heads = 2,
                       .kv_heads = 1,
                       .size = sizes[i],
                       .padding = i == 2 ? 16 : 0,
                       .q_sharing = (sharing)((i + 1) % SHARINGS),
                       .k_sharing = i == 3 ? EACH : (sharing)((i + 1) % WARPS)};
            for (int b = 0; b < 2; b++) {
                s.room[b] = 200 + i;
                s.used[b] = s.room[b] - b * s.lengths * 130;
            }
            run(stream, p, s, rarely_special_number);
        }
}

/* So many keys that a GPU may read them once: sequences in several groups with the last one smaller, more heads than
 * blocks of codes come behind, sequences of any length and of none, one token of q, and scales shared in every way. */
static void test_units(kiln_stream *stream) {
    static const shape shapes[] = {
        {.v_means = true,
         .lengths = true,
         .batch = 4,
         .tokens = 300,
         .heads = 5,
         .kv_heads = 5,
         .size = 8,
         .room = {1536, 1536, 1536, 1536},
         .used = {1536, 0, 900, 1535}},
        {.e4m3 = true,
         .varlen = true,
         .batch = 3,
         .tokens = 290,
         .heads = 8,
         .kv_heads = 2,
         .size = 40,
         .unowned = 5,
         .room = {700, 0, 333},
         .used = {700, 0, 333},
         .q_sharing = WARPS,
         .k_sharing = BLOCKS},
        {.e4m3 = true,
         .v_means = true,
         .batch = 2,
         .tokens = 1,
         .heads = 1,
         .kv_heads = 1,
         .size = 64,
         .room = {600, 600},
         .used = {600, 600},
         .k_sharing = THREADS_OF_WARPS},
        {.v_means = true,
         .batch = 4,
         .tokens = 300,
         .heads = 3,
         .kv_heads = 1,
         .size = 128,
         .room = {1536, 1536, 1536, 1536},
         .used = {1536, 1536, 1536, 1536}},
        {.e4m3 = true,
         .batch = 1,
         .tokens = 290,
         .heads = 4,
         .kv_heads = 2,
         .size = 128,
         .room = {333},
         .used = {333},
         .q_sharing = WARPS,
         .k_sharing = BLOCKS},
        {.batch = 2,
         .tokens = 1,
         .heads = 1,
         .kv_heads = 1,
         .size = 128,
         .room = {640, 640},
         .used = {640, 640},
         .q_sharing = BLOCKS,
         .k_sharing = THREADS_OF_WARPS},
    };
    if (harness_on_cpu(stream)) return;
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            run(stream, p, shapes[i], rarely_special_number);
}

static void test_zeros(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 2; i++) {
            shape s = {.e4m3 = i, .v_means = !i, .batch = 2, .tokens = 9, .heads = 2, .kv_heads = 1};
            s.size = 24;
            s.room[0] = s.room[1] = s.used[0] = s.used[1] = 5;
            run(stream, p, s, zero_or_tiny);
        }
}

/* Rows that begin on no multiple of 16 bytes, whose codes are stored byte by byte, however the drawn shapes fell. */
static void test_odd_sizes(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++) {
            shape s = {
                .e4m3 = i % 2, .v_means = i % 2, .batch = 2, .tokens = 290, .heads = 2, .kv_heads = 1, .size = 61};
            s.room[0] = s.room[1] = s.used[0] = s.used[1] = 270;
            run(stream, p, s, i < 2 ? any_number : special_number);
        }
}

/* Queries alone, and keys and values alone: what the sizes leave out is not looked at. */
static void test_one_side(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int keys = 0; keys < 2; keys++) {
            harness_describe("mha_quantize_%s of %s alone", precision_name(p), keys ? "keys" : "queries");
            shape s = {.batch = 1, .tokens = 3, .heads = 2, .kv_heads = 1, .size = 16};
            s.room[0] = s.used[0] = 4;
            tensors t = create(stream, p, s, any_number);
            const kiln_operator_function *function = operator_function(&kiln__operator_mha_quantize, p);
            kiln_mha_quantize_params params = {.q_codes = t.q_codes.data,
                                               .q_scales = t.q_scales.data,
                                               .q = t.q.data,
                                               .tokens = 3,
                                               .heads = 2,
                                               .head_dim = 16};
            if (keys)
                params = (kiln_mha_quantize_params){.k_codes = t.k_codes.data,
                                                    .v_codes = t.v_codes.data,
                                                    .k_scales = t.k_scales.data,
                                                    .v_scales = t.v_scales.data,
                                                    .k_means = t.k_means.data,
                                                    .k = t.k.data,
                                                    .v = t.v.data,
                                                    .kv_tokens = 4,
                                                    .batch = 1,
                                                    .kv_heads = 1,
                                                    .head_dim = 16};
            harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
            assert_true((params.workspace_size > 0) == (keys == 1));
            matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
            if (keys) params.workspace = workspace.data;
            harness_ok(function->call(stream, &params, sizeof params));
            expect_channels(&s, &t, false, t.expected_k);
            expect_tokens(&s, t.expected_k, 4, 1, 16, k_scale, EACH, 4, &t.k_scales);
            memcpy(t.expected_q, t.q.values, sizeof(double) * 3 * 32);
            expect_tokens(&s, t.expected_q, 3, 2, 16, q_scale, EACH, 3, &t.q_scales);
            matrix_expect_exact(keys ? &t.k_codes : &t.q_codes, keys ? t.expected_k : t.expected_q);
            expect_values_of(keys ? &t.k_scales : &t.q_scales, false);
            matrix_destroy(&workspace);
            destroy(&t);
        }
}

/* Wrong starts of sequences: whatever is computed, nothing outside of the tensors is read or written. */
static void test_wrong_cu_seqlens(kiln_stream *stream) {
    static const double wrong[][BATCH] = {{0, 4, 9, 5}, {-7, -3, 2, 1 << 30}, {1 << 30, INT32_MIN, INT32_MAX, 2}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            harness_describe("mha_quantize_%s with cu_seqlens %.0f %.0f ..", precision_name(p), wrong[i][0],
                             wrong[i][1]);
            shape s = {.v_means = true, .varlen = true, .batch = 3, .tokens = 2, .heads = 1};
            s.kv_heads = 2;
            s.size = 8;
            s.place = AT_END;
            s.room[0] = s.room[1] = s.room[2] = 2;
            tensors t = create(stream, p, s, any_number);
            matrix_set(&t.cu_seqlens, wrong[i]);
            call(stream, p, s, &t);
            matrix *written[] = {&t.q_codes, &t.k_codes, &t.v_codes, &t.k_scales, &t.v_scales, &t.k_means, &t.v_means};
            for (size_t w = 0; w < sizeof written / sizeof *written; w++)
                matrix_get(written[w]);
            matrix_expect_unchanged(&t.k);
            matrix_expect_unchanged(&t.v);
            destroy(&t);
        }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("mha_quantize refused");
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha_quantize, F32);
    const kiln_mha_quantize_params good = {.q_codes = x.data,
                                           .k_codes = x.data,
                                           .v_codes = x.data,
                                           .q_scales = x.data,
                                           .k_scales = x.data,
                                           .v_scales = x.data,
                                           .k_means = x.data,
                                           .q = x.data,
                                           .k = x.data,
                                           .v = x.data,
                                           .tokens = 40,
                                           .kv_tokens = 10,
                                           .batch = 2,
                                           .heads = 3,
                                           .kv_heads = 3,
                                           .head_dim = 8,
                                           .workspace = x.data,
                                           .workspace_size = 8192 * 4};
    static const struct {
        const char *names;
        size_t offset;
        int64_t value;
    } wrong[] = {
        {"head_dim", offsetof(kiln_mha_quantize_params, head_dim), 257},
        {"kv_tokens", offsetof(kiln_mha_quantize_params, kv_tokens), 11},
        {"q_scale_rows", offsetof(kiln_mha_quantize_params, q_scale_rows), 3},
        {"k_scale_rows", offsetof(kiln_mha_quantize_params, k_scale_rows), 2},
        {"max_seqlen_k", offsetof(kiln_mha_quantize_params, max_seqlen_k), 2},
        {"q_scales", offsetof(kiln_mha_quantize_params, q_scales), 0},
        {"k_scales", offsetof(kiln_mha_quantize_params, k_scales), 0},
        {"v_scales", offsetof(kiln_mha_quantize_params, v_scales), 0},
        {"q is", offsetof(kiln_mha_quantize_params, q), 0},
        {"k is", offsetof(kiln_mha_quantize_params, k), 0},
        {"v is", offsetof(kiln_mha_quantize_params, v), 0},
        {"workspace_size", offsetof(kiln_mha_quantize_params, workspace_size), 8},
        {"workspace is", offsetof(kiln_mha_quantize_params, workspace), 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kiln_mha_quantize_params params = good;
        memcpy((char *)&params + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
        expect_refusal(stream, function, &params, sizeof params, wrong[i].names);
    }
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_random),   on_each_device(test_blocks),
        on_each_device(test_heads),    on_each_device(test_units),
        on_each_device(test_zeros),    on_each_device(test_odd_sizes),
        on_each_device(test_one_side), on_each_device(test_wrong_cu_seqlens),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
