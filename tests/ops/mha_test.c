/* mha and mha_paged against f64: heads of all sizes, grouped heads, masks, batches of sequences of different lengths,
 * few queries with many keys; and mha_paged bit for bit against mha on the keys that it gathers. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 4 };

typedef struct shape {
    int64_t batch, heads, kv_heads, size;
    int64_t q_lengths[BATCH_MAX], kv_lengths[BATCH_MAX]; /* of each sequence */
    int64_t padding, place;                              /* of tokens; of all tensors */
    bool ends;                                           /* lengths differ, and q_ends and kv_ends say so */
    bool lse, workspace;
    int64_t left, right;
    bool causal;
    double scale, softcap;
} shape;

static double any_number(void) {
    return random_number(-2, 2);
}

static double large_number(void) {
    return random_number(-60000, 60000);
}

static double one(void) {
    return 1;
}

static double not_a_number(void) {
    return (double)NAN;
}

static int64_t total(const int64_t lengths[BATCH_MAX], int64_t batch) {
    int64_t sum = 0;
    for (int64_t i = 0; i < batch; i++)
        sum += lengths[i];
    return sum;
}

static int64_t longest(const int64_t lengths[BATCH_MAX], int64_t batch) {
    int64_t most = 0;
    for (int64_t i = 0; i < batch; i++)
        most = lengths[i] > most ? lengths[i] : most;
    return most;
}

static void describe(const char *name, precision p, shape s) {
    harness_describe("%s_%s batch %lld of %lld.. queries and %lld.. keys, %lld heads on %lld, size %lld, padding %lld, "
                     "at %lld%s%s%s, windows %lld %lld%s, scale %g, softcap %g",
                     name, precision_name(p), (long long)s.batch, (long long)s.q_lengths[0], (long long)s.kv_lengths[0],
                     (long long)s.heads, (long long)s.kv_heads, (long long)s.size, (long long)s.padding,
                     (long long)s.place, s.ends ? ", ends" : "", s.lse ? ", lse" : "", s.workspace ? ", workspace" : "",
                     (long long)s.left, (long long)s.right, s.causal ? ", causal" : "", s.scale, s.softcap);
}

/* One query of one head: what it adds up to, what f32 may lose of it, and its lse. */
static void attend(const shape *s, const double *q, const double *k, const double *v, int64_t stride, int64_t query,
                   int64_t q_length, int64_t kv_length, double *out, double *allowed, double *lse) {
    double *scores = malloc(sizeof *scores * (size_t)(kv_length + 1)), max = -INFINITY, sum = 0, loss = 0;
    assert_non_null(scores);
    int64_t own = query + kv_length - q_length, right = s->causal ? 1 : s->right;
    double scale = s->scale == 0 ? 1 / sqrt((double)s->size) : (double)(float)s->scale;
    for (int64_t key = 0; key < kv_length; key++) {
        double dot = 0, magnitude = 0;
        for (int64_t d = 0; d < s->size; d++) {
            dot += q[d] * k[key * stride + d];
            magnitude += fabs(q[d] * k[key * stride + d]);
        }
        double score = dot * scale;
        if (s->softcap != 0) score = (double)(float)s->softcap * tanh(score / (double)(float)s->softcap);
        bool seen = !(s->left && key <= own - s->left) && !(right && key >= own + right);
        scores[key] = seen ? score : -INFINITY;
        max = fmax(max, scores[key]);
        if (seen) loss = fmax(loss, magnitude * fabs(scale) * sqrt((double)s->size + 8) * 0x1p-23 + fabs(score) * 1e-6);
    }
    for (int64_t d = 0; d < s->size; d++)
        out[d] = allowed[d] = 0;
    for (int64_t key = 0; key < kv_length; key++)
        sum += scores[key] == -INFINITY ? 0 : exp(scores[key] - max);
    for (int64_t key = 0; key < kv_length; key++) {
        if (scores[key] == -INFINITY) continue;
        double weight = exp(scores[key] - max) / sum;
        for (int64_t d = 0; d < s->size; d++) {
            out[d] += weight * v[key * stride + d];
            allowed[d] += weight * fabs(v[key * stride + d]);
        }
    }
    for (int64_t d = 0; d < s->size; d++)
        allowed[d] *= 2 * loss + 4e-6;
    *lse = sum == 0 ? -INFINITY : max + log(sum);
    free(scores);
}

typedef struct tensors {
    matrix q, k, v, out, lse, q_ends, kv_ends, workspace;
    double *expected, *allowed, *lses, *lses_allowed;
} tensors;

