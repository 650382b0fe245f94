/* tree_accept against a walk in f64: by target, as kiln_tree_verify_greedy does it, and by probability, where inputs
 * are drawn again until no probability is within rounding of its threshold. */
#include "tests/ops/harness.h"
#include <kiln/tree.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MOST = 1024 };

typedef struct shape {
    int64_t batch, nodes, depth, vocabulary, padding, place;
    int64_t trees;
    bool with_logits, with_targets, typical, wide; /* wide: tokens and targets of 64 bits */
    bool bushy; /* few nodes have many children, few of which have their parent's target */
    float temperature, epsilon, delta;
} shape;

/* What a call reads, and what it should write. */
typedef struct trees {
    shape s;
    precision p;
    matrix logits, targets, tokens, parents, path, accepted, next;
    double *expected_path, *expected_accepted, *expected_next;
} trees;

/* ---- The definition ---- */

/* The first greatest logit; -1 if all are -inf or NaN. */
static int64_t likeliest(const double *row, int64_t vocabulary) {
    int64_t best = -1;
    for (int64_t i = 0; i < vocabulary; i++)
        if (row[i] > -INFINITY && (best < 0 || row[i] > row[best])) best = i;
    return best;
}

/* The probabilities behind a node, of what comparable logits there are, and their entropy. */
static double soften(const double *row, const shape *s, double *out) {
    double temperature = s->temperature != 0 ? (double)s->temperature : 1, sum = 0, entropy = 0;
    int64_t best = likeliest(row, s->vocabulary);
    for (int64_t i = 0; i < s->vocabulary; i++) {
        bool infinite = best >= 0 && row[best] == INFINITY;
        out[i] = best < 0 || !(row[i] > -INFINITY) ? 0
                 : infinite                        ? row[i] == INFINITY
                                                   : exp((row[i] - row[best]) / temperature);
        sum += out[i];
    }
    for (int64_t i = 0; i < s->vocabulary && best >= 0; i++) {
        out[i] /= sum;
        if (out[i] > 0) entropy -= out[i] * log(out[i]);
    }
    return entropy;
}

static const double *row_of(const trees *t, int64_t sequence, int64_t node) {
    return t->logits.values + (sequence * t->s.nodes + node) * t->s.vocabulary;
}

static int64_t target_of(const trees *t, int64_t sequence, int64_t node) {
    if (t->s.with_targets) return (int64_t)t->targets.values[sequence * t->s.nodes + node];
    return likeliest(row_of(t, sequence, node), t->s.vocabulary);
}

static int64_t parent_of(const trees *t, int64_t sequence, int64_t node) {
    int64_t parent =
        (int64_t)t->parents.values[(sequence < t->s.trees ? sequence : t->s.trees - 1) * t->s.nodes + node];
    return parent < node ? parent : -1;
}

/* What a probability must be above. */
static double threshold_of(const shape *s, double entropy) {
    double delta = s->delta != 0 ? (double)s->delta : 0.3, epsilon = s->epsilon != 0 ? (double)s->epsilon : 0.09;
    return fmin(epsilon, delta * exp(-entropy));
}

/* Whether a child's token is taken behind its parent; ln of its probability. *out_near: it is within rounding. */
static bool takes(const trees *t, int64_t sequence, int64_t parent, int64_t token, double *out_log, bool *out_near) {
    const shape *s = &t->s;
    if (!s->typical) {
        *out_log = 0;
        return token == target_of(t, sequence, parent);
    }
    if (token >= s->vocabulary) return false;
    double *chances = malloc(sizeof *chances * (size_t)s->vocabulary);
    assert_non_null(chances);
    double entropy = soften(row_of(t, sequence, parent), s, chances), chance = chances[token];
    double threshold = threshold_of(s, entropy);
    free(chances);
    *out_log = log(chance);
    *out_near = *out_near || fabs(chance - threshold) <= 1e-4 * threshold;
    return chance > threshold;
}

/* Whether two nodes of one level have the same scores, because the chances on their paths are the same, one by one. */
static bool same_chances(const trees *t, int64_t sequence, const double *chance_log, int64_t a, int64_t b) {
    for (; a > 0 && b > 0; a = parent_of(t, sequence, a), b = parent_of(t, sequence, b))
        if (chance_log[a] != chance_log[b]) return false;
    return true;
}

