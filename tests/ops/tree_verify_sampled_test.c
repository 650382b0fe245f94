/* tree_verify_sampled against kiln_tree_verify_sampled, whose results it has exactly; and what comes of many sequences
 * against the model's distribution, by chi-square. */
#include "tests/ops/harness.h"
#include <kiln/tree.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int64_t batch, nodes, depth, vocabulary, padding, place; /* depth 0: that of the tree */
    bool drawn, seeded, chain, wide_positions, wide_tokens;
} shape;

enum { NODES_MOST = 64 };

/* What a call reads and writes. */
typedef struct verification {
    shape s;
    precision p;
    const kiln_tree *tree;
    matrix target, draft, tokens, parents, seeds, positions, path, accepted, next;
    int64_t seed, position;
} verification;

/* ---- Distributions ----------------------------------------------------------------------------------------------- */

/* Many tokens have none of it, and few much. */
static void fill_rows(matrix *m) {
    for (int64_t row = 0; row < m->rows; row++) {
        double sum = 0, *values = m->values + row * m->cols;
        for (int64_t i = 0; i < m->cols; i++)
            sum += values[i] = random_integer(0, 2) ? pow(random_number(0, 1), 8) : 0;
        values[random_integer(0, m->cols - 1)] += 0.1, sum += 0.1;
        for (int64_t i = 0; i < m->cols; i++)
            values[i] /= sum;
        /* Now and then numbers that are none of probabilities: they count as 0, or as 1. */
        static const double odd[] = {NAN, -0.5, -0.0, 1.5, INFINITY, -INFINITY};
        if (m->cols > 50 && random_integer(0, 3) == 0)
            values[random_integer(0, m->cols - 1)] = odd[random_integer(0, 5)];
    }
    matrix_set(m, m->values);
}

static int64_t draw_from(const double *row, int64_t count) {
    double rest = random_number(0, 1);
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        if (row[i] == 0) continue;
        last = i;
        if (rest < row[i]) break;
        rest -= row[i];
    }
    return last;
}

/* ---- A call ------------------------------------------------------------------------------------------------------ */

static verification verification_create(kiln_stream *stream, precision p, shape s) {
    verification v = {.s = s, .p = p, .seed = random_integer(0, 1 << 30), .position = random_integer(0, 99)};
    int32_t parents[NODES_MOST] = {-1};
    for (int64_t i = 1; i < s.nodes; i++)
        parents[i] = (int32_t)(s.chain ? i - 1 : random_integer(i > 4 ? i - 4 : 0, i - 1));
    harness_ok(kiln_tree_create(parents, (int32_t)s.nodes, &v.tree));
    if (!v.s.depth) v.s.depth = v.tree->depth;
    int64_t rows = s.batch * s.nodes;
    v.target = matrix_create(stream, p, rows, s.vocabulary, s.vocabulary + s.padding, s.place);
    v.draft = matrix_create(stream, p, rows, s.vocabulary, 0, AT_END);
    v.tokens = matrix_create(stream, s.wide_tokens ? I64 : I32, s.batch, s.nodes, 0, AT_END);
    v.parents = matrix_create(stream, I32, 1, s.nodes, 0, AT_END);
    v.seeds = matrix_create(stream, I64, 1, s.batch, 0, AT_END);
    v.positions = matrix_create(stream, s.wide_positions ? I64 : I32, 1, s.batch, 0, AT_END);
    v.path = matrix_create(stream, I32, s.batch, v.s.depth, 0, AT_END);
    v.accepted = matrix_create(stream, I32, 1, s.batch, 0, AT_END);
    v.next = matrix_create(stream, I32, 1, s.batch, 0, AT_END);
    fill_rows(&v.target);
    fill_rows(&v.draft);
    /* Now and then the draft is the model, and all are accepted. */
    if (random_integer(0, 9) == 0) matrix_set(&v.draft, v.target.values);
    for (int64_t i = 0; i < rows; i++) {
        int64_t node = i % s.nodes;
        const double *row = v.draft.values + (i - node + (node ? parents[node] : 0)) * s.vocabulary;
        v.tokens.values[i] = (double)draw_from(row, s.vocabulary);
        if (random_integer(0, 19) == 0) v.tokens.values[i] = random_integer(0, 1) ? -1 : (double)s.vocabulary;
    }
    matrix_set(&v.tokens, v.tokens.values);
    for (int64_t i = 0; i < s.nodes; i++)
        v.parents.values[i] = parents[i];
    matrix_set(&v.parents, v.parents.values);
    for (int64_t i = 0; i < s.batch; i++) {
        v.seeds.values[i] = (double)random_integer(-(1 << 30), 1 << 30);
        v.positions.values[i] = (double)random_integer(0, 1 << 20);
    }
    matrix_set(&v.seeds, v.seeds.values);
    matrix_set(&v.positions, v.positions.values);
    return v;
}

static void verification_destroy(verification *v) {
    matrix *all[] = {&v->target,    &v->draft, &v->tokens,   &v->parents, &v->seeds,
                     &v->positions, &v->path,  &v->accepted, &v->next};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    kiln_tree_destroy(v->tree);
}

