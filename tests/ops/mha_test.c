/* mha against f64: heads of all sizes, grouped heads, masks, batches of sequences of different lengths, few queries
 * with many keys. */
#include "tests/ops/attention.h"
#include <math.h>
#include <string.h>

static double large_number(void) {
    return random_number(-60000, 60000);
}

static void call(kiln_stream *stream, precision p, attention_shape s, attention_tensors *t) {
    kiln_mha_params params = attention_mha_params(t, s);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha, p);
    matrix workspace = {0};
    if (s.workspace) {
        harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
        workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
        if (params.workspace_size) params.workspace = workspace.data;
    }
    harness_ok(function->call(stream, &params, sizeof params));
    if (!s.workspace) return;
    matrix_get(&workspace); /* nothing around it is written */
    matrix_destroy(&workspace);
}

static void run(kiln_stream *stream, precision p, attention_shape s) {
    attention_describe("mha", p, s);
    attention_tensors t = attention_create(stream, p, s);
    s.rounding = attention_rounding(stream, p, s.portable);
    if (harness_needs_reference()) attention_reference(&s, &t);
    call(stream, p, s, &t);
    matrix_expect(&t.out, t.expected, t.allowed);
    if (s.lse)
        matrix_expect(&t.lse, t.lses, t.lses_allowed);
    else
        matrix_expect_unchanged(&t.lse);
    matrix_expect_unchanged(&t.q);
    matrix_expect_unchanged(&t.k);
    matrix_expect_unchanged(&t.v);
    attention_destroy(&t);
}

static void test_plain(kiln_stream *stream) {
    for (int64_t size = 32; size <= 256; size += 8)
        for (precision p = precision_first(); p < precision_end(); p++)
            if (harness_on_cpu(stream) || (size / 8 + (int64_t)p) % PRECISION_COUNT == 0)
                run(stream, p,
                    attention_plain(random_integer(1, 9), random_integer(1, 70), 2, random_integer(1, 2), size));
    for (precision p = precision_first(); p < precision_end(); p++) {
        run(stream, p, attention_plain(7, 45, 2, 1, 8));
        run(stream, p, attention_plain(1, 1, 1, 1, 1));
        run(stream, p, attention_plain(1, 33, 4, 4, 7));
        run(stream, p, attention_plain(70, 70, 1, 1, 16));
        run(stream, p, attention_plain(5, 40, 8, 1, 24));
        attention_shape s = attention_plain(3, 50, 2, 2, 32);
        s.v = 1;
        run(stream, p, s);
        /* A group's first queries stand before the first key. */
        s = attention_plain(32, 4, 1, 1, 16);
        s.causal = true;
        run(stream, p, s);
    }
}

static void test_random(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 16); i++)
            run(stream, p, attention_random_shape());
}

/* Several tiles of rows and of keys, and of keys as many as go round the rings of tuned kernels, by heads of each size
 * that those have. */
static void test_tiles(kiln_stream *stream) {
    static const int64_t sizes[] = {64, 72, 96, 128, 200, 256};
    for (precision p = F16; p < precision_end(); p++) {
        if (!harness_on_cpu(stream) && attention_rounding(stream, p, false) == 0) continue;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            attention_shape s = attention_plain(random_integer(129, 150), random_integer(190, 210), 1, 1, sizes[i]);
            s.causal = i % 2;
            s.lse = true;
            run(stream, p, s);
            s = attention_plain(random_integer(43, 50), random_integer(130, 200), 3, 1, sizes[i]);
            s.left = 70;
            s.right = 20;
            s.softcap = i % 2 ? 15 : 0;
            run(stream, p, s);
            /* Tiles that all rows see, between some that windows cut at either side. */
            s = attention_plain(random_integer(20, 24), random_integer(500, 530), 3, 1, sizes[i]);
            s.left = random_integer(280, 350);
            s.right = random_integer(0, 2);
            run(stream, p, s);
            s = attention_plain(1, random_integer(900, 1100), 4, 1, sizes[i]);
            s.left = i % 2 ? 800 : 0;
            run(stream, p, s);
            s.workspace = s.lse = true;
            run(stream, p, s);
        }
    }
}

/* More tiles of rows than a GPU of compute capability 9.0 has multiprocessors, whose kernels take several in turn. */
static void test_many_tiles(kiln_stream *stream) {
    kiln_device_info info;
    harness_ok(kiln_device_get_info(stream->device, &info));
    if (info.target.compute_capability != 90 || precision_first() > F16 || precision_end() <= F16) return;
    const int64_t heads = info.multiprocessors / 2 + 2;
    attention_shape s = attention_plain(129, 20, heads, heads, 8);
    s.causal = true;
    run(stream, F16, s);
}

/* More heads, and more elements of their queries, than the CPU computes together. */
static void test_many_heads(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    for (precision p = precision_first(); p < precision_end(); p++) {
        attention_shape s = attention_plain(1, random_integer(65, 75), 150, 150, 16);
        s.lse = true;
        run(stream, p, s);
        s = attention_plain(1, random_integer(513, 530), 40, 10, random_integer(250, 256));
        s.workspace = true;
        run(stream, p, s);
    }
}

