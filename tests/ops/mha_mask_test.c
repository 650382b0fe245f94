/* mha with a mask that is added to its scores, against f64. */
#include "tests/ops/attention.h"
#include <math.h>
#include <string.h>

/* A mask of a call: for each sequence and head, or for all of them. */
typedef struct mask {
    int64_t batch, heads, rows, cols;
    matrix values;
} mask;

/* How a mask is made: for each sequence, for each head, with rows on 16 bytes. */
enum { EACH_SEQUENCE = 1, EACH_HEAD = 2, WIDE = 4 };

/* Numbers, keys that are left out, one by one and as a whole tile, and a query that sees none. */
static mask mask_create(kiln_stream *stream, precision p, attention_shape s, int how) {
    mask m = {how & EACH_SEQUENCE ? s.batch : 1, how & EACH_HEAD ? s.heads : 1,
              attention_longest(s.seqlens_q, s.batch) + random_integer(0, 2),
              attention_longest(s.seqlens_k, s.batch) + random_integer(0, 2) * random_integer(1, 7), .values = {0}};
    if (how & WIDE) m.cols = (m.cols + 7) / 8 * 8;
    m.values = matrix_create(stream, p, m.batch * m.heads * m.rows, m.cols, 0, how & WIDE ? 0 : random_place());
    for (int64_t row = 0; row < m.values.rows; row++) {
        const int64_t tile = random_integer(0, m.cols), blind = random_integer(0, 15);
        for (int64_t key = 0; key < m.cols; key++) {
            const bool out = !blind || !random_integer(0, 3) || (blind < 4 && key / 64 == tile / 64);
            m.values.values[row * m.cols + key] = out ? -INFINITY : random_number(-4, 4);
        }
    }
    matrix_set(&m.values, m.values.values);
    return m;
}

static const double *mask_row(const mask *m, int64_t b, int64_t head, int64_t query) {
    const int64_t plane = (m->batch > 1 ? b : 0) * m->heads + (m->heads > 1 ? head : 0);
    return m->values.values + (plane * m->rows + query) * m->cols;
}

static void reference(attention_shape s, const mask *m, attention_tensors *t) {
    const int64_t tokens = t->q.rows;
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t query = 0; query < s.seqlens_q[b]; query++)
            for (int64_t head = 0; head < s.heads; head++) {
                const int64_t token = attention_total(s.seqlens_q, b) + query;
                const int64_t place = token * t->q.cols + head * s.size;
                const int64_t key =
                    attention_total(s.seqlens_k, b) * t->k.cols + head / (s.heads / s.kv_heads) * s.size;
                s.mask = mask_row(m, b, head, query);
                attention_query(&s, t->q.values + place, t->k.values + key, t->v.values + key, t->k.cols, query,
                                s.seqlens_q[b], s.seqlens_k[b], t->expected + place, t->allowed + place,
                                &t->lses[head * tokens + token], &t->lses_allowed[head * tokens + token]);
            }
}

static kiln_mha_params masked(const attention_tensors *t, attention_shape s, const mask *m) {
    kiln_mha_params params = attention_mha_params(t, s);
    params.mask = m->values.data;
    params.mask_batch = m->batch;
    params.mask_heads = m->heads;
    params.mask_rows = m->rows;
    params.mask_cols = m->cols;
    return params;
}

static void run(kiln_stream *stream, precision p, attention_shape s, int how) {
    attention_describe(how & EACH_HEAD ? "mha masked by head:" : "mha masked:", p, s);
    attention_tensors t = attention_create(stream, p, s);
    mask m = mask_create(stream, p, s, how);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha, p);
    matrix workspace = {0};
    s.rounding = attention_rounding(stream, p, s.portable);
    if (harness_needs_reference()) reference(s, &m, &t);
    kiln_mha_params params = masked(&t, s, &m);
    if (s.workspace) {
        harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
        workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
        if (params.workspace_size) params.workspace = workspace.data;
    }
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect(&t.out, t.expected, t.allowed);
    if (s.lse) matrix_expect(&t.lse, t.lses, t.lses_allowed);
    matrix_expect_unchanged(&m.values);
    if (s.workspace) matrix_destroy(&workspace);
    matrix_destroy(&m.values);
    attention_destroy(&t);
}

static void test_random(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++)
            run(stream, p, attention_random_shape(), i);
}

