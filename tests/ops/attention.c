#include "tests/ops/attention.h"
#include <math.h>
#include <stdlib.h>

double attention_rounding(const kiln_stream *stream, precision p, bool portable) {
    extern const kiln_bundle kiln__bundle_mha;
    if (portable || p == F32 || !harness_has_tuned(stream, &kiln__bundle_mha, p)) return 0;
    return p == F16 ? 0x1p-11 : 0x1p-8;
}

double attention_number(void) {
    double number = random_number(-2, 2);
    return fabs(number) < 0x1p-13 ? 0 : number; /* gfx90a's matrix units take subnormal numbers for 0 */
}

int64_t attention_total(const int64_t lengths[ATTENTION_BATCH], int64_t batch) {
    int64_t sum = 0;
    for (int64_t i = 0; i < batch; i++)
        sum += lengths[i];
    return sum;
}

int64_t attention_longest(const int64_t lengths[ATTENTION_BATCH], int64_t batch) {
    int64_t most = 0;
    for (int64_t i = 0; i < batch; i++)
        most = lengths[i] > most ? lengths[i] : most;
    return most;
}

void attention_describe(const char *name, precision p, attention_shape s) {
    harness_describe("%s_%s batch %lld of %lld.. queries and %lld.. keys, %lld heads on %lld, size %lld, padding %lld, "
                     "at %lld%s%s%s%s, windows %lld %lld%s, scale %g, softcap %g",
                     name, precision_name(p), (long long)s.batch, (long long)s.seqlens_q[0], (long long)s.seqlens_k[0],
                     (long long)s.heads, (long long)s.kv_heads, (long long)s.size, (long long)s.padding,
                     (long long)s.place, s.varlen ? ", varlen" : "", s.lse ? ", lse" : "",
                     s.workspace ? ", workspace" : "", s.portable ? ", portable" : "", (long long)s.left,
                     (long long)s.right, s.causal ? ", causal" : "", s.scale, s.softcap);
}

void attention_query(const attention_shape *s, const double *q, const double *k, const double *v, int64_t stride,
                     int64_t query, int64_t seqlen_q, int64_t seqlen_k, double *out, double *allowed, double *lse,
                     double *lse_allowed) {
    double *scores = malloc(sizeof *scores * (size_t)(seqlen_k + 1)), max = -INFINITY, sum = 0, loss = 0;
    assert_non_null(scores);
    int64_t own = query + seqlen_k - seqlen_q, right = s->causal ? 1 : s->right;
    double scale = s->scale == 0 ? 1 / sqrt((double)s->size) : (double)(float)s->scale;
    for (int64_t key = 0; key < seqlen_k; key++) {
        double dot, magnitude;
        harness_dot(q, k + key * stride, s->size, &dot, &magnitude);
        double score = dot * scale;
        if (s->softcap != 0) score = (double)(float)s->softcap * tanh(score / (double)(float)s->softcap);
        bool seen = !(s->left && key <= own - s->left) && !(right && key >= own + right);
        if (s->mask && s->mask[key] == -INFINITY) seen = false;
        if (s->mask && seen) score += s->mask[key];
        scores[key] = seen ? score : -INFINITY;
        max = fmax(max, scores[key]);
        if (seen) loss = fmax(loss, magnitude * fabs(scale) * sqrt((double)s->size + 8) * 0x1p-23 + fabs(score) * 1e-6);
    }
    for (int64_t d = 0; d < s->size; d++)
        out[d] = allowed[d] = 0;
    for (int64_t key = 0; key < seqlen_k; key++)
        sum += scores[key] == -INFINITY ? 0 : exp(scores[key] - max);
    for (int64_t key = 0; key < seqlen_k; key++) {
        if (scores[key] == -INFINITY) continue;
        double weight = exp(scores[key] - max) / sum;
        for (int64_t d = 0; d < s->size; d++) {
            out[d] += weight * v[key * stride + d];
            allowed[d] += weight * fabs(v[key * stride + d]);
        }
    }
    /* A weight that f16 has no normal number for is rounded to a multiple of 2^-24. */
    for (int64_t d = 0; d < s->size; d++) {
        allowed[d] *= 2 * loss + 4e-6 + s->rounding;
        for (int64_t key = 0; s->rounding != 0 && key < seqlen_k; key++)
            if (scores[key] != -INFINITY) allowed[d] += 0x1p-25 * fabs(v[key * stride + d]);
    }
    *lse = sum == 0 ? -INFINITY : max + log(sum);
    *lse_allowed = loss + 4e-6;
    free(scores);
}