static void test_edges(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        attention_edges(stream, p, run);
}

/* A device tells how many of its keys each sequence has; more than there is room for are cut. Where its queries and its
 * keys begin is told as well, or not. */
static void test_lengths(kiln_stream *stream) {
    enum { BATCH = 5, ROOM = 50, HEADS = 4, KV_HEADS = 2, SIZE = 32 };
    static const double lengths[BATCH] = {17, 0, ROOM, ROOM + 9, -3}, cu_seqlens_q[BATCH + 1] = {0, 1, 2, 3, 4, 5};
    static const double cu_seqlens_k[BATCH + 1] = {0, ROOM, ROOM, 2 * ROOM, 3 * ROOM, 3 * ROOM};
    static const int64_t counted[BATCH] = {17, 0, ROOM, ROOM, 0}, kv_first[BATCH] = {0, ROOM, ROOM, 2 * ROOM, 3 * ROOM};
    for (precision p = precision_first(); p < precision_end(); p++) {
        attention_shape s = {.batch = 1, .heads = HEADS, .kv_heads = KV_HEADS, .size = SIZE};
        s.rounding = attention_rounding(stream, p, false);
        matrix q = matrix_create(stream, p, BATCH, HEADS * SIZE, 0, 0);
        matrix k = matrix_create(stream, p, BATCH * ROOM, KV_HEADS * SIZE, 0, 0);
        matrix v = matrix_create(stream, p, BATCH * ROOM, KV_HEADS * SIZE, 0, 0);
        matrix out = matrix_create(stream, p, BATCH, HEADS * SIZE, 0, 0), numbers[3];
        double expected[BATCH * HEADS * SIZE], allowed[BATCH * HEADS * SIZE], lse, lse_allowed;
        matrix_fill(&q, attention_number);
        matrix_fill(&k, attention_number);
        matrix_fill(&v, attention_number);
        for (int i = 0; i < 3; i++) {
            numbers[i] = matrix_create(stream, I32, 1, i == 0 ? BATCH : BATCH + 1, 0, 0);
            matrix_set(&numbers[i], i == 0 ? lengths : i == 1 ? cu_seqlens_q : cu_seqlens_k);
        }
        for (int ends = 0; ends < 4; ends++) {
            harness_describe("mha_%s with lengths%s%s", precision_name(p), ends & 1 ? ", cu_seqlens_q" : "",
                             ends & 2 ? ", cu_seqlens_k" : "");
            for (int64_t b = 0; b < BATCH; b++)
                for (int64_t head = 0; head < HEADS; head++) {
                    int64_t place = (b * HEADS + head) * SIZE, row = ends & 2 ? kv_first[b] : b * ROOM;
                    int64_t key = (row * KV_HEADS + head / 2) * SIZE;
                    attention_query(&s, q.values + place, k.values + key, v.values + key, KV_HEADS * SIZE, 0, 1,
                                    counted[b], expected + place, allowed + place, &lse, &lse_allowed);
                }
            kiln_mha_params params = {.out = out.data,
                                      .q = q.data,
                                      .k = k.data,
                                      .v = v.data,
                                      .seqlens_k = numbers[0].data,
                                      .cu_seqlens_q = ends & 1 ? numbers[1].data : NULL,
                                      .cu_seqlens_k = ends & 2 ? numbers[2].data : NULL,
                                      .tokens = BATCH,
                                      .kv_tokens = BATCH * ROOM,
                                      .batch = BATCH,
                                      .heads = HEADS,
                                      .kv_heads = KV_HEADS,
                                      .head_dim = SIZE,
                                      .max_seqlen_q = ends & 1 ? 1 : 0,
                                      .max_seqlen_k = ends & 2 ? ROOM : 0};
            matrix_poison(&out);
            harness_ok(operator_function(&kiln__operator_mha, p)->call(stream, &params, sizeof params));
            matrix_expect(&out, expected, allowed);
        }
        matrix *all[] = {&q, &k, &v, &out, &numbers[0], &numbers[1], &numbers[2]};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            matrix_destroy(all[i]);
    }
}

/* Sequences beyond the rows that there are, and lengths below zero, as a caller's mistake or a stale buffer has them:
 * whatever is computed, nothing outside of the tensors is read or written. */
