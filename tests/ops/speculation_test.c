/* What docs/speculative-decoding.md puts together from several operators: tokens that are sampled through a tree are
 * those of sampling one by one; draft ids become the target's in a lookup; three hidden states side by side. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VOCABULARY = 24, NODES = 13, DEPTH = 4, SEQUENCES = 5 };

static double any_number(void) {
    return random_number(-2, 2);
}

static double any_logit(void) {
    return random_number(-3, 3);
}

/* ---- Sampling through a tree ---- */

/* Three tokens behind the root, and two behind each of their first two; one more behind those. */
static const double parents[NODES] = {-1, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7};
static const int64_t levels[NODES] = {0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3};

typedef struct trees {
    matrix model;           /* logits behind each token, and behind the root */
    matrix logits, targets; /* of each node */
    matrix tokens, parents, seeds, positions;
    matrix path, accepted, next;
} trees;

static trees make_trees(kiln_stream *stream, precision p) {
    return (trees){.model = matrix_create(stream, p, VOCABULARY + 1, VOCABULARY, 0, 0),
                   .logits = matrix_create(stream, p, SEQUENCES * NODES, VOCABULARY, 0, 0),
                   .targets = matrix_create(stream, I32, SEQUENCES, NODES, 0, AT_END),
                   .tokens = matrix_create(stream, I32, SEQUENCES, NODES, 0, AT_END),
                   .parents = matrix_create(stream, I32, 1, NODES, 0, AT_END),
                   .seeds = matrix_create(stream, I64, SEQUENCES, NODES, 0, AT_END),
                   .positions = matrix_create(stream, I32, SEQUENCES, NODES, 0, AT_END),
                   .path = matrix_create(stream, I32, SEQUENCES, DEPTH, 0, AT_END),
                   .accepted = matrix_create(stream, I32, 1, SEQUENCES, 0, AT_END),
                   .next = matrix_create(stream, I32, 1, SEQUENCES, 0, AT_END)};
}

static void destroy_trees(trees *t) {
    matrix *all[] = {&t->model, &t->logits,    &t->targets, &t->tokens,   &t->parents,
                     &t->seeds, &t->positions, &t->path,    &t->accepted, &t->next};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
}

/* Tokens that are likely to be drawn: the greatest logits behind the parent's token, at times another. */
static double draft_token(const trees *t, int64_t sequence, int64_t node) {
    double before = t->tokens.values[sequence * NODES + (int64_t)parents[node]];
    const double *row = t->model.values + (int64_t)before * VOCABULARY;
    int64_t best = 0;
    if (random_integer(0, 3) == 0) return (double)random_integer(0, VOCABULARY - 1);
    for (int64_t i = 1; i < VOCABULARY; i++)
        if (row[i] > row[best]) best = i;
    return (double)(node % 2 ? best : (best + 1) % VOCABULARY);
}

static void fill_trees(trees *t) {
    matrix_fill(&t->model, any_logit);
    matrix_set(&t->parents, parents);
    for (int64_t i = 0; i < SEQUENCES * NODES; i++) {
        int64_t sequence = i / NODES, node = i % NODES;
        t->tokens.values[i] = node ? draft_token(t, sequence, node) : (double)VOCABULARY; /* the model's last row */
        t->seeds.values[i] = (double)(1000 + sequence);
        t->positions.values[i] = (double)(70 + 3 * sequence + levels[node]);
        memcpy(t->logits.values + i * VOCABULARY, t->model.values + (int64_t)t->tokens.values[i] * VOCABULARY,
               VOCABULARY * sizeof *t->logits.values);
    }
    matrix_set(&t->tokens, t->tokens.values);
    matrix_set(&t->seeds, t->seeds.values);
    matrix_set(&t->positions, t->positions.values);
    matrix_set(&t->logits, t->logits.values);
}

static const kiln_sample_params sampling = {.cols = VOCABULARY, .temperature = 0.5f, .top_p = 0.9f};

static void verify(kiln_stream *stream, precision p, trees *t) {
    kiln_sample_params sample = sampling;
    sample.y = t->targets.data;
    sample.x = t->logits.data;
    sample.rows = SEQUENCES * NODES;
    sample.row_seed = t->seeds.data;
    sample.row_position = t->positions.data;
    const kiln_tree_accept_params accept = {.path = t->path.data,
                                            .accepted = t->accepted.data,
                                            .next = t->next.data,
                                            .targets = t->targets.data,
                                            .tokens = t->tokens.data,
                                            .parents = t->parents.data,
                                            .batch = SEQUENCES,
                                            .nodes = NODES,
                                            .depth = DEPTH,
                                            .trees = 1};
    harness_ok(operator_function(&kiln__operator_sample, p)->call(stream, &sample, sizeof sample));
    harness_ok(operator_function(&kiln__operator_tree_accept, p)->call(stream, &accept, sizeof accept));
    matrix_get(&t->path);
    matrix_get(&t->accepted);
    matrix_get(&t->next);
}

/* The token that a sequence draws behind another at a position, by itself. */
static double draw_one(kiln_stream *stream, precision p, const trees *t, double before, double seed, double position) {
    matrix drawn = matrix_create(stream, I32, 1, 1, 0, 0), seeds = matrix_create(stream, I64, 1, 1, 0, 0);
    kiln_sample_params sample = sampling;
    matrix_set(&seeds, &seed);
    sample.y = drawn.data;
    sample.x = (char *)t->model.data + (size_t)before * VOCABULARY * precision_size(p);
    sample.rows = 1;
    sample.row_seed = seeds.data;
    sample.position = (int64_t)position;
    harness_ok(operator_function(&kiln__operator_sample, p)->call(stream, &sample, sizeof sample));
    matrix_get(&drawn);
    double token = drawn.values[0];
    matrix_destroy(&drawn);
    matrix_destroy(&seeds);
    return token;
}