static tensors tensors_create(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    tensors t;
    int64_t tokens = total(s.q_lengths, s.batch), keys = total(s.kv_lengths, s.batch);
    int64_t width = s.heads * s.size, kv_width = s.kv_heads * s.size;
    t.q = matrix_create(stream, p, tokens, width, width + s.padding, s.place);
    t.out = matrix_create(stream, p, tokens, width, width + s.padding, s.place);
    t.k = matrix_create(stream, p, keys, kv_width, kv_width + s.padding, s.place);
    t.v = matrix_create(stream, p, keys, kv_width, kv_width + s.padding, s.place);
    t.lse = matrix_create(stream, F32, s.heads, tokens, 0, 0);
    t.q_ends = matrix_create(stream, I32, 1, s.batch, 0, AT_END);
    t.kv_ends = matrix_create(stream, I32, 1, s.batch, 0, AT_END);
    matrix_fill(&t.q, value);
    matrix_fill(&t.k, value);
    matrix_fill(&t.v, value);
    for (int64_t i = 0; i < s.batch; i++) {
        t.q_ends.values[i] = (double)total(s.q_lengths, i + 1);
        t.kv_ends.values[i] = (double)total(s.kv_lengths, i + 1);
    }
    matrix_set(&t.q_ends, t.q_ends.values);
    matrix_set(&t.kv_ends, t.kv_ends.values);
    t.expected = malloc(sizeof(double) * (size_t)(tokens * width + 1));
    t.allowed = malloc(sizeof(double) * (size_t)(tokens * width + 1));
    t.lses = malloc(sizeof(double) * (size_t)(tokens * s.heads + 1));
    t.lses_allowed = malloc(sizeof(double) * (size_t)(tokens * s.heads + 1));
    assert_true(t.expected && t.allowed && t.lses && t.lses_allowed);
    return t;
}

static void tensors_destroy(tensors *t) {
    matrix *all[] = {&t->q, &t->k, &t->v, &t->out, &t->lse, &t->q_ends, &t->kv_ends};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    free(t->expected);
    free(t->allowed);
    free(t->lses);
    free(t->lses_allowed);
}

static void reference(const shape *s, tensors *t) {
    int64_t tokens = total(s->q_lengths, s->batch);
    for (int64_t b = 0; b < s->batch; b++) {
        int64_t first = total(s->q_lengths, b), kv_first = total(s->kv_lengths, b);
        for (int64_t query = 0; query < s->q_lengths[b]; query++) {
            for (int64_t head = 0; head < s->heads; head++) {
                int64_t kv_head = head / (s->heads / s->kv_heads), token = first + query;
                int64_t place = token * t->q.cols + head * s->size;
                int64_t key = kv_first * t->k.cols + kv_head * s->size;
                attend(s, t->q.values + place, t->k.values + key, t->v.values + key, t->k.cols, query, s->q_lengths[b],
                       s->kv_lengths[b], t->expected + place, t->allowed + place, &t->lses[head * tokens + token]);
                t->lses_allowed[head * tokens + token] = 1e-5;
            }
        }
    }
}

static kiln_mha_params mha_params(const tensors *t, shape s) {
    return (kiln_mha_params){.out = t->out.data,
                             .lse = s.lse ? t->lse.data : NULL,
                             .q = t->q.data,
                             .k = t->k.data,
                             .v = t->v.data,
                             .q_ends = s.ends ? t->q_ends.data : NULL,
                             .kv_ends = s.ends ? t->kv_ends.data : NULL,
                             .tokens = t->q.rows,
                             .kv_tokens = t->k.rows,
                             .batch = s.batch,
                             .heads = s.heads,
                             .kv_heads = s.kv_heads,
                             .head_size = s.size,
                             .out_stride = s.padding ? t->out.stride : 0,
                             .q_stride = s.padding ? t->q.stride : 0,
                             .k_stride = s.padding ? t->k.stride : 0,
                             .v_stride = s.padding ? t->v.stride : 0,
                             .q_length = s.ends ? longest(s.q_lengths, s.batch) : 0,
                             .kv_length = s.ends ? longest(s.kv_lengths, s.batch) : 0,
                             .left_window = s.left,
                             .right_window = s.right,
                             .scale = (float)s.scale,
                             .softcap = (float)s.softcap,
                             .causal = s.causal};
}

/* Calls mha on tensors that are destroyed then. */
static void run_on(kiln_stream *stream, precision p, shape s, tensors t) {
    describe("mha", p, s);
    reference(&s, &t);
    kiln_mha_params params = mha_params(&t, s);
    const kiln_operator_function *function = operator_function("mha", p);
    matrix workspace = {0};
    if (s.workspace) {
        harness_ok(function->workspace_size(&params, sizeof params, &params.workspace_size));
        workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
        if (params.workspace_size) params.workspace = workspace.data;
    }
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect(&t.out, t.expected, t.allowed);
    if (s.lse)
        matrix_expect(&t.lse, t.lses, t.lses_allowed);
    else
        matrix_expect_unchanged(&t.lse);
    matrix_expect_unchanged(&t.q);
    matrix_expect_unchanged(&t.k);
    matrix_expect_unchanged(&t.v);
    if (s.workspace) {
        matrix_get(&workspace); /* nothing around it is written */
        matrix_destroy(&workspace);
    }
    tensors_destroy(&t);
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    run_on(stream, p, s, tensors_create(stream, p, s, value));
}