/* Fills what is expected of a sequence. Returns false where the outcome hangs on rounding. */
static bool define(trees *t, int64_t sequence) {
    const shape *s = &t->s;
    int64_t level[NODES_MOST] = {1}, best = 0;
    double score[NODES_MOST] = {0}, chance_log[NODES_MOST] = {0};
    bool near = false, taken[NODES_MOST] = {false}; /* by target a node has one child at most */
    for (int64_t i = 1; i < s->nodes; i++) {
        int64_t parent = parent_of(t, sequence, i);
        int64_t token = (int64_t)t->tokens.values[sequence * s->nodes + i];
        level[i] = 0;
        if (parent < 0 || token < 0 || !level[parent] || level[parent] >= s->depth) continue;
        if (!s->typical && taken[parent]) continue;
        if (!takes(t, sequence, parent, token, &chance_log[i], &near)) continue;
        taken[parent] = true;
        level[i] = level[parent] + 1;
        score[i] = score[parent] + chance_log[i];
        if (level[i] > level[best] || (level[i] == level[best] && score[i] > score[best])) best = i;
    }
    for (int64_t i = 1; i < s->nodes; i++)
        near = near || (i != best && level[i] == level[best] && fabs(score[i] - score[best]) < 1e-4 &&
                        !same_chances(t, sequence, chance_log, i, best));
    int64_t node = best;
    for (int64_t i = 0; i < s->depth; i++)
        t->expected_path[sequence * s->depth + i] = -1;
    for (int64_t i = level[best]; i-- > 0; node = parent_of(t, sequence, node))
        t->expected_path[sequence * s->depth + i] = (double)node;
    t->expected_accepted[sequence] = (double)level[best];
    t->expected_next[sequence] = (double)target_of(t, sequence, best);
    return !near;
}

/* ---- Inputs ---- */

static double any_logit(void) {
    int64_t kind = random_integer(0, 40);
    return kind == 0 ? -INFINITY : kind == 1 ? (double)NAN : random_number(-6, 6);
}

/* The token whose probability behind a node is nearest to the threshold, but not within rounding of it: whether it is
 * taken hangs on every element of the row. */
static int64_t doubtful(const trees *t, int64_t sequence, int64_t node) {
    double *chances = malloc(sizeof *chances * (size_t)t->s.vocabulary), nearest = INFINITY;
    assert_non_null(chances);
    double threshold = threshold_of(&t->s, soften(row_of(t, sequence, node), &t->s, chances));
    int64_t token = 0;
    for (int64_t i = 0; i < t->s.vocabulary; i++) {
        double distance = fabs(log(chances[i] / threshold));
        if (distance > 1e-3 && distance < nearest) {
            nearest = distance;
            token = i;
        }
    }
    free(chances);
    return token;
}

/* Few likely tokens, so that drafts are accepted at times. */
static int64_t draw_token(const trees *t, int64_t sequence, int64_t node) {
    int64_t kind = random_integer(0, 9), parent = parent_of(t, sequence, node);
    if (kind == 0) return -random_integer(1, 3);
    if (kind == 1) return t->s.vocabulary + random_integer(0, 2);
    if (t->s.typical && kind < 5 && parent >= 0) return doubtful(t, sequence, parent);
    bool likely = !t->s.bushy || random_integer(0, t->s.nodes / 12) == 0;
    if (kind < 7 && parent >= 0 && likely) return target_of(t, sequence, parent);
    return random_integer(0, t->s.vocabulary ? t->s.vocabulary - 1 : 3);
}

static void draw_parents(matrix *parents, bool bushy) {
    for (int64_t row = 0; row < parents->rows; row++)
        for (int64_t i = 0; i < parents->cols; i++) {
            int64_t parent = random_integer(-2, i + 3); /* at times one that it cannot have */
            if (i > 0 && random_integer(0, 19))
                parent = random_integer(i > 5 && !bushy ? i - 5 : 0, bushy && i > 3 ? 3 : i - 1);
            parents->values[row * parents->cols + i] = (double)parent;
        }
    matrix_set(parents, parents->values);
}

