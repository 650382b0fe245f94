/* The JSON writer: nesting, numbers, and strings of any bytes. */
#include "loader/cli/json.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static char *text;
static size_t text_size;

static json_writer begin(void) {
    json_writer json = {.file = open_memstream(&text, &text_size)};
    assert_non_null(json.file);
    return json;
}

static void assert_written(json_writer *json, const char *expected) {
    assert_int_equal(fclose(json->file), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void nests(void **state) {
    (void)state;
    json_writer json = begin();
    json_object(&json, NULL);
    json_integer(&json, "least", INT64_MIN);
    json_array(&json, "list");
    json_bool(&json, NULL, true);
    json_string(&json, NULL, NULL);
    json_object(&json, NULL);
    json_close(&json);
    json_close(&json);
    json_array(&json, "empty");
    json_close(&json);
    json_number(&json, "half", 0.5);
    json_close(&json);
    assert_written(&json, "{\n"
                          "  \"least\": -9223372036854775808,\n"
                          "  \"list\": [\n"
                          "    true,\n"
                          "    null,\n"
                          "    {}\n"
                          "  ],\n"
                          "  \"empty\": [],\n"
                          "  \"half\": 0.5\n"
                          "}\n");
}

static void has_no_infinity(void **state) {
    (void)state;
    json_writer json = begin();
    json_array(&json, NULL);
    json_number(&json, NULL, NAN);
    json_number(&json, NULL, -INFINITY);
    json_number(&json, NULL, 1e300);
    json_close(&json);
    assert_written(&json, "[\n  null,\n  null,\n  1e+300\n]\n");
}

typedef struct string_case {
    const char *bytes;
    const char *written;
} string_case;

static const string_case string_cases[] = {
    {"", "\"\""},
    {"a \"b\" \\c/", "\"a \\\"b\\\" \\\\c/\""},
    {"\n\t\x1b[31m\x7f", "\"\\u000a\\u0009\\u001b[31m\\u007f\""},
    {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\xa5", "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\xa5\""},
    {"\xc2\x9b", "\"\\u009b\""},                              /* CSI as one C1 control */
    {"\x80z", "\"\\ufffdz\""},                                /* a continuation alone */
    {"\xe2\x82", "\"\\ufffd\\ufffd\""},                       /* the string ends in a sequence */
    {"\xc0\xaf", "\"\\ufffd\\ufffd\""},                       /* '/' overlong */
    {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},            /* a surrogate */
    {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* beyond U+10FFFF */
    {"\xff", "\"\\ufffd\""},
};

static void escapes_strings(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof string_cases / sizeof *string_cases; i++) {
        json_writer json = begin();
        json_string(&json, NULL, string_cases[i].bytes);
        assert_written(&json, string_cases[i].written);
    }
}

static void escapes_keys(void **state) {
    (void)state;
    json_writer json = begin();
    json_object(&json, NULL);
    json_bool(&json, "\"\n", false);
    json_close(&json);
    assert_written(&json, "{\n  \"\\\"\\u000a\": false\n}\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nests),
        cmocka_unit_test(has_no_infinity),
        cmocka_unit_test(escapes_strings),
        cmocka_unit_test(escapes_keys),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