static void call(kiln_stream *stream, verification *v) {
    kiln_tree_verify_sampled_params params = {.path = v->path.data,
                                              .accepted = v->accepted.data,
                                              .next = v->next.data,
                                              .target = v->target.data,
                                              .draft = v->s.drawn ? v->draft.data : NULL,
                                              .tokens = v->tokens.data,
                                              .parents = v->parents.data,
                                              .row_seed = v->s.seeded ? v->seeds.data : NULL,
                                              .row_position = v->s.seeded ? v->positions.data : NULL,
                                              .batch = v->s.batch,
                                              .nodes = v->s.nodes,
                                              .depth = v->s.depth,
                                              .vocabulary = v->s.vocabulary,
                                              .trees = 1,
                                              .target_stride = v->s.padding ? v->target.stride : 0,
                                              .seed = v->seed,
                                              .position = v->position,
                                              .index_type = v->s.wide_positions ? KILN_INDEX_I64 : KILN_INDEX_I32,
                                              .token_type = v->s.wide_tokens ? KILN_INDEX_I64 : KILN_INDEX_I32};
    harness_ok(operator_function(&kiln__operator_tree_verify_sampled, v->p)->call(stream, &params, sizeof params));
    matrix_get(&v->path);
    matrix_get(&v->accepted);
    matrix_get(&v->next);
    matrix_expect_unchanged(&v->target);
    matrix_expect_unchanged(&v->draft);
}

static float *floats_of(const matrix *m, int64_t sequence, int64_t nodes) {
    int64_t count = nodes * m->cols;
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)m->values[sequence * count + i];
    return values;
}

/* A sequence's results are the host's, as far as the paths may be. */
static void expect_sequence(const verification *v, int64_t sequence) {
    const shape *s = &v->s;
    float *target = floats_of(&v->target, sequence, s->nodes), *draft = floats_of(&v->draft, sequence, s->nodes);
    int32_t tokens[NODES_MOST], path[NODES_MOST], accepted, next;
    for (int64_t i = 0; i < s->nodes; i++)
        tokens[i] = (int32_t)v->tokens.values[sequence * s->nodes + i];
    int64_t seed = s->seeded ? (int64_t)v->seeds.values[sequence] : v->seed;
    int64_t position = s->seeded ? (int64_t)v->positions.values[sequence] : v->position;
    harness_ok(kiln_tree_verify_sampled(v->tree, tokens, target, s->drawn ? draft : NULL, (int32_t)s->vocabulary, seed,
                                        position, path, &accepted, &next));
    int64_t found = (int64_t)v->accepted.values[sequence], found_next = (int64_t)v->next.values[sequence];
    bool cut = accepted >= s->depth && s->depth < v->tree->depth; /* then children of the last are not looked at */
    if (found != (cut ? s->depth : accepted))
        harness_fail("%lld nodes of sequence %lld are accepted, and %d by the host", (long long)found,
                     (long long)sequence, accepted);
    for (int64_t i = 0; i < s->depth; i++)
        if ((int64_t)v->path.values[sequence * s->depth + i] != (i < found ? path[i] : -1))
            harness_fail("node %lld of sequence %lld is %g", (long long)i, (long long)sequence,
                         v->path.values[sequence * s->depth + i]);
    if (cut && target[path[found - 1] * s->vocabulary + found_next] == 0)
        harness_fail("the next of sequence %lld is %lld, which is not likely", (long long)sequence,
                     (long long)found_next);
    if (!cut && found_next != next)
        harness_fail("the next of sequence %lld is %lld, and %d by the host", (long long)sequence,
                     (long long)found_next, next);
    free(target);
    free(draft);
}

static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe("tree_verify_sampled_%s of %lld trees of %lld nodes, depth %lld, vocabulary %lld%s%s%s",
                     precision_name(p), (long long)s.batch, (long long)s.nodes, (long long)s.depth,
                     (long long)s.vocabulary, s.drawn ? ", drawn" : ", chosen", s.seeded ? ", seeded" : "",
                     s.chain ? ", a chain" : "");
    verification v = verification_create(stream, p, s);
    call(stream, &v);
    for (int64_t i = 0; i < (s.seeded ? s.batch : 1); i++)
        expect_sequence(&v, i);
    verification_destroy(&v);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t vocabularies[] = {1, 2, 6, 100, 257, 1000, 2500};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++)
            for (int drawn = 0; drawn < 2; drawn++)
                run(stream, p,
                    (shape){.batch = random_integer(1, vocabularies[i] > 300 ? 4 : 20),
                            .nodes = random_integer(1, 20),
                            .depth = random_integer(0, 3) ? 0 : random_integer(1, 3),
                            .vocabulary = vocabularies[i],
                            .padding = random_integer(0, 9),
                            .place = random_place(),
                            .drawn = drawn,
                            .seeded = random_integer(0, 3) != 0,
                            .chain = random_integer(0, 1),
                            .wide_positions = random_integer(0, 1),
                            .wide_tokens = random_integer(0, 1)});
}