static void peak(matrix *logits) {
    for (int64_t row = 0; row < logits->rows; row++) {
        int64_t kind = random_integer(0, 9);
        double *values = logits->values + row * logits->cols;
        if (kind < 4) values[random_integer(0, logits->cols - 1)] = random_number(6, 12);
        if (kind == 4) values[random_integer(0, logits->cols - 1)] = INFINITY;
        for (int64_t i = 0; kind == 5 && i < logits->cols; i++)
            values[i] = i % 2 ? (double)NAN : -INFINITY;
        for (int64_t i = 0; kind == 6 && i < logits->cols; i++) /* equal ones */
            values[i] = i % 3 ? -0.0 : 0;
    }
    matrix_set(logits, logits->values);
}

static void draw_numbers(trees *t) {
    for (int64_t b = 0; b < t->s.batch; b++)
        for (int64_t i = 0; i < t->s.nodes; i++)
            t->targets.values[b * t->s.nodes + i] = (double)random_integer(-1, 3);
    matrix_set(&t->targets, t->targets.values);
    for (int64_t b = 0; b < t->s.batch; b++)
        for (int64_t i = 0; i < t->s.nodes; i++)
            t->tokens.values[b * t->s.nodes + i] = (double)draw_token(t, b, i);
    matrix_set(&t->tokens, t->tokens.values);
}

static trees make(kiln_stream *stream, precision p, shape s) {
    trees t = {.s = s, .p = p};
    t.logits = matrix_create(stream, p, s.batch * s.nodes, s.with_logits ? s.vocabulary : 1,
                             s.with_logits ? s.vocabulary + s.padding : 1, s.place);
    t.targets = matrix_create(stream, s.wide ? I64 : I32, s.batch, s.nodes, 0, AT_END);
    t.tokens = matrix_create(stream, s.wide ? I64 : I32, s.batch, s.nodes, 0, AT_END);
    t.parents = matrix_create(stream, I32, s.trees, s.nodes, 0, AT_END);
    t.path = matrix_create(stream, I32, s.batch, s.depth, 0, AT_END);
    t.accepted = matrix_create(stream, I32, 1, s.batch, 0, AT_END);
    t.next = matrix_create(stream, I32, 1, s.batch, 0, AT_END);
    t.expected_path = calloc((size_t)(s.batch * (s.depth + 2)), sizeof(double));
    assert_non_null(t.expected_path);
    t.expected_accepted = t.expected_path + s.batch * s.depth;
    t.expected_next = t.expected_accepted + s.batch;
    return t;
}

static void draw(trees *t) {
    bool clear;
    do {
        clear = true;
        draw_parents(&t->parents, t->s.bushy);
        matrix_fill(&t->logits, any_logit);
        if (t->s.with_logits) peak(&t->logits);
        draw_numbers(t);
        for (int64_t b = 0; b < t->s.batch; b++)
            clear = define(t, b) && clear;
    } while (!clear);
}

static void destroy(trees *t) {
    matrix *all[] = {&t->logits, &t->targets, &t->tokens, &t->parents, &t->path, &t->accepted, &t->next};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    free(t->expected_path);
}

/* ---- Runs ---- */

static kiln_tree_accept_params params_of(const trees *t) {
    const shape *s = &t->s;
    return (kiln_tree_accept_params){.path = t->path.data,
                                     .accepted = t->accepted.data,
                                     .next = t->next.data,
                                     .logits = s->with_logits ? t->logits.data : NULL,
                                     .targets = s->with_targets ? t->targets.data : NULL,
                                     .tokens = t->tokens.data,
                                     .parents = t->parents.data,
                                     .batch = s->batch,
                                     .nodes = s->nodes,
                                     .depth = s->depth,
                                     .vocabulary = s->with_logits ? s->vocabulary : 0,
                                     .trees = s->trees,
                                     .logits_stride = s->padding ? t->logits.stride : 0,
                                     .temperature = s->temperature,
                                     .epsilon = s->epsilon,
                                     .delta = s->delta,
                                     .rule = s->typical ? KILN_TREE_TYPICAL : KILN_TREE_EXACT,
                                     .token_type = s->wide ? KILN_INDEX_I64 : KILN_INDEX_I32};
}

