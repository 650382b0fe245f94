/* Error texts and the log. */
#include "loader/status.h"
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_status_has_a_text(void **state) {
    (void)state;
#define CHECK_STATUS(name, text) assert_string_equal(kiln_status_text(KILN_##name), text);
    KILN_STATUS_MAP(CHECK_STATUS)
#undef CHECK_STATUS
    assert_string_equal(kiln_status_text((kiln_status)-1), "unknown status");
    assert_string_equal(kiln_status_text((kiln_status)1000), "unknown status");
}

static void *fail_elsewhere(void *unused) {
    (void)unused;
    if (kiln_last_error()[0]) return "the thread began with an error";
    kiln__fail(KILN_ERROR_DRIVER, "elsewhere");
    return strcmp(kiln_last_error(), "elsewhere") == 0 ? NULL : "the text was lost";
}

static void the_last_error_is_each_threads_own(void **state) {
    (void)state;
    assert_int_equal(kiln__fail(KILN_ERROR_NOT_FOUND, "%s %d", "here", 1), KILN_ERROR_NOT_FOUND);
    pthread_t thread;
    void *complaint;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, &complaint);
    assert_null(complaint);
    assert_string_equal(kiln_last_error(), "here 1");
}

static void a_text_may_be_made_of_the_one_before(void **state) {
    (void)state;
    kiln__fail(KILN_ERROR_DRIVER, "inner");
    kiln__fail(KILN_ERROR_DRIVER, "outer (%s)", kiln_last_error());
    assert_string_equal(kiln_last_error(), "outer (inner)");
    kiln__fail_within(KILN_ERROR_DRIVER, "softmax %s", "f16");
    assert_string_equal(kiln_last_error(), "softmax f16: outer (inner)");
}

static void long_texts_are_cut(void **state) {
    (void)state;
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    kiln__fail(KILN_ERROR_DRIVER, "%s", text);
    assert_int_equal(strlen(kiln_last_error()), 2047);
    kiln__fail_within(KILN_ERROR_DRIVER, "%s", text);
    assert_true(strlen(kiln_last_error()) <= 2047);
}

static void count_lines(void *user, kiln_log_level level, const char *text) {
    assert_int_equal(level, KILN_LOG_WARNING);
    assert_string_equal(text, "line 1");
    ++*(int *)user;
}

static void the_log_goes_where_it_was_asked_to(void **state) {
    (void)state;
    int lines = 0;
    kiln__log(KILN_LOG_WARNING, "line %d", 1);
    kiln_set_log(count_lines, &lines);
    kiln__log(KILN_LOG_WARNING, "line %d", 1);
    assert_int_equal(lines, 1);
    kiln__log(KILN_LOG_WARNING, "line %d\nline 1", 1); /* a call for each */
    kiln_set_log(NULL, NULL);
    kiln__log(KILN_LOG_WARNING, "line %d", 1);
    assert_int_equal(lines, 3);
}

static void the_library_says_its_version(void **state) {
    (void)state;
    assert_int_equal(kiln_version(), KILN_VERSION_MAJOR * 10000 + KILN_VERSION_MINOR * 100 + KILN_VERSION_PATCH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_text),
        cmocka_unit_test(the_last_error_is_each_threads_own),
        cmocka_unit_test(a_text_may_be_made_of_the_one_before),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(the_log_goes_where_it_was_asked_to),
        cmocka_unit_test(the_library_says_its_version),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
