/* Every fuzz target over its committed inputs. With the name of a target as argument: that one alone. */
#include "tests/fuzz/targets.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Runs a target on one file, in memory of exactly its size. */
static void replay_file(void (*target)(const uint8_t *, size_t), const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size >= 0);
    rewind(file);
    uint8_t *bytes = malloc(size ? (size_t)size : 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    target(bytes, (size_t)size);
    free(bytes);
}

static void replay(const char *name, void (*target)(const uint8_t *, size_t)) {
    char folder[64], path[512];
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name);
    DIR *inputs = opendir(folder);
    if (!inputs) fail_msg("%s cannot be opened: run from the repository's root", folder);
    unsigned files = 0;
    for (struct dirent *entry; (entry = readdir(inputs));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        replay_file(target, path);
        files++;
    }
    closedir(inputs);
    assert_true(files > 0);
}

#define REPLAY_TEST(name, source)    \
    static void name(void **state) { \
        (void)state;                 \
        replay(#name, fuzz_##name);  \
    }
FUZZ_TARGETS(REPLAY_TEST)
#undef REPLAY_TEST

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
#define REPLAY_ENTRY(name, source) cmocka_unit_test(name),
        FUZZ_TARGETS(REPLAY_ENTRY)
#undef REPLAY_ENTRY
    };
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