static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe(
        "tree_accept_%s %s, %lld sequences, %lld trees of %lld nodes, paths of %lld, %s%s%lld tokens of %d bits, "
        "padding %lld, at %lld",
        precision_name(p), s.typical ? "typical" : "exact", (long long)s.batch, (long long)s.trees, (long long)s.nodes,
        (long long)s.depth, s.with_logits ? "logits, " : "", s.with_targets ? "targets, " : "", (long long)s.vocabulary,
        s.wide ? 64 : 32, (long long)s.padding, (long long)s.place);
    trees t = make(stream, p, s);
    draw(&t);
    kiln_tree_accept_params params = params_of(&t);
    harness_ok(operator_function(&kiln__operator_tree_accept, p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&t.accepted, t.expected_accepted);
    matrix_expect_exact(&t.path, t.expected_path);
    matrix_expect_exact(&t.next, t.expected_next);
    matrix *inputs[] = {&t.logits, &t.targets, &t.tokens, &t.parents};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        matrix_expect_unchanged(inputs[i]);
    destroy(&t);
}

static shape random_shape(int64_t nodes, int64_t vocabulary) {
    return (shape){.batch = random_integer(1, 4),
                   .nodes = nodes,
                   .depth = random_integer(0, 3) ? random_integer(1, 9) : nodes + 2,
                   .vocabulary = vocabulary,
                   .padding = random_integer(0, 1) ? random_integer(0, 17) : 0,
                   .place = random_place(),
                   .trees = random_integer(1, 3),
                   .wide = random_integer(0, 1)};
}

static void test_targets(kiln_stream *stream) {
    static const int64_t nodes[] = {1, 2, 7, 26, 64, 255, 300, 1024};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        for (int round = harness_rounds(stream, 8); round > 0; round--) {
            shape s = random_shape(nodes[i], round % 2 ? 4 : 400);
            s.bushy = round % 2 == 0;
            if (s.bushy) s.batch = 4;
            s.with_targets = true;
            s.with_logits = s.vocabulary == 4 && random_integer(0, 1);
            run(stream, F32, s);
        }
}

static void test_greatest_logits(kiln_stream *stream) {
    static const int64_t vocabularies[] = {1, 3, 16, 257, 2050};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
            shape s = random_shape(random_integer(2, 26), vocabularies[i]);
            s.with_logits = true;
            run(stream, p, s);
        }
}

static void test_typical(kiln_stream *stream) {
    static const int64_t vocabularies[] = {1, 3, 8, 40, 257, 1500};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++)
            for (int round = harness_rounds(stream, 16); round > 0; round--) {
                shape s = random_shape(random_integer(2, 26), vocabularies[i]);
                s.with_logits = s.typical = true;
                s.with_targets = random_integer(0, 1);
                s.temperature = random_integer(0, 1) ? (float)random_number(0.2, 3) : 0;
                s.epsilon = random_integer(0, 1) ? (float)random_number(1e-4, 0.5) : 0;
                s.delta = random_integer(0, 1) ? (float)random_number(0.01, 1) : 0;
                run(stream, p, s);
            }
    for (precision p = precision_first(); p < precision_end(); p++) {
        shape s = {.batch = 2, .nodes = 600, .depth = 5, .vocabulary = 64, .trees = 2, .bushy = true};
        s.with_logits = s.typical = true;
        s.epsilon = 0.02f;
        run(stream, p, s);
    }
}

