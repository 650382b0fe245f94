/* What docs/engram.md puts together: a layer of Engram's in f32, from tokens to what is added to the hidden state,
 * against f64; and the same token by token, with what is kept of each sequence. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

enum { BATCH = 2, LENGTH = 11, ORDERS = 2, HEADS = 3, HEAD = 8, GROUPS = 2, COLS = 12, VOCABULARY = 30 };
enum {
    TOKENS = BATCH * LENGTH,
    COLUMNS = ORDERS * HEADS,
    EMBEDDING = COLUMNS * HEAD,
    PRODUCT = (GROUPS + 1) * COLS,
    CHANNELS = GROUPS * COLS,
    ROWS = 131 /* of all tables */
};

static const double primes[COLUMNS] = {13, 17, 19, 23, 29, 30}, offsets[COLUMNS] = {0, 13, 30, 49, 72, 101};
static const double multipliers[ORDERS + 1] = {1000003, 7919, 104729};
enum { PAD = 2 };

static double any_number(void) {
    return random_number(-1, 1);
}

/* ---- A layer ----------------------------------------------------------------------------------------------------- */

typedef struct layer {
    matrix lookup, multipliers, primes, offsets, table, weight, key_weight, query_weight, norm_weight, taps;
    matrix ids, hidden, result; /* of all tokens */
} layer;

static layer layer_create(kiln_stream *stream) {
    layer l = {.lookup = matrix_create(stream, I32, 1, VOCABULARY, 0, 0),
               .multipliers = matrix_create(stream, I64, 1, ORDERS + 1, 0, 0),
               .primes = matrix_create(stream, I64, 1, COLUMNS, 0, 0),
               .offsets = matrix_create(stream, I64, 1, COLUMNS, 0, 0),
               .table = matrix_create(stream, F32, ROWS, HEAD, 0, 0),
               .weight = matrix_create(stream, F32, PRODUCT, EMBEDDING, 0, 0),
               .key_weight = matrix_create(stream, F32, 1, CHANNELS, 0, 0),
               .query_weight = matrix_create(stream, F32, 1, CHANNELS, 0, 0),
               .norm_weight = matrix_create(stream, F32, 1, CHANNELS, 0, 0),
               .taps = matrix_create(stream, F32, 4, CHANNELS, 0, 0),
               .ids = matrix_create(stream, I32, 1, TOKENS, 0, 0),
               .hidden = matrix_create(stream, F32, TOKENS, CHANNELS, 0, 0),
               .result = matrix_create(stream, F32, TOKENS, CHANNELS, 0, 0)};
    matrix *random[] = {&l.table, &l.weight, &l.key_weight, &l.query_weight, &l.norm_weight, &l.taps, &l.hidden};
    for (size_t i = 0; i < sizeof random / sizeof *random; i++)
        matrix_fill(random[i], any_number);
    for (int64_t i = 0; i < VOCABULARY; i++)
        l.lookup.values[i] = (double)random_integer(0, VOCABULARY - 1);
    for (int64_t i = 0; i < TOKENS; i++)
        l.ids.values[i] = (double)random_integer(0, VOCABULARY - 1);
    matrix_set(&l.lookup, l.lookup.values);
    matrix_set(&l.ids, l.ids.values);
    matrix_set(&l.multipliers, multipliers);
    matrix_set(&l.primes, primes);
    matrix_set(&l.offsets, offsets);
    return l;
}

static void layer_destroy(layer *l) {
    matrix *all[] = {&l->lookup,       &l->multipliers, &l->primes, &l->offsets, &l->table,  &l->weight, &l->key_weight,
                     &l->query_weight, &l->norm_weight, &l->taps,   &l->ids,     &l->hidden, &l->result};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
}

