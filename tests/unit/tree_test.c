/* Trees of draft tokens: by parents against the definition of each array, and by choices against Medusa's way of making
 * its buffers, for its published choices and for random ones. */
#include "tests/assert_ok.h"
#include <kiln/tree.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { LONGEST = 16, MOST = 512 };

static uint64_t state;

static int32_t draw(int32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((state >> 33) % (uint64_t)below);
}

static bool sees(const kiln_tree *tree, int32_t node, int32_t other) {
    return tree->mask[node * tree->mask_words + other / 32] >> other % 32 & 1;
}

/* ---- By parents ---- */

static void expect_tree(const kiln_tree *tree, const int32_t *parents, int32_t nodes) {
    int32_t depth = 0, leaves = 0, leaf = nodes;
    assert_int_equal(tree->nodes, nodes);
    assert_int_equal(tree->mask_words, (nodes + 31) / 32);
    for (int32_t i = 0; i < nodes; i++) {
        bool ancestor[KILN_TREE_NODES_MOST] = {false}, has_child = false;
        int32_t distance = -1;
        for (int32_t node = i; node >= 0; node = parents[node], distance++)
            ancestor[node] = true;
        assert_int_equal(tree->parents[i], parents[i]);
        assert_int_equal(tree->positions[i], distance);
        depth = distance + 1 > depth ? distance + 1 : depth;
        for (int32_t j = 0; j < nodes; j++) {
            assert_int_equal(sees(tree, i, j), ancestor[j]);
            has_child |= parents[j] == i;
        }
        for (int32_t j = nodes; j < 32 * tree->mask_words; j++)
            assert_false(sees(tree, i, j));
        leaves += !has_child;
    }
    assert_int_equal(tree->depth, depth);
    assert_int_equal(tree->leaves, leaves);
    for (int32_t i = 0; i < leaves; i++) {
        const int32_t *path = tree->paths + (ptrdiff_t)i * depth;
        int32_t last = depth - 1;
        assert_int_equal(path[0], 0);
        while (path[last] < 0)
            assert_int_equal(path[last--], -1);
        for (int32_t d = 1; d <= last; d++)
            assert_int_equal(parents[path[d]], path[d - 1]);
        for (int32_t j = 0; j < nodes; j++)
            assert_int_not_equal(parents[j], path[last]);
        assert_true(path[last] < leaf);
        leaf = path[last];
    }
}

static void arrays_are_as_parents_say(void **unused) {
    (void)unused;
    for (int round = 0; round < 200; round++) {
        int32_t parents[MOST] = {-1}, nodes = 1 + draw(round < 100 ? 8 : MOST), reach = 1 + draw(MOST);
        for (int32_t i = 1; i < nodes; i++)
            parents[i] = i <= reach ? draw(i) : i - 1 - draw(reach);
        const kiln_tree *tree;
        assert_ok(kiln_tree_create(parents, nodes, &tree));
        expect_tree(tree, parents, nodes);
        assert_null(tree->tokens);
        kiln_tree_destroy(tree);
    }
}

static void the_largest_trees_are_made(void **unused) {
    (void)unused;
    static int32_t chain[KILN_TREE_NODES_MOST], star[KILN_TREE_NODES_MOST];
    for (int32_t i = 0; i < KILN_TREE_NODES_MOST; i++) {
        chain[i] = i - 1;
        star[i] = i ? 0 : -1;
    }
    const kiln_tree *tree;
    assert_ok(kiln_tree_create(chain, KILN_TREE_NODES_MOST, &tree));
    expect_tree(tree, chain, KILN_TREE_NODES_MOST);
    kiln_tree_destroy(tree);
    assert_ok(kiln_tree_create(star, KILN_TREE_NODES_MOST, &tree));
    expect_tree(tree, star, KILN_TREE_NODES_MOST);
    kiln_tree_destroy(tree);
}

/* ---- By choices ---- */

typedef struct choice {
    int32_t length;
    int32_t numbers[LONGEST];
} choice;

static int by_length(const void *a, const void *b) {
    const choice *x = a, *y = b;
    if (x->length != y->length) return x->length - y->length;
    for (int32_t i = 0; i < x->length; i++)
        if (x->numbers[i] != y->numbers[i]) return x->numbers[i] - y->numbers[i];
    return 0;
}

/* The node of the first `length` numbers of a path: sorted[i] is that of node i + 1. */
static int32_t node_of(const choice *sorted, int32_t count, const choice *c, int32_t length) {
    choice beginning = *c;
    beginning.length = length;
    for (int32_t i = 0; i < count; i++)
        if (length && by_length(&sorted[i], &beginning) == 0) return i + 1;
    return 0;
}