static void test_sampling(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("tokens sampled through trees in %s", precision_name(p));
        trees t = make_trees(stream, p);
        fill_trees(&t);
        verify(stream, p, &t);
        for (int64_t sequence = 0; sequence < SEQUENCES; sequence++) {
            double before = VOCABULARY, position = 70 + 3 * (double)sequence;
            for (int64_t i = 1; (double)i <= t.accepted.values[sequence]; i++, position++) {
                int64_t node = i < DEPTH ? (int64_t)t.path.values[sequence * DEPTH + i] : -1;
                double token = node >= 0 ? t.tokens.values[sequence * NODES + node] : t.next.values[sequence];
                double alone = draw_one(stream, p, &t, before, 1000 + (double)sequence, position);
                if (token != alone)
                    harness_fail("sequence %lld: token %lld is %g, drawn alone %g", (long long)sequence, (long long)i,
                                 token, alone);
                before = token;
            }
        }
        destroy_trees(&t);
    }
}

/* ---- A draft's vocabulary ---- */

/* Bits of a table of ids are copied as those of any other row. */
static void test_vocabulary_map(kiln_stream *stream) {
    harness_describe("ids looked up as rows of one element");
    enum { DRAFT = 300, COUNT = 77 };
    matrix table = matrix_create(stream, I32, DRAFT, 1, 0, 0), ids = matrix_create(stream, I32, 1, COUNT, 0, 0);
    matrix mapped = matrix_create(stream, I32, 1, COUNT, 0, AT_END);
    double expected[COUNT];
    for (int64_t i = 0; i < DRAFT; i++)
        table.values[i] = (double)(i % 7 ? random_integer(0, 200000) : random_integer(INT32_MAX - 5, INT32_MAX));
    matrix_set(&table, table.values);
    for (int64_t i = 0; i < COUNT; i++) {
        ids.values[i] = (double)random_integer(0, DRAFT - 1);
        expected[i] = table.values[(int64_t)ids.values[i]];
    }
    matrix_set(&ids, ids.values);
    const kiln_embedding_params params = {
        .y = mapped.data, .table = table.data, .ids = ids.data, .rows = COUNT, .cols = 1, .vocabulary = DRAFT};
    harness_ok(kiln_embedding_f32(stream, &params));
    matrix_expect_exact(&mapped, expected);
    matrix_destroy(&table);
    matrix_destroy(&ids);
    matrix_destroy(&mapped);
}

/* ---- Hidden states ---- */

/* Three layers leave their residual streams in the thirds of wider rows, and one product takes them all. */
static void test_fusion(kiln_stream *stream) {
    enum { TOKENS = 5, HIDDEN = 24, OUT = 16 };
    harness_describe("hidden states of three layers side by side");
    matrix states = matrix_create(stream, F32, TOKENS, 3 * HIDDEN, 0, 0);
    matrix weights = matrix_create(stream, F32, OUT, 3 * HIDDEN, 0, 0),
           y = matrix_create(stream, F32, TOKENS, OUT, 0, 0);
    matrix x = matrix_create(stream, F32, TOKENS, HIDDEN, 0, 0),
           residual = matrix_create(stream, F32, TOKENS, HIDDEN, 0, 0);
    matrix normed = matrix_create(stream, F32, TOKENS, HIDDEN, 0, 0);
    double all[TOKENS * 3 * HIDDEN], expected[TOKENS * OUT], allowed[TOKENS * OUT];
    matrix_fill(&weights, any_number);
    for (int layer = 0; layer < 3; layer++) {
        matrix_fill(&x, any_number);
        matrix_fill(&residual, any_number);
        const kiln_add_rmsnorm_params params = {.y = normed.data,
                                                .sum = (float *)states.data + layer * HIDDEN,
                                                .x = x.data,
                                                .residual = residual.data,
                                                .rows = TOKENS,
                                                .cols = HIDDEN,
                                                .sum_stride = 3 * HIDDEN,
                                                .eps = 1e-5f};
        harness_ok(kiln_add_rmsnorm_f32(stream, &params));
        matrix_get(&normed);
        for (int64_t i = 0; i < TOKENS * HIDDEN; i++)
            all[i / HIDDEN * 3 * HIDDEN + layer * HIDDEN + i % HIDDEN] =
                (double)((float)x.values[i] + (float)residual.values[i]);
    }
    matrix_expect_exact(&states, all);
    for (int64_t i = 0; i < TOKENS * OUT; i++) {
        expected[i] = allowed[i] = 0;
        for (int64_t k = 0; k < 3 * HIDDEN; k++) {
            double product = all[i / OUT * 3 * HIDDEN + k] * weights.values[i % OUT * 3 * HIDDEN + k];
            expected[i] += product;
            allowed[i] += 1e-5 * fabs(product);
        }
    }
    const kiln_gemm_params product = {
        .d = y.data, .a = states.data, .b = weights.data, .batch = 1, .m = TOKENS, .n = OUT, .k = 3 * HIDDEN};
    harness_ok(kiln_gemm_f32(stream, &product));
    matrix_expect(&y, expected, allowed);
    matrix *made[] = {&states, &weights, &y, &x, &residual, &normed};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        matrix_destroy(made[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_sampling),
        on_each_device(test_vocabulary_map),
        on_each_device(test_fusion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