static shape plain(int64_t q_length, int64_t kv_length, int64_t heads, int64_t kv_heads, int64_t size) {
    return (shape){.batch = 1,
                   .heads = heads,
                   .kv_heads = kv_heads,
                   .size = size,
                   .q_lengths = {q_length},
                   .kv_lengths = {kv_length}};
}

static void plain_body(kiln_stream *stream, bool first) {
    (void)first;
    for (int64_t size = 32; size <= 256; size += 8)
        for (precision p = precision_first(); p < precision_end(); p++)
            if (harness_on_cpu(stream) || (size / 8 + (int64_t)p) % PRECISION_COUNT == 0)
                run(stream, p, plain(random_integer(1, 9), random_integer(1, 70), 2, random_integer(1, 2), size),
                    any_number);
    for (precision p = precision_first(); p < precision_end(); p++) {
        run(stream, p, plain(7, 45, 2, 1, 8), any_number);
        run(stream, p, plain(1, 1, 1, 1, 1), any_number);
        run(stream, p, plain(1, 33, 4, 4, 7), any_number);
        run(stream, p, plain(70, 70, 1, 1, 16), any_number);
        run(stream, p, plain(5, 40, 8, 1, 24), any_number);
        run(stream, p, plain(3, 50, 2, 2, 32), one);
        /* A group's first queries stand before the first key. */
        shape s = plain(32, 4, 1, 1, 16);
        s.causal = true;
        run(stream, p, s, any_number);
    }
}

static shape random_shape(void) {
    static const int64_t places[] = {0, 0, 1, 3, 8, AT_END};
    shape s = {.batch = random_integer(1, BATCH_MAX),
               .kv_heads = random_integer(1, 3),
               .size = random_integer(1, 12) * 8,
               .padding = random_integer(0, 1) * random_integer(1, 17),
               .place = places[random_integer(0, 5)],
               .ends = random_integer(0, 1),
               .lse = random_integer(0, 1),
               .left = random_integer(0, 2) ? 0 : random_integer(1, 40),
               .right = random_integer(0, 2) ? 0 : random_integer(1, 20),
               .causal = random_integer(0, 1),
               .scale = random_integer(0, 1) ? 0 : random_number(0.05, 0.5),
               .softcap = random_integer(0, 2) ? 0 : random_number(1, 20)};
    if (s.causal) s.right = 0;
    s.heads = s.kv_heads * random_integer(1, 4);
    for (int64_t i = 0; i < s.batch; i++) {
        s.q_lengths[i] = i && !s.ends ? s.q_lengths[0] : random_integer(s.ends ? 0 : 1, 12);
        s.kv_lengths[i] = i && !s.ends ? s.kv_lengths[0] : random_integer(0, 90);
    }
    if (!total(s.q_lengths, s.batch)) s.q_lengths[0] = 3;
    return s;
}

static void random_body(kiln_stream *stream, bool first) {
    (void)first;
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 16); i++)
            run(stream, p, random_shape(), any_number);
}

/* The last group's rows end within it, and a head's elements within a thread's: of one head and of two that share one
 * of k and v, with and without lse, and where groups share the keys. What lies beyond is seen. With heads beyond
 * 128 a subgroup has two rows and no more, and there are groups enough for one to be done before another that would
 * write its rows. */
static void endings_body(kiln_stream *stream, bool first) {
    (void)first;
    static const int64_t sizes[] = {20, 100, 250};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 18; i++) {
            int64_t size = sizes[i / 6], heads = 1 + i % 2, rows = size > 128 ? 64 : 32;
            shape s = plain(rows / heads + 1, i / 2 % 3 ? 5 : 520, heads, 1, size);
            s.padding = 256 - size;
            s.place = AT_END;
            s.lse = i / 2 % 3 == 1;
            s.workspace = i / 2 % 3 == 0;
            run(stream, p, s, any_number);
        }
}

/* NaNs in v are NaNs in each element of each row that a group can have: with and without lse, and where groups share
 * the keys. */
static void nans_body(kiln_stream *stream, bool first) {
    (void)first;
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 6; i++) {
            shape s = i % 2 ? plain(16, i / 2 == 2 ? 520 : 3, 1, 1, 256) : plain(32, i / 2 == 2 ? 520 : 3, 1, 1, 128);
            s.lse = i / 2 == 1;
            s.workspace = i / 2 == 2;
            tensors t = tensors_create(stream, p, s, any_number);
            matrix_fill(&t.v, not_a_number);
            run_on(stream, p, s, t);
        }
}