/* Rows that lie alike, and shares of a row that are divided again. */
static void test_long_rows(kiln_stream *stream) {
    static const int64_t vocabularies[] = {1024, 16400, 40000, 18001};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 8; i++)
            run(stream, p,
                (shape){.batch = 2,
                        .nodes = 3,
                        .vocabulary = vocabularies[i / 2],
                        .place = AT_END,
                        .drawn = i % 2,
                        .seeded = true,
                        .chain = random_integer(0, 1)});
}

static void test_many(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    for (int i = 0; i < 20; i++)
        run(stream, F32,
            (shape){.batch = 500, .nodes = 12, .vocabulary = 9, .drawn = i % 2, .seeded = true, .chain = i % 3 == 0});
    run(stream, F32,
        (shape){.batch = 2, .nodes = 6, .vocabulary = 128256, .drawn = true, .seeded = true, .chain = true});
}

/* ---- The distribution -------------------------------------------------------------------------------------------- */

enum { SEQUENCES = 200000, TOKENS = 5, TREE = 4 };

/* Of a root with three children, all sequences': the first token that follows it is distributed as the model says. */
static void test_distribution(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    static const double model[TOKENS] = {0.4, 0.3, 0.2, 0.1, 0}, drafter[TOKENS] = {0.1, 0.1, 0.2, 0.3, 0.3};
    for (int drawn = 0; drawn < 2; drawn++) {
        shape s = {.batch = SEQUENCES, .nodes = TREE, .vocabulary = TOKENS, .drawn = drawn, .seeded = true};
        harness_describe("tree_verify_sampled_f32 of many sequences, %s", drawn ? "drawn" : "chosen");
        verification v = verification_create(stream, F32, s);
        for (int64_t i = 0; i < (int64_t)SEQUENCES * TREE * TOKENS; i++) {
            v.target.values[i] = model[i % TOKENS];
            v.draft.values[i] = drafter[i % TOKENS];
        }
        matrix_set(&v.target, v.target.values);
        matrix_set(&v.draft, v.draft.values);
        for (int64_t i = 0; i < (int64_t)SEQUENCES * TREE; i++)
            v.tokens.values[i] = drawn ? (double)draw_from(drafter, TOKENS) : (double)(i % TREE);
        matrix_set(&v.tokens, v.tokens.values);
        call(stream, &v);
        double counts[TOKENS] = {0}, sum = 0;
        for (int64_t i = 0; i < SEQUENCES; i++) {
            int64_t second = v.accepted.values[i] > 1 ? (int64_t)v.path.values[i * v.s.depth + 1] : 0;
            counts[(int64_t)(second ? v.tokens.values[i * TREE + second] : v.next.values[i])]++;
        }
        for (int i = 0; i < TOKENS - 1; i++)
            sum += pow(counts[i] - (double)SEQUENCES * model[i], 2) / ((double)SEQUENCES * model[i]);
        /* Of three degrees of freedom, less likely than one in a million. */
        if (counts[TOKENS - 1] != 0 || sum > 30.7) harness_fail("chi-square is %g", sum);
        verification_destroy(&v);
    }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("tree_verify_sampled_f32 and what it refuses");
    matrix target = matrix_create(stream, F32, 2, 8, 0, 0), numbers = matrix_create(stream, I32, 1, 8, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_tree_verify_sampled, F32);
    kiln_tree_verify_sampled_params params = {.path = numbers.data,
                                              .accepted = numbers.data,
                                              .next = numbers.data,
                                              .tokens = numbers.data,
                                              .parents = numbers.data,
                                              .batch = 1,
                                              .nodes = 2,
                                              .depth = 2,
                                              .vocabulary = 8,
                                              .trees = 1};
    expect_refusal(stream, function, &params, sizeof params, "target");
    params.target = target.data;
    params.target_stride = 7;
    expect_refusal(stream, function, &params, sizeof params, "target_stride");
    params.target_stride = 0;
    params.draft = (const char *)target.data + 1;
    expect_refusal(stream, function, &params, sizeof params, "draft");
    params.draft = NULL;
    params.row_seed = (const int64_t *)((const char *)numbers.data + 4);
    expect_refusal(stream, function, &params, sizeof params, "row_seed");
    params.row_seed = NULL;
    params.index_type = 2;
    expect_refusal(stream, function, &params, sizeof params, "index_type");
    params.index_type = 0;
    params.nodes = 1025;
    expect_refusal(stream, function, &params, sizeof params, "nodes");
    params.nodes = 2;
    params.vocabulary = (1 << 22) + 1;
    expect_refusal(stream, function, &params, sizeof params, "vocabulary");
    params.vocabulary = 0;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_unchanged(&target);
    matrix_expect_unchanged(&numbers);
    matrix_destroy(&target);
    matrix_destroy(&numbers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),      on_each_device(test_long_rows), on_one_device(test_many),
        on_one_device(test_distribution), on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