/* The calls of some tokens of each sequence. history and states: of what came before, or NULL. */
static void run_layer(kiln_stream *stream, const layer *l, int64_t tokens, const void *ids, const void *hidden,
                      const void *history, void *states, void *result) {
    matrix rows = matrix_create(stream, I64, 1, tokens * COLUMNS, 0, 0);
    matrix embeddings = matrix_create(stream, F32, tokens, EMBEDDING, 0, 0);
    matrix product = matrix_create(stream, F32, tokens, PRODUCT, 0, 0);
    matrix gated = matrix_create(stream, F32, tokens, CHANNELS, 0, 0);
    matrix normed = matrix_create(stream, F32, tokens, CHANNELS, 0, 0);
    kiln_engram_hash_params hash = {.rows = rows.data,
                                    .ids = ids,
                                    .history = history,
                                    .lookup = l->lookup.data,
                                    .multipliers = l->multipliers.data,
                                    .primes = l->primes.data,
                                    .offsets = l->offsets.data,
                                    .tokens = tokens,
                                    .batch = BATCH,
                                    .layers = 1,
                                    .orders = ORDERS,
                                    .heads = HEADS,
                                    .vocabulary = VOCABULARY,
                                    .pad_id = PAD};
    harness_ok(kiln_engram_hash_f32(stream, &hash));
    kiln_embedding_params lookup = {.y = embeddings.data,
                                    .table = l->table.data,
                                    .ids = rows.data,
                                    .rows = tokens * COLUMNS,
                                    .cols = HEAD,
                                    .vocabulary = ROWS,
                                    .index_type = KILN_INDEX_I64};
    harness_ok(kiln_embedding_f32(stream, &lookup));
    kiln_gemm_params gemm = {.d = product.data,
                             .a = embeddings.data,
                             .b = l->weight.data,
                             .batch = 1,
                             .m = tokens,
                             .n = PRODUCT,
                             .k = EMBEDDING};
    harness_ok(kiln_gemm_f32(stream, &gemm));
    kiln_engram_gate_params gate = {.y = gated.data,
                                    .normed = normed.data,
                                    .key = product.data,
                                    .query = hidden,
                                    .value = (const float *)product.data + CHANNELS,
                                    .key_weight = l->key_weight.data,
                                    .query_weight = l->query_weight.data,
                                    .norm_weight = l->norm_weight.data,
                                    .tokens = tokens,
                                    .groups = GROUPS,
                                    .cols = COLS,
                                    .key_stride = PRODUCT,
                                    .value_stride = PRODUCT};
    harness_ok(kiln_engram_gate_f32(stream, &gate));
    kiln_causal_conv1d_params convolution = {.y = result,
                                             .final_states = states,
                                             .x = normed.data,
                                             .weight = l->taps.data,
                                             .residual = gated.data,
                                             .initial_states = states,
                                             .tokens = tokens,
                                             .channels = CHANNELS,
                                             .batch = BATCH,
                                             .width = 4,
                                             .dilation = 3,
                                             .activation = KILN_CONV_SILU};
    harness_ok(kiln_causal_conv1d_f32(stream, &convolution));
    harness_ok(kiln_stream_sync(stream));
    matrix *all[] = {&rows, &embeddings, &product, &gated, &normed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
}

/* ---- The reference ----------------------------------------------------------------------------------------------- */

static double embedding_of(const layer *l, int64_t token, int64_t i) {
    int64_t column = i / HEAD, order = column / HEADS, place = token % LENGTH;
    uint64_t mix = 0;
    for (int64_t k = 0; k <= order + 1; k++) {
        int64_t id = k <= place ? (int64_t)l->ids.values[token - k] : PAD;
        mix ^= (uint64_t)l->lookup.values[id] * (uint64_t)multipliers[k];
    }
    int64_t row = (int64_t)offsets[column] + (int64_t)(mix % (uint64_t)primes[column]);
    return l->table.values[row * HEAD + i % HEAD];
}

/* 1 / the root of the mean of the squares. */
static double norm_of(const double *x, double eps) {
    double squares = 0;
    for (int64_t i = 0; i < COLS; i++)
        squares += x[i] * x[i];
    return 1 / sqrt(squares / (double)COLS + eps);
}

/* y and its norm, of one token. */
static void gate_token(const layer *l, int64_t token, double *y, double *normed) {
    double product[PRODUCT] = {0};
    for (int64_t n = 0; n < PRODUCT; n++)
        for (int64_t i = 0; i < EMBEDDING; i++)
            product[n] += l->weight.values[n * EMBEDDING + i] * embedding_of(l, token, i);
    for (int64_t at = 0; at < CHANNELS; at += COLS) {
        const double *key = product + at, *query = l->hidden.values + token * CHANNELS + at;
        double g = 0;
        for (int64_t i = 0; i < COLS; i++)
            g += key[i] * query[i] * l->key_weight.values[at + i] * l->query_weight.values[at + i];
        g *= norm_of(key, 1e-6) * norm_of(query, 1e-6) / sqrt(COLS);
        double gate = 1 / (1 + exp(-copysign(sqrt(fmax(fabs(g), 1e-6)), g)));
        for (int64_t i = 0; i < COLS; i++)
            y[at + i] = gate * product[CHANNELS + i];
        double norm = norm_of(y + at, 1e-5);
        for (int64_t i = 0; i < COLS; i++)
            normed[at + i] = y[at + i] * norm * l->norm_weight.values[at + i];
    }
}

static void reference(const layer *l, double *expected) {
    static double y[TOKENS][CHANNELS], normed[TOKENS][CHANNELS];
    for (int64_t token = 0; token < TOKENS; token++)
        gate_token(l, token, y[token], normed[token]);
    for (int64_t i = 0; i < TOKENS * CHANNELS; i++) {
        int64_t token = i / CHANNELS, channel = i % CHANNELS;
        double sum = 0;
        for (int64_t k = 0; k < 4; k++) {
            int64_t before = 3 * (3 - k);
            if (before <= token % LENGTH)
                sum += l->taps.values[k * CHANNELS + channel] * normed[token - before][channel];
        }
        expected[i] = y[token][channel] + sum / (1 + exp(-sum));
    }
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

/* Gates are near where their root is steep: their error is that of a product's square root. */
static void expect(matrix *result, const double *expected) {
    double allowed[TOKENS * CHANNELS];
    for (int64_t i = 0; i < TOKENS * CHANNELS; i++)
        allowed[i] = 1e-3;
    matrix_expect(result, expected, allowed);
}

static void test_whole(kiln_stream *stream) {
    static double expected[TOKENS * CHANNELS];
    harness_describe("a layer of Engram's");
    layer l = layer_create(stream);
    run_layer(stream, &l, TOKENS, l.ids.data, l.hidden.data, NULL, NULL, l.result.data);
    reference(&l, expected);
    expect(&l.result, expected);
    layer_destroy(&l);
}

static void test_decode(kiln_stream *stream) {
    static double expected[TOKENS * CHANNELS];
    enum { STATE = BATCH * 9 };
    harness_describe("a layer of Engram's, token by token");
    layer l = layer_create(stream);
    matrix ids = matrix_create(stream, I32, 1, BATCH, 0, 0), history = matrix_create(stream, I32, BATCH, ORDERS, 0, 0);
    matrix hidden = matrix_create(stream, F32, BATCH, CHANNELS, 0, 0),
           y = matrix_create(stream, F32, BATCH, CHANNELS, 0, 0);
    matrix states = matrix_create(stream, F32, STATE, CHANNELS, 0, 0);
    for (int64_t i = 0; i < STATE * CHANNELS; i++)
        states.values[i] = 0;
    matrix_set(&states, states.values);
    reference(&l, expected);
    for (int64_t t = 0; t < LENGTH; t++) {
        for (int64_t b = 0; b < BATCH; b++) {
            ids.values[b] = l.ids.values[b * LENGTH + t];
            for (int64_t i = 0; i < ORDERS; i++)
                history.values[b * ORDERS + i] =
                    t - ORDERS + i < 0 ? (double)PAD : l.ids.values[b * LENGTH + t - ORDERS + i];
            for (int64_t i = 0; i < CHANNELS; i++)
                hidden.values[b * CHANNELS + i] = l.hidden.values[(b * LENGTH + t) * CHANNELS + i];
        }
        matrix_set(&ids, ids.values);
        matrix_set(&history, history.values);
        matrix_set(&hidden, hidden.values);
        run_layer(stream, &l, BATCH, ids.data, hidden.data, history.data, states.data, y.data);
        matrix_get(&y);
        for (int64_t i = 0; i < BATCH * CHANNELS; i++)
            l.result.values[(i / CHANNELS * LENGTH + t) * CHANNELS + i % CHANNELS] = y.values[i];
    }
    matrix_set(&l.result, l.result.values);
    expect(&l.result, expected);
    matrix *all[] = {&ids, &history, &hidden, &y, &states};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    layer_destroy(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {on_each_device(test_whole), on_each_device(test_decode)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