/* Few queries with many keys, which groups share where there is workspace. */
static void decode_body(kiln_stream *stream, bool first) {
    (void)first;
    for (precision p = precision_first(); p < precision_end(); p++) {
        shape s = plain(1, 1500 + (int64_t)p, 4, 2, 64);
        s.workspace = s.lse = true;
        run(stream, p, s, any_number);
        s.kv_lengths[0] = 700;
        s.q_lengths[0] = 3;
        s.causal = true;
        s.left = 600;
        run(stream, p, s, any_number);
        s.workspace = false;
        run(stream, p, s, any_number);
        /* Some groups find no keys, and one sequence has none at all. */
        s = (shape){.batch = 3, .heads = 4, .kv_heads = 2, .size = 40, .q_lengths = {1, 2, 1}};
        s.kv_lengths[0] = 1100;
        s.kv_lengths[1] = 3;
        s.ends = s.lse = s.workspace = true;
        run(stream, p, s, any_number);
        /* As many rows as a group can have, and as large ones. */
        s = plain(1, 520, 32, 1, 128);
        s.lse = s.workspace = true;
        run(stream, p, s, any_number);
        s.heads = 16;
        s.size = 256;
        run(stream, p, s, any_number);
    }
}

/* A device tells how many of its keys each sequence has; more than there is room for are cut. */
static void lengths_body(kiln_stream *stream, bool first) {
    (void)first;
    enum { BATCH = 5, ROOM = 50, HEADS = 4, KV_HEADS = 2, SIZE = 32 };
    const double lengths[BATCH] = {17, 0, ROOM, ROOM + 9, -3}, counted[BATCH] = {17, 0, ROOM, ROOM, 0};
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("mha_%s with lengths", precision_name(p));
        shape s = {.batch = 1, .heads = HEADS, .kv_heads = KV_HEADS, .size = SIZE};
        matrix q = matrix_create(stream, p, BATCH, HEADS * SIZE, 0, 0);
        matrix k = matrix_create(stream, p, BATCH * ROOM, KV_HEADS * SIZE, 0, 0);
        matrix v = matrix_create(stream, p, BATCH * ROOM, KV_HEADS * SIZE, 0, 0);
        matrix out = matrix_create(stream, p, BATCH, HEADS * SIZE, 0, 0);
        matrix counts = matrix_create(stream, I32, 1, BATCH, 0, 0);
        double expected[BATCH * HEADS * SIZE], allowed[BATCH * HEADS * SIZE], lse;
        matrix_fill(&q, any_number);
        matrix_fill(&k, any_number);
        matrix_fill(&v, any_number);
        matrix_set(&counts, lengths);
        for (int64_t b = 0; b < BATCH; b++)
            for (int64_t head = 0; head < HEADS; head++) {
                int64_t place = (b * HEADS + head) * SIZE, key = (b * ROOM * KV_HEADS + head / 2) * SIZE;
                attend(&s, q.values + place, k.values + key, v.values + key, KV_HEADS * SIZE, 0, 1, (int64_t)counted[b],
                       expected + place, allowed + place, &lse);
            }
        kiln_mha_params params = {.out = out.data,
                                  .q = q.data,
                                  .k = k.data,
                                  .v = v.data,
                                  .kv_lengths = counts.data,
                                  .tokens = BATCH,
                                  .kv_tokens = BATCH * ROOM,
                                  .batch = BATCH,
                                  .heads = HEADS,
                                  .kv_heads = KV_HEADS,
                                  .head_size = SIZE};
        harness_ok(operator_function("mha", p)->call(stream, &params, sizeof params));
        matrix_expect(&out, expected, allowed);
        matrix_destroy(&q);
        matrix_destroy(&k);
        matrix_destroy(&v);
        matrix_destroy(&out);
        matrix_destroy(&counts);
    }
}

/* Ends beyond the rows that there are, and lengths below zero, as a caller's mistake or a stale buffer has them:
 * whatever is computed, nothing outside of the tensors is read or written. */
static void wrong_ends_body(kiln_stream *stream, bool first) {
    (void)first;
    enum { BATCH = 3, SIZE = 16 };
    static const double ends[][BATCH] = {
        {4, 9, 5}, {-3, 2, 1 << 30}, {INT32_MAX, INT32_MIN, -1}, {1 << 30, 1 << 30, 2}, {INT32_MIN, INT32_MAX, 5}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            harness_describe("mha_%s with ends %.0f %.0f %.0f", precision_name(p), ends[i][0], ends[i][1], ends[i][2]);
            shape s = {.batch = BATCH,
                       .heads = 2,
                       .kv_heads = 1,
                       .size = SIZE,
                       .q_lengths = {1, 2, 2},
                       .kv_lengths = {3, 1, 1},
                       .place = i % 2 ? AT_END : 0};
            tensors t = tensors_create(stream, p, s, any_number);
            matrix_set(&t.q_ends, ends[i]);
            matrix_set(&t.kv_ends, ends[i]);
            kiln_mha_params params = {.out = t.out.data,
                                      .lse = t.lse.data,
                                      .q = t.q.data,
                                      .k = t.k.data,
                                      .v = t.v.data,
                                      .q_ends = t.q_ends.data,
                                      .kv_ends = t.kv_ends.data,
                                      .tokens = t.q.rows,
                                      .kv_tokens = t.k.rows,
                                      .batch = BATCH,
                                      .heads = s.heads,
                                      .kv_heads = s.kv_heads,
                                      .head_size = SIZE};
            harness_ok(operator_function("mha", p)->call(stream, &params, sizeof params));
            matrix_get(&t.out);
            matrix_get(&t.lse);
            matrix_expect_unchanged(&t.q);
            matrix_expect_unchanged(&t.k);
            matrix_expect_unchanged(&t.v);
            tensors_destroy(&t);
        }
}