attention_tensors attention_create(kiln_stream *stream, precision p, attention_shape s) {
    attention_tensors t;
    int64_t tokens = attention_total(s.seqlens_q, s.batch), keys = attention_total(s.seqlens_k, s.batch);
    int64_t width = s.heads * s.size, kv_width = s.kv_heads * s.size;
    t.q = matrix_create(stream, p, tokens, width, width + s.padding, s.place);
    t.out = matrix_create(stream, p, tokens, width, width + s.padding, s.place);
    t.k = matrix_create(stream, p, keys, kv_width, kv_width + s.padding, s.place);
    t.v = matrix_create(stream, p, keys, kv_width, kv_width + s.padding, s.place);
    t.lse = matrix_create(stream, F32, s.heads, tokens, 0, 0);
    t.cu_seqlens_q = matrix_create(stream, I32, 1, s.batch + 1, 0, AT_END);
    t.cu_seqlens_k = matrix_create(stream, I32, 1, s.batch + 1, 0, AT_END);
    matrix_fill(&t.q, attention_number);
    matrix_fill(&t.k, attention_number);
    for (int64_t i = 0; i < keys * kv_width; i++)
        t.v.values[i] = s.v != 0 ? s.v : attention_number();
    matrix_set(&t.v, t.v.values);
    for (int64_t i = 0; i <= s.batch; i++) {
        t.cu_seqlens_q.values[i] = (double)attention_total(s.seqlens_q, i);
        t.cu_seqlens_k.values[i] = (double)attention_total(s.seqlens_k, i);
    }
    matrix_set(&t.cu_seqlens_q, t.cu_seqlens_q.values);
    matrix_set(&t.cu_seqlens_k, t.cu_seqlens_k.values);
    t.expected = malloc(sizeof(double) * (size_t)(tokens * width + 1));
    t.allowed = malloc(sizeof(double) * (size_t)(tokens * width + 1));
    t.lses = malloc(sizeof(double) * (size_t)(tokens * s.heads + 1));
    t.lses_allowed = malloc(sizeof(double) * (size_t)(tokens * s.heads + 1));
    assert_true(t.expected && t.allowed && t.lses && t.lses_allowed);
    return t;
}

void attention_destroy(attention_tensors *t) {
    matrix *all[] = {&t->q, &t->k, &t->v, &t->out, &t->lse, &t->cu_seqlens_q, &t->cu_seqlens_k};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    free(t->expected);
    free(t->allowed);
    free(t->lses);
    free(t->lses_allowed);
}

void attention_reference(const attention_shape *s, attention_tensors *t) {
    int64_t tokens = attention_total(s->seqlens_q, s->batch);
    for (int64_t b = 0; b < s->batch; b++) {
        int64_t first = attention_total(s->seqlens_q, b), kv_first = attention_total(s->seqlens_k, b);
        for (int64_t query = 0; query < s->seqlens_q[b]; query++) {
            for (int64_t head = 0; head < s->heads; head++) {
                int64_t kv_head = head / (s->heads / s->kv_heads), token = first + query;
                int64_t place = token * t->q.cols + head * s->size;
                int64_t key = kv_first * t->k.cols + kv_head * s->size;
                attention_query(s, t->q.values + place, t->k.values + key, t->v.values + key, t->k.cols, query,
                                s->seqlens_q[b], s->seqlens_k[b], t->expected + place, t->allowed + place,
                                &t->lses[head * tokens + token], &t->lses_allowed[head * tokens + token]);
            }
        }
    }
}

kiln_mha_params attention_mha_params(const attention_tensors *t, attention_shape s) {
    return (kiln_mha_params){.out = t->out.data,
                             .lse = s.lse ? t->lse.data : NULL,
                             .q = t->q.data,
                             .k = t->k.data,
                             .v = t->v.data,
                             .cu_seqlens_q = s.varlen ? t->cu_seqlens_q.data : NULL,
                             .cu_seqlens_k = s.varlen ? t->cu_seqlens_k.data : NULL,
                             .tokens = t->q.rows,
                             .kv_tokens = t->k.rows,
                             .batch = s.batch,
                             .heads = s.heads,
                             .kv_heads = s.kv_heads,
                             .head_dim = s.size,
                             .out_stride = s.padding ? t->out.stride : 0,
                             .q_stride = s.padding ? t->q.stride : 0,
                             .k_stride = s.padding ? t->k.stride : 0,
                             .v_stride = s.padding ? t->v.stride : 0,
                             .max_seqlen_q = s.varlen ? attention_longest(s.seqlens_q, s.batch) : 0,
                             .max_seqlen_k = s.varlen ? attention_longest(s.seqlens_k, s.batch) : 0,
                             .window_left = s.left,
                             .window_right = s.right,
                             .scale = (float)s.scale,
                             .softcap = (float)s.softcap,
                             .causal = s.causal,
                             .kernel = s.portable ? KILN_MHA_KERNEL_PORTABLE : KILN_MHA_KERNEL_AUTO};
}