/* Medusa's buffers, as its paper and its generate_medusa_buffers define them. */
static void expect_medusa(const choice *choices, int32_t count, int32_t top_k) {
    int32_t flat[MOST * LONGEST], lengths[MOST], used = 0;
    static choice sorted[MOST];
    for (int32_t i = 0; i < count; i++) {
        memcpy(flat + used, choices[i].numbers, sizeof *flat * (size_t)choices[i].length);
        used += lengths[i] = choices[i].length;
    }
    memcpy(sorted, choices, sizeof *sorted * (size_t)count);
    qsort(sorted, (size_t)count, sizeof *sorted, by_length);
    const kiln_tree *tree;
    assert_ok(kiln_tree_create_from_choices(flat, lengths, count, top_k, &tree));
    assert_int_equal(tree->nodes, count + 1);
    assert_int_equal(tree->tokens[0], 0);
    assert_int_equal(tree->positions[0], 0);
    bool retrieved[MOST + 1] = {false};
    int32_t longest = count ? sorted[count - 1].length + 1 : 1, row = 0;
    assert_int_equal(tree->depth, longest);
    for (int32_t i = 0; i < count; i++) {
        const choice *c = &sorted[i];
        assert_int_equal(tree->positions[i + 1], c->length);
        assert_int_equal(tree->tokens[i + 1], c->numbers[c->length - 1] + top_k * (c->length - 1) + 1);
        for (int32_t j = 0; j <= count; j++) {
            bool ancestor = false;
            for (int32_t d = 0; d <= c->length; d++)
                ancestor |= node_of(sorted, count, c, d) == j;
            assert_int_equal(sees(tree, i + 1, j), ancestor);
        }
    }
    for (int32_t i = count; i > 0; i--) {
        if (retrieved[i]) continue;
        for (int32_t d = 0; d < longest; d++) {
            const choice *c = &sorted[i - 1];
            int32_t node = d <= c->length ? node_of(sorted, count, c, d) : -1;
            assert_int_equal(tree->paths[row * longest + d], node);
            if (node >= 0) retrieved[node] = true;
        }
        row++;
    }
    assert_int_equal(tree->leaves, count ? row : 1);
    kiln_tree_destroy(tree);
}

/* Of Medusa's medusa_choices.py. */
static void medusas_published_tree(void **unused) {
    (void)unused;
    static const char *const mc_sim_7b_63[] = {
        "0",  "00",  "1",   "01",  "2",    "000", "10",  "02",  "3",   "03",  "4",   "04",  "20",   "05",  "001", "5",
        "06", "6",   "07",  "010", "11",   "7",   "08",  "002", "30",  "09",  "8",   "9",   "100",  "020", "12",  "003",
        "40", "21",  "004", "005", "0000", "011", "006", "030", "50",  "13",  "007", "008", "009",  "60",  "040", "14",
        "70", "012", "200", "31",  "22",   "80",  "050", "15",  "101", "021", "90",  "060", "0001", "16",  "070"};
    enum { COUNT = sizeof mc_sim_7b_63 / sizeof *mc_sim_7b_63 };
    assert_int_equal(COUNT, 63);
    choice choices[COUNT] = {{0}};
    for (int i = 0; i < COUNT; i++)
        for (const char *at = mc_sim_7b_63[i]; *at; at++)
            choices[i].numbers[choices[i].length++] = *at - '0';
    expect_medusa(choices, COUNT, 10);
}

static void any_tree_of_choices(void **unused) {
    (void)unused;
    for (int round = 0; round < 50; round++) {
        static choice choices[MOST];
        int32_t count = 0, wanted = draw(60), top_k = 1 + draw(12);
        for (int tries = 0; count < wanted && tries < 1000; tries++) {
            choice next = {0};
            int32_t parent = draw(count + 1);
            if (parent) next = choices[parent - 1];
            if (next.length == LONGEST) continue;
            next.numbers[next.length++] = draw(top_k);
            bool there = false;
            for (int32_t i = 0; i < count; i++)
                there |= by_length(&choices[i], &next) == 0;
            if (!there) choices[count++] = next;
        }
        for (int32_t i = count - 1; i > 0; i--) { /* in any order */
            const choice other = choices[i];
            const int32_t j = draw(i + 1);
            choices[i] = choices[j];
            choices[j] = other;
        }
        expect_medusa(choices, count, top_k);
    }
}

/* ---- Verification ---- */

/* Nodes of few tokens and targets: against the accepted nodes as they are defined, one by one. */
static void greedy_decoding_is_followed(void **unused) {
    (void)unused;
    for (int round = 0; round < 500; round++) {
        int32_t parents[MOST] = {-1}, tokens[MOST], targets[MOST], path[MOST], nodes = 1 + draw(40);
        const int32_t vocabulary = 1 + draw(3);
        for (int32_t i = 0; i < nodes; i++) {
            if (i) parents[i] = draw(i);
            tokens[i] = draw(vocabulary);
            targets[i] = draw(vocabulary);
        }
        const kiln_tree *tree;
        assert_ok(kiln_tree_create(parents, nodes, &tree));
        int32_t accepted, next, node = 0;
        assert_ok(kiln_tree_verify_greedy(tree, tokens, targets, path, &accepted, &next));
        assert_in_range(accepted, 1, tree->depth);
        for (int32_t i = 0; i < tree->depth; i++) {
            if (i >= accepted) {
                assert_int_equal(path[i], -1);
                continue;
            }
            assert_int_equal(path[i], node);
            const int32_t parent = node;
            node = -1;
            for (int32_t j = nodes - 1; j > 0; j--)
                if (parents[j] == parent && tokens[j] == targets[parent]) node = j;
            if (i == accepted - 1) {
                assert_int_equal(node, -1);
                assert_int_equal(next, targets[parent]);
            }
        }
        kiln_tree_destroy(tree);
    }
}