/* Queries that no sequence has, or that are cut, have no result: out and lse stay as they are, where a group has all of
 * a query's keys and where groups share them. */
static void unowned_body(kiln_stream *stream, bool first) {
    (void)first;
    enum { OWNED = 3, TOKENS = 6 };
    shape s = {.batch = 3,
               .heads = 4,
               .kv_heads = 2,
               .size = 40,
               .q_lengths = {1, 3, 2},
               .kv_lengths = {300, 2000, 100},
               .ends = true,
               .lse = true};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int shared = 0; shared < 2; shared++) {
            harness_describe("mha_%s with queries of no sequence%s", precision_name(p), shared ? ", workspace" : "");
            tensors t = tensors_create(stream, p, s, any_number);
            const kiln_operator_function *function = operator_function("mha", p);
            matrix_set(&t.q_ends, (const double[]){1, 4, 4});
            for (int64_t i = 0; i < t.out.rows * t.out.cols; i++)
                t.expected[i] = 77;
            matrix_set(&t.out, t.expected);
            matrix_set(&t.lse, t.expected);
            kiln_mha_params params = mha_params(&t, s);
            params.q_length = 2; /* of the second sequence's three */
            matrix workspace = {0};
            if (shared) {
                harness_ok(function->workspace_size(&params, sizeof params, &params.workspace_size));
                assert_true(params.workspace_size > 0);
                workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
                params.workspace = workspace.data;
            }
            harness_ok(function->call(stream, &params, sizeof params));
            matrix_get(&t.out);
            matrix_get(&t.lse);
            for (int64_t token = 0; token < TOKENS; token++) {
                for (int64_t col = 0; col < t.out.cols; col++)
                    assert_int_equal(t.out.values[token * t.out.cols + col] == 77, token >= OWNED);
                for (int64_t head = 0; head < s.heads; head++)
                    assert_int_equal(t.lse.values[head * TOKENS + token] == 77, token >= OWNED);
            }
            if (shared) matrix_destroy(&workspace);
            tensors_destroy(&t);
        }
}

/* A cache that has the keys and values of some sequences in blocks that lie anywhere in it. */
typedef struct paged {
    int64_t block_size, blocks, table_size;
    matrix caches[2], tables, lengths;
} paged;

/* The numbers below count in any order, to be freed. */
static int64_t *shuffled(int64_t count) {
    int64_t *order = malloc(sizeof *order * (size_t)count);
    assert_non_null(order);
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t other = random_integer(0, i), block = order[i];
        order[i] = order[other];
        order[other] = block;
    }
    return order;
}

/* Copies a sequence's key of this number and its value into a row of the caches. */
static void cache_key(paged *c, shape s, const tensors *t, int64_t sequence, int64_t key, int64_t row) {
    int64_t cols = t->k.cols, from = (total(s.kv_lengths, sequence) + key) * cols;
    memcpy(c->caches[0].values + row * cols, t->k.values + from, sizeof(double) * (size_t)cols);
    memcpy(c->caches[1].values + row * cols, t->v.values + from, sizeof(double) * (size_t)cols);
}

/* What no sequence owns is NaN, and entries of tables that no key needs are anything. */
static void paged_fill(paged *c, shape s, const tensors *t) {
    int64_t *order = shuffled(c->blocks), used = 0;
    for (int64_t i = 0; i < c->blocks * c->block_size * t->k.cols; i++)
        c->caches[0].values[i] = c->caches[1].values[i] = NAN;
    for (int64_t b = 0; b < s.batch; b++) {
        c->lengths.values[b] = (double)s.kv_lengths[b];
        for (int64_t i = 0; i < c->table_size; i++) {
            bool needed = i * c->block_size < s.kv_lengths[b];
            int64_t block = needed ? order[used++] : random_integer(-9, 1 << 20);
            c->tables.values[b * c->table_size + i] = (double)block;
            for (int64_t j = i * c->block_size; needed && j < (i + 1) * c->block_size && j < s.kv_lengths[b]; j++)
                cache_key(c, s, t, b, j, block * c->block_size + j % c->block_size);
        }
    }
    free(order);
}