/* Trees made by tree.h: the same as its own verification, of Medusa's choices and of random parents. */
static void test_as_the_host(kiln_stream *stream) {
    harness_describe("tree_accept_f32 beside kiln_tree_verify_greedy");
    for (int round = harness_rounds(stream, 16); round > 0; round--) {
        shape s = {.batch = 3, .nodes = random_integer(1, 64), .vocabulary = 4, .trees = 1, .with_targets = true};
        int32_t parents[64] = {-1}, tokens[64], targets[64], path[64], accepted, next;
        for (int64_t i = 1; i < s.nodes; i++)
            parents[i] = (int32_t)random_integer(0, i - 1);
        const kiln_tree *tree;
        harness_ok(kiln_tree_create(parents, (int32_t)s.nodes, &tree));
        s.depth = tree->depth;
        trees t = make(stream, F32, s);
        for (int64_t i = 0; i < s.nodes; i++)
            t.parents.values[i] = parents[i];
        matrix_set(&t.parents, t.parents.values);
        matrix_fill(&t.logits, any_logit);
        for (int64_t i = 0; i < s.batch * s.nodes; i++) {
            t.tokens.values[i] = (double)random_integer(0, 2);
            t.targets.values[i] = (double)random_integer(0, 2);
        }
        matrix_set(&t.tokens, t.tokens.values);
        matrix_set(&t.targets, t.targets.values);
        for (int64_t b = 0; b < s.batch; b++) {
            for (int64_t i = 0; i < s.nodes; i++) {
                tokens[i] = (int32_t)t.tokens.values[b * s.nodes + i];
                targets[i] = (int32_t)t.targets.values[b * s.nodes + i];
            }
            harness_ok(kiln_tree_verify_greedy(tree, tokens, targets, path, &accepted, &next));
            for (int64_t i = 0; i < s.depth; i++)
                t.expected_path[b * s.depth + i] = path[i];
            t.expected_accepted[b] = accepted;
            t.expected_next[b] = next;
        }
        kiln_tree_accept_params params = params_of(&t);
        harness_ok(operator_function(&kiln__operator_tree_accept, F32)->call(stream, &params, sizeof params));
        matrix_expect_exact(&t.accepted, t.expected_accepted);
        matrix_expect_exact(&t.path, t.expected_path);
        matrix_expect_exact(&t.next, t.expected_next);
        destroy(&t);
        kiln_tree_destroy(tree);
    }
}

static void test_bad_params(kiln_stream *stream) {
    double memory[8];
    int32_t *numbers = (int32_t *)memory;
    const kiln_tree_accept_params good = {.path = numbers,
                                          .accepted = numbers + 1,
                                          .next = numbers + 2,
                                          .logits = memory + 2,
                                          .tokens = numbers + 6,
                                          .parents = numbers + 7,
                                          .batch = 1,
                                          .nodes = 1,
                                          .depth = 1,
                                          .vocabulary = 1,
                                          .trees = 1};
    const kiln_operator_function *function = operator_function(&kiln__operator_tree_accept, F32);
#define REFUSED(field, value, named)                                     \
    do {                                                                 \
        kiln_tree_accept_params params = good;                           \
        params.field = value;                                            \
        expect_refusal(stream, function, &params, sizeof params, named); \
    } while (0)
    REFUSED(nodes, NODES_MOST + 1, "nodes");
    REFUSED(batch, -1, "batch");
    REFUSED(batch, (int64_t)INT32_MAX + 1, "batch");
    REFUSED(depth, -1, "depth");
    REFUSED(vocabulary, (1 << 22) + 1, "vocabulary");
    REFUSED(trees, -1, "trees");
    REFUSED(trees, (int64_t)INT32_MAX + 1, "trees");
    REFUSED(logits, NULL, "logits");
    REFUSED(logits, (char *)memory + 2, "logits");
    REFUSED(tokens, NULL, "tokens");
    REFUSED(parents, NULL, "parents");
    REFUSED(path, NULL, "path");
    REFUSED(accepted, NULL, "accepted");
    REFUSED(next, NULL, "next");
    REFUSED(targets, (const void *)((char *)memory + 2), "targets");
    REFUSED(rule, 2, "rule");
    REFUSED(token_type, 2, "token_type");
    REFUSED(reserved, 1, "reserved");
    REFUSED(temperature, -1, "temperature");
    REFUSED(epsilon, 1.5f, "epsilon");
    REFUSED(delta, NAN, "delta");
#undef REFUSED
    kiln_tree_accept_params params = good;
    params.targets = numbers + 8;
    params.logits = NULL;
    params.rule = KILN_TREE_TYPICAL;
    expect_refusal(stream, function, &params, sizeof params, "logits");
    params = good;
    params.nodes = 0;
    params.path = NULL;
    harness_ok(function->call(stream, &params, sizeof params));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_targets),     on_each_device(test_greatest_logits), on_each_device(test_typical),
        on_each_device(test_as_the_host), on_one_device(test_bad_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
