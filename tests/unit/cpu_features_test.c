/* What the machine is said to have, against what Linux says, and how features make levels. */
#include "loader/cpu/cpu_features.h"
#include "tests/unit/emulated.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct feature_row {
    const char *name;
    int32_t level;
    uint32_t word, bits;
} feature_row;

static const feature_row features_list[] = {
#define FEATURE(name, level, word, bits) {name, level, KILN__CPU_##word, bits},
    KILN__CPU_FEATURES(FEATURE)
#undef FEATURE
};
enum { FEATURE_COUNT = sizeof features_list / sizeof features_list[0] };

static int32_t highest_level(void) {
    int32_t highest = 0;
    for (size_t i = 0; i < kiln__cpu_target_count; i++)
        if (strcmp(kiln__cpu_targets[i].host, KILN__CPU_HOST) == 0 && kiln__cpu_targets[i].level > highest)
            highest = kiln__cpu_targets[i].level;
    return highest;
}

static int32_t best_level(const kiln__cpu_features *features) {
    const kiln__cpu_target *best = kiln__cpu_features_best(features);
    return best ? best->level : 0;
}

/* The features as /proc/cpuinfo lists them, with a space before and after each; NULL if they are not those of the
 * processor that runs this test, or not there. */
static char *read_cpuinfo(void) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return NULL;
    char *line = NULL, *list = NULL;
    size_t size = 0;
    const char *key = strcmp(KILN__CPU_HOST, "aarch64") == 0 ? "Features" : "flags";
    while (!list && getline(&line, &size, file) > 0) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        assert_true(asprintf(&list, "%s ", strchr(line, ':') + 1) > 0);
    }
    free(line);
    fclose(file);
    return list;
}

static bool lists(const char *list, const char *name) {
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

static void test_machine_agrees_with_cpuinfo(void **state) {
    (void)state;
    char *list = read_cpuinfo();
    if (!list || is_emulated()) {
        free(list);
        skip();
    }
    kiln__cpu_features machine;
    kiln__cpu_features_read(&machine);
    int32_t level = highest_level();
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        const feature_row *feature = &features_list[i];
        if (strchr(feature->name, ' ')) continue; /* register state, which has no flag of its own */
        bool listed = lists(list, feature->name);
        if (listed && (machine.words[feature->word] & feature->bits) != feature->bits)
            fail_msg("/proc/cpuinfo lists %s, kiln does not find it", feature->name);
        if (!listed && feature->level <= level) level = feature->level - 1;
    }
    free(list);
    const kiln__cpu_target *best = kiln__cpu_features_best(&machine);
    print_message("# level %s\n", best ? best->name : "none");
    assert_int_equal(best_level(&machine), level);
}

static void test_each_missing_feature_lowers_the_level(void **state) {
    (void)state;
    kiln__cpu_features all;
    memset(&all, 0xff, sizeof all);
    assert_int_equal(best_level(&all), highest_level());
    assert_null(kiln__cpu_features_missing(&all, highest_level()));
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        const feature_row *feature = &features_list[i];
        for (uint32_t bit = 1; bit; bit <<= 1) {
            if (!(feature->bits & bit)) continue;
            kiln__cpu_features less = all;
            less.words[feature->word] &= ~bit;
            assert_true(best_level(&less) < feature->level);
            assert_string_equal(kiln__cpu_features_missing(&less, feature->level), feature->name);
            assert_null(kiln__cpu_features_missing(&less, feature->level - 1));
        }
    }
}

static void test_machine_below_all_levels_has_none(void **state) {
    (void)state;
    kiln__cpu_features none = {{0}};
    assert_null(kiln__cpu_features_best(&none));
    assert_string_equal(kiln__cpu_features_missing(&none, highest_level()), features_list[0].name);
}

static void test_name_is_cut_to_its_room(void **state) {
    (void)state;
    char name[128], cut[4] = "xxx";
    kiln__cpu_name(name, sizeof name);
    assert_true(strlen(name) > 0);
    print_message("# %s\n", name);
    kiln__cpu_name(cut, sizeof cut);
    assert_memory_equal(cut, name, 3);
    assert_int_equal(cut[3], '\0');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine_agrees_with_cpuinfo),
        cmocka_unit_test(test_each_missing_feature_lowers_the_level),
        cmocka_unit_test(test_machine_below_all_levels_has_none),
        cmocka_unit_test(test_name_is_cut_to_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