static paged paged_create(kiln_stream *stream, precision p, shape s, const tensors *t, int64_t block_size) {
    paged c = {.block_size = block_size};
    /* Keys are divided as mha divides them only if the table has room for the longest sequence and no more. */
    c.table_size = (longest(s.kv_lengths, s.batch) + block_size - 1) / block_size + (s.workspace ? 0 : 1);
    c.blocks = s.batch * c.table_size + 3;
    for (int i = 0; i < 2; i++)
        c.caches[i] = matrix_create(stream, p, c.blocks * block_size, t->k.cols, t->k.cols + s.padding, s.place);
    c.tables = matrix_create(stream, I32, s.batch, c.table_size, 0, 0);
    c.lengths = matrix_create(stream, I32, 1, s.batch, 0, 0);
    paged_fill(&c, s, t);
    matrix *all[] = {&c.caches[0], &c.caches[1], &c.tables, &c.lengths};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_set(all[i], all[i]->values);
    return c;
}

static void paged_destroy(paged *c) {
    matrix_destroy(&c->caches[0]);
    matrix_destroy(&c->caches[1]);
    matrix_destroy(&c->tables);
    matrix_destroy(&c->lengths);
}

static kiln_mha_paged_params paged_params(const paged *c, const tensors *t, shape s) {
    return (kiln_mha_paged_params){.out = t->out.data,
                                   .lse = s.lse ? t->lse.data : NULL,
                                   .q = t->q.data,
                                   .k_cache = c->caches[0].data,
                                   .v_cache = c->caches[1].data,
                                   .tables = c->tables.data,
                                   .kv_lengths = c->lengths.data,
                                   .q_ends = s.ends ? t->q_ends.data : NULL,
                                   .tokens = t->q.rows,
                                   .blocks = c->blocks,
                                   .block_size = c->block_size,
                                   .batch = s.batch,
                                   .table_size = c->table_size,
                                   .heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .head_size = s.size,
                                   .out_stride = t->out.stride,
                                   .q_stride = t->q.stride,
                                   .k_cache_stride = c->caches[0].stride,
                                   .v_cache_stride = c->caches[1].stride,
                                   .left_window = s.left,
                                   .right_window = s.right,
                                   .scale = (float)s.scale,
                                   .softcap = (float)s.softcap,
                                   .causal = s.causal};
}

/* The same keys and values in a cache and contiguous: bit for bit the same. */
static void run_paged(kiln_stream *stream, precision p, shape s, int64_t block_size) {
    describe("mha_paged", p, s);
    tensors t = tensors_create(stream, p, s, any_number);
    paged c = paged_create(stream, p, s, &t, block_size);
    kiln_mha_params contiguous = mha_params(&t, s);
    contiguous.kv_ends = t.kv_ends.data; /* whatever q_ends are */
    contiguous.kv_length = longest(s.kv_lengths, s.batch);
    contiguous.lse = NULL;
    kiln_mha_paged_params params = paged_params(&c, &t, s);
    const kiln_operator_function *function = operator_function("mha_paged", p);
    matrix workspace = {0};
    if (s.workspace) {
        harness_ok(function->workspace_size(&params, sizeof params, &params.workspace_size));
        workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
        contiguous.workspace = params.workspace = workspace.data;
        contiguous.workspace_size = params.workspace_size;
    }
    harness_ok(operator_function("mha", p)->call(stream, &contiguous, sizeof contiguous));
    matrix_get(&t.out);
    double *gathered = malloc(sizeof(double) * (size_t)(t.out.rows * t.out.cols + 1));
    assert_non_null(gathered);
    memcpy(gathered, t.out.values, sizeof(double) * (size_t)(t.out.rows * t.out.cols));
    matrix_poison(&t.out);
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_exact(&t.out, gathered);
    if (s.workspace) {
        matrix_get(&workspace); /* nothing around it is written */
        matrix_destroy(&workspace);
    }
    if (s.lse) {
        reference(&s, &t);
        matrix_expect(&t.lse, t.lses, t.lses_allowed);
    }
    free(gathered);
    paged_destroy(&c);
    tensors_destroy(&t);
}

static void paged_body(kiln_stream *stream, bool first) {
    (void)first;
    static const int64_t blocks[] = {1, 8, 16, 32, 64, 128, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            shape s = random_shape();
            s.ends = true;
            run_paged(stream, p, s, blocks[i]);
        }
}