/* Several tiles of rows and of keys by each kernel that knows masks, and few queries whose keys are shared. */
static void test_tiles(kiln_stream *stream) {
    static const int64_t sizes[] = {64, 96, 128, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += p == F32 ? 2 : 1) {
            attention_shape s = attention_plain(random_integer(40, 50), random_integer(130, 200), 4, 2, sizes[i]);
            s.softcap = i % 2 ? 15 : 0;
            s.scale = i % 2 ? 0.3 : 0;
            s.left = i == 2 ? 90 : 0;
            run(stream, p, s, i % 2 ? EACH_HEAD : WIDE);
            s = attention_plain(i == 2 ? 70 : 1, i == 2 ? 131 : 520, 4, 2, sizes[i]);
            s.lse = s.workspace = true;
            if (i) run(stream, p, s, i == 1 ? 0 : EACH_HEAD);
        }
}

/* Heads that a mask leaves tiles of keys out for, beside others that see them. */
static void test_tiles_of_some_heads(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        run(stream, p, attention_plain(1, 200, 16, 16, 32), EACH_HEAD);
}

/* A mask of -inf behind the diagonal is causal, to the bit. NaNs among keys that it leaves out are not seen. */
static void test_causal(kiln_stream *stream) {
    enum { QUERIES = 37, KEYS = 70 };
    for (precision p = precision_first(); p < precision_end(); p++) {
        attention_shape s = attention_plain(QUERIES, KEYS, 2, 1, 64);
        attention_describe("mha causal by its mask:", p, s);
        s.portable = true;
        attention_tensors t = attention_create(stream, p, s);
        mask m = {1, 1, QUERIES, KEYS, matrix_create(stream, p, QUERIES, KEYS, 0, AT_END)};
        for (int64_t i = 0; i < QUERIES * KEYS; i++)
            m.values.values[i] = i % KEYS > i / KEYS + KEYS - QUERIES ? -INFINITY : 0;
        matrix_set(&m.values, m.values.values);
        kiln_mha_params params = attention_mha_params(&t, s);
        params.causal = 1;
        const kiln_operator_function *function = operator_function(&kiln__operator_mha, p);
        harness_ok(function->call(stream, &params, sizeof params));
        matrix_get(&t.out);
        memcpy(t.expected, t.out.values, sizeof(double) * (size_t)(t.out.rows * t.out.cols));
        params = masked(&t, s, &m);
        matrix_poison(&t.out);
        harness_ok(function->call(stream, &params, sizeof params));
        matrix_expect_exact(&t.out, t.expected);

        harness_describe("mha_%s with NaNs behind its mask", precision_name(p));
        params.tokens = 1;
        params.kernel = KILN_MHA_KERNEL_AUTO;
        for (int64_t d = 0; d < 64; d++)
            t.k.values[(KEYS - 2) * 64 + d] = (double)NAN;
        matrix_set(&t.k, t.k.values);
        matrix_poison(&t.out);
        harness_ok(function->call(stream, &params, sizeof params));
        matrix_get(&t.out);
        for (int64_t d = 0; d < 2 * 64; d++)
            assert_true(fabs(t.out.values[d]) < INFINITY);
        matrix_destroy(&m.values);
        attention_destroy(&t);
    }
}

static void test_refusals(kiln_stream *stream) {
    static const struct {
        const char *names;
        size_t offset;
        int64_t value;
    } wrong[] = {
        {"mask_batch", offsetof(kiln_mha_params, mask_batch), 3},
        {"mask_heads", offsetof(kiln_mha_params, mask_heads), 2},
        {"mask_heads", offsetof(kiln_mha_params, mask_heads), 0},
        {"mask_rows", offsetof(kiln_mha_params, mask_rows), 1},
        {"mask_cols", offsetof(kiln_mha_params, mask_cols), 2},
        {"mask_cols", offsetof(kiln_mha_params, mask_cols), -1},
    };
    harness_describe("masks refused");
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha, F32);
    const kiln_mha_params good = {.out = x.data,
                                  .q = x.data,
                                  .k = x.data,
                                  .v = x.data,
                                  .tokens = 4,
                                  .kv_tokens = 6,
                                  .batch = 2,
                                  .heads = 6,
                                  .kv_heads = 3,
                                  .head_dim = 8,
                                  .mask = x.data,
                                  .mask_batch = 2,
                                  .mask_heads = 1,
                                  .mask_rows = 2,
                                  .mask_cols = 3};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kiln_mha_params params = good;
        memcpy((char *)&params + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
        expect_refusal(stream, function, &params, sizeof params, wrong[i].names);
    }
    kiln_mha_params params = good;
    params.mask = (const char *)x.data + 2;
    expect_refusal(stream, function, &params, sizeof params, "mask");
    params = good;
    params.compute = KILN_MHA_COMPUTE_FP8;
    expect_refusal(stream, function, &params, sizeof params, "must be NULL unless compute is part (0)");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_random), on_each_device(test_tiles),   on_each_device(test_tiles_of_some_heads),
        on_each_device(test_causal), on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