/* ---- Refusals ---- */

static void expect_refused(kiln_status status, const kiln_tree *const *tree, const char *text) {
    assert_int_equal(status, KILN_ERROR_INVALID_ARGUMENT);
    assert_null(*tree);
    if (!strstr(kiln_last_error(), text)) fail_msg("\"%s\" does not say \"%s\"", kiln_last_error(), text);
}

static void bad_trees_are_refused(void **unused) {
    (void)unused;
    const kiln_tree *tree;
    const int32_t cycle[] = {-1, 2, 1}, no_root[] = {0}, negative[] = {-1, -1};
    expect_refused(kiln_tree_create(cycle, 3, &tree), &tree, "parents[1] is 2: must be from 0 to 0");
    expect_refused(kiln_tree_create(no_root, 1, &tree), &tree, "parents[0] is 0: must be -1");
    expect_refused(kiln_tree_create(negative, 2, &tree), &tree, "parents[1] is -1");
    expect_refused(kiln_tree_create(NULL, 2, &tree), &tree, "parents is NULL");
    expect_refused(kiln_tree_create(no_root, 0, &tree), &tree, "nodes is 0: must be from 1 to 1024");
    expect_refused(kiln_tree_create(no_root, 1025, &tree), &tree, "nodes is 1025");
    assert_int_equal(kiln_tree_create(no_root, 1, NULL), KILN_ERROR_INVALID_ARGUMENT);

    const int32_t choices[] = {0, 1, 0, 1}, orphan[] = {0, 1, 1}, two[] = {2, 1}, same[] = {1, 1, 1}, none[] = {0},
                  ones[] = {1, 1};
    expect_refused(kiln_tree_create_from_choices(orphan, two, 2, 2, &tree), &tree, "path 0 lacks its parent");
    expect_refused(kiln_tree_create_from_choices(choices, same, 3, 2, &tree), &tree, "are the same");
    expect_refused(kiln_tree_create_from_choices(choices, none, 1, 2, &tree), &tree, "lengths[0] is 0");
    expect_refused(kiln_tree_create_from_choices(choices, ones, 2, 1, &tree), &tree, "number 0 of path 1 is 1");
    expect_refused(kiln_tree_create_from_choices(NULL, ones, 2, 1, &tree), &tree, "choices is NULL");
    expect_refused(kiln_tree_create_from_choices(choices, NULL, 2, 1, &tree), &tree, "lengths is NULL");
    expect_refused(kiln_tree_create_from_choices(choices, ones, -1, 1, &tree), &tree, "count is -1");
    expect_refused(kiln_tree_create_from_choices(choices, ones, 1024, 1, &tree), &tree, "count is 1024");
    expect_refused(kiln_tree_create_from_choices(choices, ones, 2, 0, &tree), &tree, "top_k is 0");

    const kiln_tree *root;
    int32_t path[1], accepted = 7, next = 7;
    assert_ok(kiln_tree_create_from_choices(NULL, NULL, 0, 1, &root));
    assert_int_equal(kiln_tree_verify_greedy(root, NULL, ones, path, &accepted, &next), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "tokens is NULL"));
    assert_int_equal(accepted | next, 0);
    assert_int_equal(kiln_tree_verify_greedy(NULL, ones, ones, path, &accepted, &next), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_tree_verify_greedy(root, ones, NULL, path, &accepted, &next), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_tree_verify_greedy(root, ones, ones, NULL, &accepted, &next), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_tree_verify_greedy(root, ones, ones, path, NULL, &next), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_tree_verify_greedy(root, ones, ones, path, &accepted, NULL), KILN_ERROR_INVALID_ARGUMENT);
    kiln_tree_destroy(root);
    kiln_tree_destroy(NULL);
}

int main(void) {
    state = (uint64_t)time(NULL);
    const char *given = getenv("KILN_TEST_SEED");
    if (given) state = strtoull(given, NULL, 10);
    printf("# KILN_TEST_SEED=%llu\n", (unsigned long long)state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_as_parents_say),   cmocka_unit_test(the_largest_trees_are_made),
        cmocka_unit_test(medusas_published_tree),      cmocka_unit_test(any_tree_of_choices),
        cmocka_unit_test(greedy_decoding_is_followed), cmocka_unit_test(bad_trees_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