attention_shape attention_plain(int64_t seqlen_q, int64_t seqlen_k, int64_t heads, int64_t kv_heads, int64_t size) {
    return (attention_shape){.batch = 1,
                             .heads = heads,
                             .kv_heads = kv_heads,
                             .size = size,
                             .seqlens_q = {seqlen_q},
                             .seqlens_k = {seqlen_k}};
}

attention_shape attention_random_shape(void) {
    static const int64_t places[] = {0, 0, 1, 3, 8, AT_END};
    attention_shape s = {.batch = random_integer(1, ATTENTION_BATCH),
                         .kv_heads = random_integer(1, 3),
                         .size = random_integer(1, 12) * 8,
                         .padding = random_integer(0, 1) * random_integer(1, 17),
                         .place = places[random_integer(0, 5)],
                         .varlen = random_integer(0, 1),
                         .lse = random_integer(0, 1),
                         .left = random_integer(0, 2) ? 0 : random_integer(1, 40),
                         .right = random_integer(0, 2) ? 0 : random_integer(1, 20),
                         .causal = random_integer(0, 1),
                         .scale = random_integer(0, 1) ? 0 : random_number(0.05, 0.5),
                         .softcap = random_integer(0, 2) ? 0 : random_number(1, 20),
                         .portable = !random_integer(0, 3)};
    if (s.causal) s.right = 0;
    s.heads = s.kv_heads * random_integer(1, 4);
    for (int64_t i = 0; i < s.batch; i++) {
        s.seqlens_q[i] = i && !s.varlen ? s.seqlens_q[0] : random_integer(s.varlen ? 0 : 1, 12);
        s.seqlens_k[i] = i && !s.varlen ? s.seqlens_k[0] : random_integer(0, 90);
    }
    if (!attention_total(s.seqlens_q, s.batch)) s.seqlens_q[0] = 3;
    return s;
}

typedef void (*shape_body)(kiln_stream *, precision, attention_shape);

static void window_edges(kiln_stream *stream, precision p, shape_body body) {
    /* Each query sees its own key alone: the first one the last key of a tile. A subgroup has several rows. */
    attention_shape s = attention_plain(18, 49, 2, 1, 8);
    s.causal = true;
    s.left = 1;
    body(stream, p, s);
    /* A group's queries all stand before the first key, of which there are fewer than of the other sequence's. */
    s = (attention_shape){.batch = 2,
                          .heads = 1,
                          .kv_heads = 1,
                          .size = 8,
                          .seqlens_q = {1, 40},
                          .seqlens_k = {33, 1},
                          .place = AT_END,
                          .varlen = true,
                          .left = 3,
                          .causal = true};
    body(stream, p, s);
    /* In each row that a subgroup has, windows that begin before the first key, and that end behind the last. */
    s = attention_plain(32, 40, 1, 1, 8);
    s.left = 50;
    s.right = 30;
    body(stream, p, s);
    /* In each, windows that begin after they end, before the first key. */
    s = attention_plain(32, 2, 1, 1, 8);
    s.causal = true;
    body(stream, p, s);
}

/* Queries of one sequence with so few keys that only another one's, which has no queries, make groups share keys. */
static attention_shape among_many(int64_t seqlen_q, int64_t seqlen_k, int64_t heads, int64_t size) {
    attention_shape s = attention_plain(0, 520, heads, 1, size);
    s.batch = 2;
    s.seqlens_q[1] = seqlen_q;
    s.seqlens_k[1] = seqlen_k;
    s.varlen = s.workspace = true;
    return s;
}

/* NaNs in v are NaNs in each element of each row that a group can have: with and without lse, and where groups share
 * the keys. */
static void nan_edges(kiln_stream *stream, precision p, shape_body body) {
    for (int i = 0; i < 6; i++) {
        int64_t size = i % 2 ? 256 : 128, rows = i % 2 ? 16 : 32;
        attention_shape s = i / 2 == 2 ? among_many(rows, 3, 1, size) : attention_plain(rows, 3, 1, 1, size);
        s.lse = i / 2 == 1;
        s.v = (double)NAN;
        body(stream, p, s);
    }
}