static void test_wrong_cu_seqlens(kiln_stream *stream) {
    enum { BATCH = 3, SIZE = 16 };
    static const double wrong[][BATCH + 1] = {{0, 4, 9, 5},
                                              {-7, -3, 2, 1 << 30},
                                              {4, INT32_MAX, INT32_MIN, -1},
                                              {1 << 30, 1 << 30, 1 << 30, 2},
                                              {INT32_MAX, INT32_MIN, INT32_MAX, 5}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            harness_describe("mha_%s with cu_seqlens %.0f %.0f %.0f %.0f", precision_name(p), wrong[i][0], wrong[i][1],
                             wrong[i][2], wrong[i][3]);
            attention_shape s = {.batch = BATCH,
                                 .heads = 2,
                                 .kv_heads = 1,
                                 .size = SIZE,
                                 .seqlens_q = {1, 2, 2},
                                 .seqlens_k = {3, 1, 1},
                                 .place = i % 2 ? AT_END : 0};
            attention_tensors t = attention_create(stream, p, s);
            matrix_set(&t.cu_seqlens_q, wrong[i]);
            matrix_set(&t.cu_seqlens_k, wrong[i]);
            kiln_mha_params params = {.out = t.out.data,
                                      .lse = t.lse.data,
                                      .q = t.q.data,
                                      .k = t.k.data,
                                      .v = t.v.data,
                                      .cu_seqlens_q = t.cu_seqlens_q.data,
                                      .cu_seqlens_k = t.cu_seqlens_k.data,
                                      .tokens = t.q.rows,
                                      .kv_tokens = t.k.rows,
                                      .batch = BATCH,
                                      .heads = s.heads,
                                      .kv_heads = s.kv_heads,
                                      .head_dim = SIZE};
            harness_ok(operator_function(&kiln__operator_mha, p)->call(stream, &params, sizeof params));
            matrix_get(&t.out);
            matrix_get(&t.lse);
            matrix_expect_unchanged(&t.q);
            matrix_expect_unchanged(&t.k);
            matrix_expect_unchanged(&t.v);
            attention_destroy(&t);
        }
}

static void test_queries_of_no_sequence(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int shared = 0; shared < 2; shared++) {
            attention_shape s = attention_unowned(shared);
            attention_describe("mha", p, s);
            attention_tensors t = attention_create(stream, p, s);
            attention_unowned_set(&t);
            call(stream, p, s, &t);
            attention_unowned_expect(&t);
            attention_destroy(&t);
        }
}

/* One key has all of the weight, so that its value is the result to the bit, however large. A NaN in a query, or in a
 * key that a query sees, makes the query's result NaN; of values only the element itself. */
static void test_special_values(kiln_stream *stream) {
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
                                  .head_dim = SIZE,
                                  .causal = 1};
        const kiln_operator_function *function = operator_function(&kiln__operator_mha, p);
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
        {"head_dim", offsetof(kiln_mha_params, head_dim), 257},
        {"tokens", offsetof(kiln_mha_params, tokens), 5},
        {"kv_tokens", offsetof(kiln_mha_params, kv_tokens), 5},
        {"batch", offsetof(kiln_mha_params, batch), 0},
        {"max_seqlen_q", offsetof(kiln_mha_params, max_seqlen_q), 2},
        {"max_seqlen_k", offsetof(kiln_mha_params, max_seqlen_k), 2},
        {"window_left", offsetof(kiln_mha_params, window_left), -1},
        {"window_right", offsetof(kiln_mha_params, window_right), -1},
    };
    const kiln_operator_function *function = operator_function(&kiln__operator_mha, F32);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kiln_mha_params params = *good;
        memcpy((char *)&params + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
        expect_refusal(stream, function, &params, sizeof params, wrong[i].names);
    }
    kiln_mha_params params = *good;
    params.causal = 1;
    params.window_right = 2;
    expect_refusal(stream, function, &params, sizeof params, "window_right");
    params = *good;
    params.softcap = -1;
    expect_refusal(stream, function, &params, sizeof params, "softcap");
}

static void refuse_workspaces(kiln_stream *stream, const kiln_mha_params *good) {
    const kiln_operator_function *function = operator_function(&kiln__operator_mha, F32);
    kiln_mha_params params = *good;
    size_t size;
    params.tokens = params.batch = 1;
    params.kv_tokens = 1024;
    params.heads = params.kv_heads = 1;
    harness_ok(function->workspace_size(stream, &params, sizeof params, &size));
    assert_true(size > 0);
    params.workspace_size = size;
    expect_refusal(stream, function, &params, sizeof params, "workspace");
    params.workspace = (char *)params.out + 4;
    expect_refusal(stream, function, &params, sizeof params, "workspace");
    params.workspace = params.out;
    params.workspace_size = size - 1;
    expect_refusal(stream, function, &params, sizeof params, "workspace_size");
    params.workspace_size = 0;
    expect_refusal(stream, function, &params, sizeof params, "or 0 without a workspace");
}

static void test_refusals(kiln_stream *stream) {
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
                                  .head_dim = 8};
    refuse_numbers(stream, &good);
    refuse_workspaces(stream, &good);
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_special_values),
        on_each_device(test_lengths),
        on_each_device(test_wrong_cu_seqlens),
        on_each_device(test_queries_of_no_sequence),
        on_each_device(test_random),
        on_each_device(test_plain),
        on_each_device(test_tiles),
        on_each_device(test_many_tiles),
        on_each_device(test_many_heads),
        on_each_device(test_edges),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