/* A token each, as when tokens are generated: one sequence is long, and groups share its keys. */
static void paged_decode_body(kiln_stream *stream, bool first) {
    (void)first;
    for (precision p = precision_first(); p < precision_end(); p++) {
        shape s = {.batch = 3, .heads = 4, .kv_heads = 1, .size = 64, .q_lengths = {1, 1, 1}};
        s.kv_lengths[0] = 37;
        s.kv_lengths[1] = 1024;
        s.kv_lengths[2] = 300;
        s.lse = true;
        s.workspace = true;
        for (int64_t block_size = 16; block_size <= 256; block_size *= 2)
            if (harness_on_cpu(stream) || block_size == 64) run_paged(stream, p, s, block_size);
        s.workspace = false;
        s.kv_lengths[1] = 0;
        run_paged(stream, p, s, 16);
    }
}

/* One key has all of the weight, so that its value is the result to the bit, however large. A NaN in a query, or in a
 * key that a query sees, makes the query's result NaN; of values only the element itself. */
static void special_body(kiln_stream *stream, bool first) {
    (void)first;
    enum { QUERIES = 5, KEYS = 70, HOT = 10, HEADS = 2, SIZE = 40, WIDTH = HEADS * SIZE };
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("mha_%s of special values", precision_name(p));
        matrix q = matrix_create(stream, p, QUERIES, WIDTH, 0, 0), out = matrix_create(stream, p, QUERIES, WIDTH, 0, 0);
        matrix k = matrix_create(stream, p, KEYS, SIZE, 0, 0), v = matrix_create(stream, p, KEYS, SIZE, 0, 0);
        double expected[QUERIES * WIDTH];
        for (int64_t i = 0; i < QUERIES * WIDTH; i++)
            q.values[i] = i % SIZE == 0 ? 200 : 0;
        for (int64_t i = 0; i < KEYS * SIZE; i++)
            k.values[i] = i == HOT * SIZE ? 200 : 0;
        matrix_fill(&v, large_number);
        q.values[2 * WIDTH + SIZE + 3] = NAN;
        k.values[(KEYS - 1) * SIZE + 7] = NAN; /* the last key, which the last query alone sees */
        v.values[HOT * SIZE + 5] = NAN;
        v.values[HOT * SIZE + 6] = -INFINITY;
        for (int64_t i = 0; i < QUERIES * WIDTH; i++) {
            bool none = i / WIDTH == QUERIES - 1 || (i / WIDTH == 2 && i % WIDTH >= SIZE);
            expected[i] = none ? (double)NAN : v.values[HOT * SIZE + i % SIZE];
        }
        matrix_set(&q, q.values);
        matrix_set(&k, k.values);
        matrix_set(&v, v.values);
        kiln_mha_params params = {.out = out.data,
                                  .q = q.data,
                                  .k = k.data,
                                  .v = v.data,
                                  .tokens = QUERIES,
                                  .kv_tokens = KEYS,
                                  .batch = 1,
                                  .heads = HEADS,
                                  .kv_heads = 1,
                                  .head_size = SIZE,
                                  .causal = 1};
        const kiln_operator_function *function = operator_function("mha", p);
        harness_ok(function->call(stream, &params, sizeof params));
        matrix_expect_exact(&out, expected);

        harness_describe("mha_%s of a special value of the last key", precision_name(p));
        params.kv_tokens = HOT + 1;
        params.causal = 0;
        matrix_poison(&out);
        harness_ok(function->call(stream, &params, sizeof params));
        for (int64_t i = 0; i < QUERIES * WIDTH; i++)
            expected[i] = i / WIDTH == 2 && i % WIDTH >= SIZE ? (double)NAN : v.values[HOT * SIZE + i % SIZE];
        matrix_expect_exact(&out, expected);
        params.causal = 1;

        harness_describe("mha_%s without keys", precision_name(p));
        matrix lse = matrix_create(stream, F32, HEADS, QUERIES, 0, 0);
        params.k = params.v = NULL;
        params.kv_tokens = 0;
        params.lse = lse.data;
        matrix_poison(&out);
        harness_ok(function->call(stream, &params, sizeof params));
        for (int64_t i = 0; i < QUERIES * WIDTH; i++)
            expected[i] = 0;
        matrix_expect_exact(&out, expected);
        for (int64_t i = 0; i < HEADS * QUERIES; i++)
            expected[i] = -INFINITY;
        matrix_expect_exact(&lse, expected);
        matrix_destroy(&q);
        matrix_destroy(&k);
        matrix_destroy(&v);
        matrix_destroy(&out);
        matrix_destroy(&lse);
    }
}