/* Few queries with many keys, which groups share where there is workspace. */
static void share_edges(kiln_stream *stream, precision p, shape_body body) {
    attention_shape s = attention_plain(1, 800 + (int64_t)p, 4, 2, 64);
    s.workspace = s.lse = true;
    body(stream, p, s);
    s.seqlens_k[0] = 600;
    s.seqlens_q[0] = 3;
    s.causal = true;
    s.left = 500;
    body(stream, p, s);
    s.workspace = false;
    body(stream, p, s);
    /* Some groups find no keys, and one sequence has none at all. */
    s = (attention_shape){.batch = 3, .heads = 4, .kv_heads = 2, .size = 40, .seqlens_q = {1, 2, 1}};
    s.seqlens_k[0] = 800;
    s.seqlens_k[1] = 3;
    s.varlen = s.lse = s.workspace = true;
    body(stream, p, s);
    /* As many rows as a group can have, and as large ones. */
    s = attention_plain(1, 520, 32, 1, 128);
    s.lse = s.workspace = true;
    body(stream, p, s);
    s.heads = 16;
    s.size = 256;
    body(stream, p, s);
}

/* The last group's rows end within it, and a head's elements within a thread's and within a vector: of one head and of
 * two that share one of k and v, with and without lse, and where groups share the keys. What lies beyond is seen. With
 * heads beyond 128 a subgroup has two rows and no more, and there are groups enough for one to be done before another
 * that would write its rows. */
static void row_edges(kiln_stream *stream, precision p, shape_body body) {
    static const int64_t sizes[] = {19, 99, 250};
    for (int i = 0; i < 18; i++) {
        int64_t size = sizes[i / 6], heads = 1 + i % 2, queries = (size > 128 ? 64 : 32) / heads + 1;
        bool shared = i / 2 % 3 == 0;
        attention_shape s = shared ? among_many(queries, 5, heads, size) : attention_plain(queries, 5, heads, 1, size);
        s.padding = 256 - size;
        s.place = AT_END;
        s.lse = i / 2 % 3 == 1;
        body(stream, p, s);
    }
}

void attention_edges(kiln_stream *stream, precision p, shape_body body) {
    window_edges(stream, p, body);
    nan_edges(stream, p, body);
    share_edges(stream, p, body);
    row_edges(stream, p, body);
}

enum { OWNED = 3 };

static const double untouched = 77;

attention_shape attention_unowned(bool workspace) {
    return (attention_shape){.batch = 3,
                             .heads = 4,
                             .kv_heads = 2,
                             .size = 40,
                             .seqlens_q = {2, 2, 2},
                             .seqlens_k = {40, 520, 30},
                             .varlen = true,
                             .lse = true,
                             .workspace = workspace};
}

void attention_unowned_set(attention_tensors *t) {
    matrix_set(&t->cu_seqlens_q, (const double[]){0, 1, 4, 4}); /* the second has three, of which two are done */
    for (int64_t i = 0; i < t->out.rows * t->out.cols; i++)
        t->expected[i] = untouched;
    matrix_set(&t->out, t->expected);
    matrix_set(&t->lse, t->expected);
}

void attention_unowned_expect(attention_tensors *t) {
    matrix_get(&t->out);
    matrix_get(&t->lse);
    for (int64_t token = 0; token < t->out.rows; token++) {
        for (int64_t col = 0; col < t->out.cols; col++)
            assert_int_equal(t->out.values[token * t->out.cols + col] == untouched, token >= OWNED);
        for (int64_t head = 0; head < t->lse.rows; head++)
            assert_int_equal(t->lse.values[head * t->lse.cols + token] == untouched, token >= OWNED);
    }
}

static double gaussian(void) {
    return sqrt(-2 * log(1 - random_number(0, 1))) * cos(2 * acos(-1) * random_number(0, 1));
}

void attention_fill(attention_tensors *t, const attention_shape *s, attention_data kind) {
    matrix_fill(&t->q, gaussian);
    matrix_fill(&t->k, gaussian);
    matrix_fill(&t->v, gaussian);
    for (int64_t i = 0; i < t->k.rows * t->k.cols; i++) {
        if (kind == ATTENTION_BIASED_KEYS && i % s->size < 4) t->k.values[i] += i % 2 ? 10 : -10;
        if (kind == ATTENTION_SINK && i < t->k.cols && i % s->size < 8) t->k.values[i] = 3;
        if (kind == ATTENTION_VALUES_WITH_MEANS) t->v.values[i] = 3 + 0.5 * t->v.values[i];
        if (kind == ATTENTION_ONES) t->v.values[i] = 1;
    }
    for (int64_t i = 0; kind == ATTENTION_SINK && i < t->q.rows * t->q.cols; i++)
        if (i % s->size < 8) t->q.values[i] = fabs(t->q.values[i]) + 1;
    matrix_set(&t->q, t->q.values);
    matrix_set(&t->k, t->k.values);
    matrix_set(&t->v, t->v.values);
}
