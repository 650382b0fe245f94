/* Sampled verification: what comes of a million trees is distributed as the model's own tokens, by chi-square, for
 * draft tokens that were drawn and for chosen ones. And trees that grow, against the definition. */
#include "tests/assert_ok.h"
#include <kiln/tree.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { VOCABULARY = 6, DRAWS = 1000000, NODES = 10 };

static uint64_t state;

static uint32_t draw_bits(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static int32_t draw(int32_t below) {
    return (int32_t)((uint64_t)draw_bits() * (uint64_t)below >> 32);
}

static float uniform(void) {
    return (float)(draw_bits() >> 8) * 0x1p-24f;
}

/* ---- A model and a draft: what follows depends on the token before, and at the root on none ---- */

typedef float distribution[VOCABULARY];

static distribution model[VOCABULARY + 1], drafter[VOCABULARY + 1];

static void make_distributions(distribution *rows) {
    for (int i = 0; i <= VOCABULARY; i++) {
        float sum = 0;
        for (int j = 0; j < VOCABULARY; j++)
            sum += rows[i][j] = draw(5) || j == i % VOCABULARY ? uniform() * uniform() + 0.01f : 0;
        for (int j = 0; j < VOCABULARY; j++)
            rows[i][j] /= sum;
    }
}

static int32_t draw_from(const float *row) {
    float rest = uniform();
    int32_t last = 0;
    for (int32_t i = 0; i < VOCABULARY; i++) {
        if (row[i] == 0) continue;
        last = i;
        if (rest < row[i]) return i;
        rest -= row[i];
    }
    return last;
}

/* The token of a row that `rank` others are likelier than. */
static int32_t ranked(const float *row, int rank) {
    for (int32_t i = 0; i < VOCABULARY; i++) {
        int before = 0;
        for (int32_t j = 0; j < VOCABULARY; j++)
            before += row[j] > row[i] || (row[j] == row[i] && j < i);
        if (before == rank) return i;
    }
    return -1;
}

/* ---- Chi-square ---- */

typedef struct fit {
    double sum, degrees;
} fit;

static void add_to_fit(fit *f, const int64_t *counts, const float *expected) {
    double total = 0, weights = 0;
    for (int i = 0; i < VOCABULARY; i++) {
        total += (double)counts[i];
        weights += (double)expected[i];
    }
    if (total < 1000) return;
    f->degrees--;
    for (int i = 0; i < VOCABULARY; i++) {
        double mean = total * (double)expected[i] / weights;
        if (mean == 0) {
            assert_int_equal(counts[i], 0);
            continue;
        }
        f->degrees++;
        f->sum += ((double)counts[i] - mean) * ((double)counts[i] - mean) / mean;
    }
}

/* Whether so great a sum is less likely than one in a million (Wilson and Hilferty, PNAS 17, 1931). */
static bool is_unlikely(const fit *f) {
    if (f->degrees < 1) return false;
    double ninth = 2 / (9 * f->degrees), limit = f->degrees * pow(1 - ninth + 4.753 * sqrt(ninth), 3);
    return f->sum > limit;
}

/* ---- Trees of three children, each with two ---- */

static const int32_t parents[NODES] = {-1, 0, 0, 0, 1, 1, 2, 2, 3, 3};

typedef struct outcome {
    int64_t first[VOCABULARY];              /* the token behind the root */
    int64_t second[VOCABULARY][VOCABULARY]; /* the one behind it, where the first was accepted */
    int64_t third[VOCABULARY][VOCABULARY];  /* by the second, where that was accepted */
    int64_t accepted;                       /* first tokens */
} outcome;

static void fill_tree(bool drawn, int32_t *tokens, float *target, float *draft) {
    for (int32_t i = 0; i < NODES; i++) {
        int32_t row = i ? tokens[parents[i]] : 0, rank = i < 4 ? i - 1 : i % 2;
        if (i && drawn) tokens[i] = draw_from(drafter[row]);
        if (i && !drawn) tokens[i] = ranked(drafter[row], rank);
        if (!i) tokens[0] = VOCABULARY;
        memcpy(target + (ptrdiff_t)i * VOCABULARY, model[tokens[i]], sizeof(distribution));
        memcpy(draft + (ptrdiff_t)i * VOCABULARY, drafter[tokens[i]], sizeof(distribution));
    }
}

/* claimed: the draft says what it drew from; else that all tokens were as likely. */
static outcome verify_many(bool drawn, bool claimed) {
    outcome out = {{0}, {{0}}, {{0}}, 0};
    const kiln_tree *tree;
    assert_ok(kiln_tree_create(parents, NODES, &tree));
    for (int round = 0; round < DRAWS; round++) {
        int32_t tokens[NODES], path[3], accepted, next;
        float target[NODES * VOCABULARY], draft[NODES * VOCABULARY];
        fill_tree(drawn, tokens, target, draft);
        for (int i = 0; i < NODES * VOCABULARY && !claimed; i++)
            draft[i] = 1.0f / (float)VOCABULARY;
        assert_ok(kiln_tree_verify_sampled(tree, tokens, target, drawn ? draft : NULL, VOCABULARY, draw_bits(), round,
                                           path, &accepted, &next));
        int32_t first = accepted > 1 ? tokens[path[1]] : next, second = accepted > 2 ? tokens[path[2]] : next;
        out.first[first]++;
        if (accepted > 1) out.second[first][second]++;
        if (accepted > 2) out.third[second][next]++;
        out.accepted += accepted > 1;
    }
    kiln_tree_destroy(tree);
    return out;
}

static fit fit_of(const outcome *out) {
    fit f = {0, 0};
    add_to_fit(&f, out->first, model[VOCABULARY]);
    for (int i = 0; i < VOCABULARY; i++) {
        add_to_fit(&f, out->second[i], model[i]);
        add_to_fit(&f, out->third[i], model[i]);
    }
    return f;
}

static void sampling_is_followed(void **unused) {
    (void)unused;
    make_distributions(model);
    make_distributions(drafter);
    for (int drawn = 0; drawn < 2; drawn++) {
        outcome out = verify_many(drawn, true);
        fit f = fit_of(&out);
        printf("# %s: chi-square %.1f of %.0f degrees, %.1f%% accepted\n", drawn ? "drawn" : "chosen", f.sum, f.degrees,
               100.0 * (double)out.accepted / (double)DRAWS);
        assert_false(is_unlikely(&f));
    }
    /* The test would find a rule that is wrong: one that divides by other probabilities than those drawn with. */
    memcpy(model[VOCABULARY], (distribution){0.5f, 0.3f, 0.1f, 0.05f, 0.03f, 0.02f}, sizeof(distribution));
    memcpy(drafter[VOCABULARY], (distribution){0.02f, 0.03f, 0.05f, 0.1f, 0.3f, 0.5f}, sizeof(distribution));
    outcome out = verify_many(true, false);
    fit f = fit_of(&out);
    assert_true(is_unlikely(&f));
}

/* Of one child the probability to be accepted is the sum of the lesser of both. */
static void one_child_is_accepted_as_often_as_it_can_be(void **unused) {
    (void)unused;
    const int32_t chain[] = {-1, 0};
    const kiln_tree *tree;
    int64_t accepted_many = 0;
    double chance = 0;
    make_distributions(model);
    make_distributions(drafter);
    for (int i = 0; i < VOCABULARY; i++)
        chance += (double)fminf(model[VOCABULARY][i], drafter[VOCABULARY][i]);
    assert_ok(kiln_tree_create(chain, 2, &tree));
    for (int round = 0; round < DRAWS; round++) {
        int32_t tokens[2] = {0, draw_from(drafter[VOCABULARY])}, path[2], accepted, next;
        float target[2 * VOCABULARY];
        memcpy(target, model[VOCABULARY], sizeof(distribution));
        memcpy(target + VOCABULARY, model[tokens[1]], sizeof(distribution));
        assert_ok(kiln_tree_verify_sampled(tree, tokens, target, drafter[VOCABULARY], VOCABULARY, draw_bits(), round,
                                           path, &accepted, &next));
        assert_int_equal(path[1], accepted > 1 ? 1 : -1);
        accepted_many += accepted - 1;
    }
    kiln_tree_destroy(tree);
    double off = (double)accepted_many - chance * (double)DRAWS;
    assert_true(fabs(off) <= 5 * sqrt((double)DRAWS * chance * (1 - chance)) + 1);
}

static void bad_samples_are_refused(void **unused) {
    (void)unused;
    const kiln_tree *tree;
    const int32_t root[] = {-1}, tokens[] = {0};
    const float second[] = {0, 1}, zeros[] = {0, 0};
    int32_t path[1], accepted = 7, next = 7;
    assert_ok(kiln_tree_create(root, 1, &tree));
#define REFUSED(text, ...)                                                                                            \
    do {                                                                                                              \
        assert_int_equal(kiln_tree_verify_sampled(__VA_ARGS__, path, &accepted, &next), KILN_ERROR_INVALID_ARGUMENT); \
        assert_non_null(strstr(kiln_last_error(), text));                                                             \
        assert_int_equal(accepted | next, 0);                                                                         \
    } while (0)
    REFUSED("tree is NULL", NULL, tokens, second, NULL, 2, 1, 0);
    REFUSED("tokens is NULL", tree, NULL, second, NULL, 2, 1, 0);
    REFUSED("target is NULL", tree, tokens, NULL, NULL, 2, 1, 0);
    REFUSED("vocabulary is 0", tree, tokens, second, NULL, 0, 1, 0);
#undef REFUSED
    assert_ok(kiln_tree_verify_sampled(tree, tokens, second, NULL, 2, 1, 0, path, &accepted, &next));
    assert_int_equal(accepted, 1);
    assert_int_equal(next, 1);
    assert_ok(kiln_tree_verify_sampled(tree, tokens, zeros, NULL, 2, 1, 0, path, &accepted, &next));
    assert_int_equal(accepted, 1);
    assert_int_equal(next, -1);
    kiln_tree_destroy(tree);
}

/* ---- Growth ---- */

enum { TOP_K_MOST = 5, STEPS_MOST = 5, CANDIDATES_MOST = TOP_K_MOST + STEPS_MOST * TOP_K_MOST * TOP_K_MOST };

/* What was named, and in which order the best come. */
typedef struct named {
    double score;
    int32_t parent, token, number;
} named;

static int better_first(const void *a, const void *b) {
    const named *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static int by_number(const void *a, const void *b) {
    return ((const named *)a)->number - ((const named *)b)->number;
}

/* The tree of the best of those that were named. */
static void expect_grown(named *all, int32_t count, int32_t total, const kiln_tree *tree, const int32_t *tokens) {
    qsort(all, (size_t)count, sizeof *all, better_first);
    int32_t chosen = count < total ? count : total;
    qsort(all, (size_t)chosen, sizeof *all, by_number);
    assert_int_equal(tree->nodes, chosen + 1);
    assert_int_equal(tokens[0], -1);
    for (int32_t i = 0; i < chosen; i++) {
        int32_t parent = 0;
        for (int32_t j = 0; j < i; j++)
            if (all[j].number == all[i].parent) parent = j + 1;
        assert_true(parent > 0 || all[i].parent < 0);
        assert_int_equal(tree->parents[i + 1], parent);
        assert_int_equal(tokens[i + 1], all[i].token);
    }
}

static void grow(kiln_tree_growth *growth, int32_t depth, int32_t top_k, int32_t total) {
    named all[CANDIDATES_MOST], step[TOP_K_MOST * TOP_K_MOST];
    int32_t frontier[TOP_K_MOST], count = 0, width = 1;
    for (int32_t d = 0; d < depth; d++) {
        int32_t tokens[TOP_K_MOST * TOP_K_MOST], from[TOP_K_MOST], next[TOP_K_MOST], first = count;
        float logs[TOP_K_MOST * TOP_K_MOST];
        for (int32_t i = 0; i < width * top_k; i++) {
            tokens[i] = draw(1000);
            logs[i] = draw(10) ? -(float)draw(40) / 8 : draw(2) ? -INFINITY : 0x1p-20f; /* many are equal */
            int32_t parent = d ? frontier[i / top_k] : -1;
            double before = d ? all[parent].score : 0;
            all[count] = (named){before + fmin((double)logs[i], 0), parent, tokens[i], count};
            step[i] = all[count++];
        }
        assert_ok(kiln_tree_growth_step(growth, tokens, logs, from, next));
        qsort(step, (size_t)(width * top_k), sizeof *step, better_first);
        for (int32_t i = 0; i < top_k; i++) {
            frontier[i] = step[i].number;
            assert_int_equal(from[i], (step[i].number - first) / top_k);
            assert_int_equal(next[i], step[i].token);
        }
        width = top_k;
    }
    const kiln_tree *tree;
    int32_t tokens[KILN_TREE_NODES_MOST];
    assert_ok(kiln_tree_growth_finish(growth, &tree, tokens));
    expect_grown(all, count, total, tree, tokens);
    kiln_tree_destroy(tree);
}

static void the_likeliest_paths_grow(void **unused) {
    (void)unused;
    for (int round = 0; round < 300; round++) {
        int32_t depth = 1 + draw(STEPS_MOST), top_k = 1 + draw(TOP_K_MOST), total = 1 + draw(70);
        kiln_tree_growth *growth;
        assert_ok(kiln_tree_growth_create(depth, top_k, total, &growth));
        grow(growth, depth, top_k, total);
        grow(growth, 1 + draw(depth), top_k, total); /* the same once more, and not to its end */
        kiln_tree_growth_destroy(growth);
    }
}

static void bad_growth_is_refused(void **unused) {
    (void)unused;
    kiln_tree_growth *growth;
    const kiln_tree *tree;
    const int32_t tokens[] = {1};
    const float logs[] = {-1}, nan[] = {NAN};
    int32_t out[4];
#define REFUSED(call, text)                                  \
    do {                                                     \
        assert_int_equal(call, KILN_ERROR_INVALID_ARGUMENT); \
        assert_non_null(strstr(kiln_last_error(), text));    \
    } while (0)
    REFUSED(kiln_tree_growth_create(0, 1, 1, &growth), "depth is 0");
    REFUSED(kiln_tree_growth_create(1024, 1, 1, &growth), "depth is 1024");
    REFUSED(kiln_tree_growth_create(1, 0, 1, &growth), "top_k is 0");
    REFUSED(kiln_tree_growth_create(1, 1025, 1, &growth), "top_k is 1025");
    REFUSED(kiln_tree_growth_create(1, 1, 0, &growth), "total is 0");
    REFUSED(kiln_tree_growth_create(1, 1, 1024, &growth), "total is 1024");
    REFUSED(kiln_tree_growth_create(1, 1, 1, NULL), "out_growth is NULL");
    assert_ok(kiln_tree_growth_create(1, 1, 1, &growth));
    REFUSED(kiln_tree_growth_finish(growth, &tree, out), "there was no step");
    REFUSED(kiln_tree_growth_step(growth, tokens, nan, NULL, NULL), "log_probabilities[0] is NaN");
    REFUSED(kiln_tree_growth_step(growth, NULL, logs, NULL, NULL), "tokens is NULL");
    REFUSED(kiln_tree_growth_step(growth, tokens, NULL, NULL, NULL), "log_probabilities is NULL");
    REFUSED(kiln_tree_growth_step(NULL, tokens, logs, NULL, NULL), "growth is NULL");
    assert_ok(kiln_tree_growth_step(growth, tokens, logs, NULL, NULL));
    REFUSED(kiln_tree_growth_step(growth, tokens, logs, NULL, NULL), "there were 1 steps already");
    REFUSED(kiln_tree_growth_finish(growth, NULL, out), "out_tree is NULL");
    REFUSED(kiln_tree_growth_finish(growth, &tree, NULL), "out_tokens is NULL");
    REFUSED(kiln_tree_growth_finish(NULL, &tree, out), "growth is NULL");
#undef REFUSED
    kiln_tree_growth_destroy(growth);
    kiln_tree_growth_destroy(NULL);
}

int main(void) {
    state = (uint64_t)time(NULL);
    const char *given = getenv("KILN_TEST_SEED");
    if (given) state = strtoull(given, NULL, 10);
    printf("# KILN_TEST_SEED=%llu\n", (unsigned long long)state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampling_is_followed),    cmocka_unit_test(one_child_is_accepted_as_often_as_it_can_be),
        cmocka_unit_test(bad_samples_are_refused), cmocka_unit_test(the_likeliest_paths_grow),
        cmocka_unit_test(bad_growth_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