/* Each is refused in what is right otherwise. */
static void refuse_numbers(kiln_stream *stream, const kiln_mha_params *good) {
    static const struct {
        const char *names;
        size_t offset;
        int64_t value;
    } wrong[] = {
        {"heads", offsetof(kiln_mha_params, heads), 7},
        {"kv_heads", offsetof(kiln_mha_params, kv_heads), 0},
        {"head_size", offsetof(kiln_mha_params, head_size), 257},
        {"tokens", offsetof(kiln_mha_params, tokens), 5},
        {"kv_tokens", offsetof(kiln_mha_params, kv_tokens), 5},
        {"batch", offsetof(kiln_mha_params, batch), 0},
        {"q_length", offsetof(kiln_mha_params, q_length), 2},
        {"kv_length", offsetof(kiln_mha_params, kv_length), 2},
        {"left_window", offsetof(kiln_mha_params, left_window), -1},
        {"right_window", offsetof(kiln_mha_params, right_window), -1},
    };
    const kiln_operator_function *function = operator_function("mha", F32);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kiln_mha_params params = *good;
        memcpy((char *)&params + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
        expect_refusal(stream, function, &params, sizeof params, wrong[i].names);
    }
    kiln_mha_params params = *good;
    params.causal = 1;
    params.right_window = 2;
    expect_refusal(stream, function, &params, sizeof params, "right_window");
    params = *good;
    params.softcap = -1;
    expect_refusal(stream, function, &params, sizeof params, "softcap");
}

static void refuse_workspaces(kiln_stream *stream, const kiln_mha_params *good) {
    const kiln_operator_function *function = operator_function("mha", F32);
    kiln_mha_params params = *good;
    size_t size;
    params.tokens = params.batch = 1;
    params.kv_tokens = 1024;
    params.heads = params.kv_heads = 1;
    harness_ok(function->workspace_size(&params, sizeof params, &size));
    assert_true(size > 0);
    params.workspace_size = size;
    expect_refusal(stream, function, &params, sizeof params, "workspace");
    params.workspace = (char *)params.out + 4;
    expect_refusal(stream, function, &params, sizeof params, "workspace");
    params.workspace = params.out;
    params.workspace_size = size - 1;
    expect_refusal(stream, function, &params, sizeof params, "workspace_size");
}

static void refuse_paged(kiln_stream *stream, void *memory) {
    const kiln_operator_function *function = operator_function("mha_paged", F32);
    kiln_mha_paged_params params = {.out = memory,
                                    .q = memory,
                                    .k_cache = memory,
                                    .v_cache = memory,
                                    .tables = memory,
                                    .kv_lengths = memory,
                                    .tokens = 1,
                                    .blocks = 4,
                                    .block_size = 12,
                                    .batch = 1,
                                    .table_size = 2,
                                    .heads = 1,
                                    .kv_heads = 1,
                                    .head_size = 8};
    expect_refusal(stream, function, &params, sizeof params, "block_size");
    params.block_size = 16;
    params.q_length = 1;
    expect_refusal(stream, function, &params, sizeof params, "q_length");
    params.q_length = 0;
    params.left_window = -1;
    expect_refusal(stream, function, &params, sizeof params, "left_window");
    params.left_window = 0;
    params.table_size = INT32_MAX / 8;
    expect_refusal(stream, function, &params, sizeof params, "table_size");
}

static void refusals_body(kiln_stream *stream, bool first) {
    (void)first;
    harness_describe("mha refused");
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    const kiln_mha_params good = {.out = x.data,
                                  .q = x.data,
                                  .k = x.data,
                                  .v = x.data,
                                  .tokens = 4,
                                  .kv_tokens = 4,
                                  .batch = 2,
                                  .heads = 6,
                                  .kv_heads = 3,
                                  .head_size = 8};
    refuse_numbers(stream, &good);
    refuse_workspaces(stream, &good);
    refuse_paged(stream, x.data);
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

static void test_plain(void **state) {
    (void)state;
    harness_on_each_device(plain_body);
}

static void test_random(void **state) {
    (void)state;
    harness_on_each_device(random_body);
}

static void test_endings(void **state) {
    (void)state;
    harness_on_each_device(endings_body);
}

static void test_nans(void **state) {
    (void)state;
    harness_on_each_device(nans_body);
}

static void test_decode(void **state) {
    (void)state;
    harness_on_each_device(decode_body);
}

static void test_lengths(void **state) {
    (void)state;
    harness_on_each_device(lengths_body);
}

static void test_queries_of_no_sequence(void **state) {
    (void)state;
    harness_on_each_device(unowned_body);
}

static void test_wrong_ends(void **state) {
    (void)state;
    harness_on_each_device(wrong_ends_body);
}

static void test_paged(void **state) {
    (void)state;
    harness_on_each_device(paged_body);
}

static void test_paged_decode(void **state) {
    (void)state;
    harness_on_each_device(paged_decode_body);
}

static void test_special_values(void **state) {
    (void)state;
    harness_on_each_device(special_body);
}

static void test_refusals(void **state) {
    (void)state;
    harness_on_one_device(refusals_body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special_values), cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_wrong_ends),     cmocka_unit_test(test_queries_of_no_sequence),
        cmocka_unit_test(test_random),         cmocka_unit_test(test_paged),
        cmocka_unit_test(test_plain),          cmocka_unit_test(test_paged_decode),
        cmocka_unit_test(test_endings),        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_nans),           cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
