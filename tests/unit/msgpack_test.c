/* The reader of MessagePack: each form of value, and bytes that end too early. */
#include "loader/image/msgpack.h"
#include "tests/unit/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Bytes of one value; what must be read; how many values a skip of it goes over is told by its size. */
typedef struct value_case {
    const char *bytes;
    size_t size;
    kiln__msgpack_type type;
    uint64_t number; /* UNSIGNED, NEGATIVE (as two's complement), BOOL, or a count or length */
} value_case;

#define BYTES(text) text, sizeof text - 1

static const value_case values[] = {
    {BYTES("\xc0"), KILN__MSGPACK_NIL, 0},
    {BYTES("\xc2"), KILN__MSGPACK_BOOL, 0},
    {BYTES("\xc3"), KILN__MSGPACK_BOOL, 1},
    {BYTES("\x00"), KILN__MSGPACK_UNSIGNED, 0},
    {BYTES("\x7f"), KILN__MSGPACK_UNSIGNED, 127},
    {BYTES("\xe0"), KILN__MSGPACK_NEGATIVE, (uint64_t)-32},
    {BYTES("\xff"), KILN__MSGPACK_NEGATIVE, (uint64_t)-1},
    {BYTES("\xcc\xff"), KILN__MSGPACK_UNSIGNED, 255},
    {BYTES("\xcd\x12\x34"), KILN__MSGPACK_UNSIGNED, 0x1234},
    {BYTES("\xce\x12\x34\x56\x78"), KILN__MSGPACK_UNSIGNED, 0x12345678},
    {BYTES("\xcf\xff\x23\x45\x67\x89\xab\xcd\xef"), KILN__MSGPACK_UNSIGNED, 0xff23456789abcdef},
    {BYTES("\xd0\x7f"), KILN__MSGPACK_UNSIGNED, 127},
    {BYTES("\xd0\x80"), KILN__MSGPACK_NEGATIVE, (uint64_t)-128},
    {BYTES("\xd1\x80\x00"), KILN__MSGPACK_NEGATIVE, (uint64_t)-32768},
    {BYTES("\xd1\x12\x34"), KILN__MSGPACK_UNSIGNED, 0x1234},
    {BYTES("\xd2\xff\xff\xff\xfe"), KILN__MSGPACK_NEGATIVE, (uint64_t)-2},
    {BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), KILN__MSGPACK_NEGATIVE, UINT64_C(1) << 63},
    {BYTES("\xca\x3f\x80\x00\x00"), KILN__MSGPACK_FLOAT, 0},
    {BYTES("\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"), KILN__MSGPACK_FLOAT, 0},
    {BYTES("\xa0"), KILN__MSGPACK_STRING, 0},
    {BYTES("\xa3"
           "abc"),
     KILN__MSGPACK_STRING, 3},
    {BYTES("\xd9\x03"
           "abc"),
     KILN__MSGPACK_STRING, 3},
    {BYTES("\xda\x00\x03"
           "abc"),
     KILN__MSGPACK_STRING, 3},
    {BYTES("\xdb\x00\x00\x00\x03"
           "abc"),
     KILN__MSGPACK_STRING, 3},
    {BYTES("\xc4\x02\x00\x01"), KILN__MSGPACK_BINARY, 2},
    {BYTES("\xc5\x00\x02\x00\x01"), KILN__MSGPACK_BINARY, 2},
    {BYTES("\xc6\x00\x00\x00\x02\x00\x01"), KILN__MSGPACK_BINARY, 2},
    {BYTES("\xc7\x01\x09z"), KILN__MSGPACK_BINARY, 2},
    {BYTES("\xc8\x00\x01\x09z"), KILN__MSGPACK_BINARY, 2},
    {BYTES("\xc9\x00\x00\x00\x01\x09z"), KILN__MSGPACK_BINARY, 2},
    {BYTES("\xd4\x09z"), KILN__MSGPACK_BINARY, 2},
    {BYTES("\xd5\x09zz"), KILN__MSGPACK_BINARY, 3},
    {BYTES("\xd6\x09zzzz"), KILN__MSGPACK_BINARY, 5},
    {BYTES("\xd7\x09zzzzzzzz"), KILN__MSGPACK_BINARY, 9},
    {BYTES("\xd8\x09zzzzzzzzzzzzzzzz"), KILN__MSGPACK_BINARY, 17},
    {BYTES("\x90"), KILN__MSGPACK_ARRAY, 0},
    {BYTES("\x92\x01\x02"), KILN__MSGPACK_ARRAY, 2},
    {BYTES("\xdc\x00\x02\x01\x02"), KILN__MSGPACK_ARRAY, 2},
    {BYTES("\xdd\x00\x00\x00\x02\x01\x02"), KILN__MSGPACK_ARRAY, 2},
    {BYTES("\x80"), KILN__MSGPACK_MAP, 0},
    {BYTES("\x81\xa1k\x92\x01\x81\x02\x03"), KILN__MSGPACK_MAP, 1},
    {BYTES("\xde\x00\x01\xa1k\xa1v"), KILN__MSGPACK_MAP, 1},
    {BYTES("\xdf\x00\x00\x00\x01\xa1k\xc0"), KILN__MSGPACK_MAP, 1},
};
enum { VALUE_COUNT = sizeof values / sizeof *values };

static uint64_t number_of(const kiln__msgpack_value *value) {
    switch (value->type) {
    case KILN__MSGPACK_BOOL:
        return value->boolean;
    case KILN__MSGPACK_UNSIGNED:
        return value->number;
    case KILN__MSGPACK_NEGATIVE:
        return (uint64_t)value->negative;
    case KILN__MSGPACK_STRING:
    case KILN__MSGPACK_BINARY:
        return value->bytes.size;
    case KILN__MSGPACK_ARRAY:
    case KILN__MSGPACK_MAP:
        return value->count;
    default:
        return 0;
    }
}

static void every_form_of_value(void **state) {
    (void)state;
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        image_file bytes = image_copy(values[i].bytes, values[i].size);
        kiln__bytes rest = {bytes.bytes, bytes.size};
        kiln__msgpack_value value;
        assert_int_equal(kiln__msgpack_next(&rest, &value), KILN_OK);
        assert_int_equal(value.type, values[i].type);
        assert_true(number_of(&value) == values[i].number);
        rest = (kiln__bytes){bytes.bytes, bytes.size};
        assert_int_equal(kiln__msgpack_skip(&rest), KILN_OK);
        assert_int_equal(rest.size, 0);
        free(bytes.bytes);
    }
}

static kiln_status skip_one(const void *bytes, size_t size) {
    kiln__bytes rest = {bytes, size};
    return kiln__msgpack_skip(&rest);
}

static void every_value_cut_short(void **state) {
    (void)state;
    for (size_t i = 0; i < VALUE_COUNT; i++)
        for (size_t size = 0; size < values[i].size; size++) {
            image_file bytes = image_copy(values[i].bytes, size);
            assert_int_equal(skip_one(bytes.bytes, size), KILN_ERROR_CORRUPT_IMAGE);
            assert_error_has("the bytes end within a value");
            free(bytes.bytes);
        }
}

static void a_byte_that_begins_no_value(void **state) {
    (void)state;
    assert_int_equal(skip_one("\xc1", 1), KILN_ERROR_CORRUPT_IMAGE);
    assert_error_has("0xc1 begins no value");
}

/* Counts and lengths that promise more than there is. */
static void promises_beyond_the_bytes(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {BYTES("\xdd\xff\xff\xff\xff\x00")},     {BYTES("\xdf\xff\xff\xff\xff\x00")},
        {BYTES("\xdb\xff\xff\xff\xff\x00")},     {BYTES("\xc6\xff\xff\xff\xff\x00")},
        {BYTES("\xc9\xff\xff\xff\xff\x00")},     {BYTES("\xdf\x80\x00\x00\x00\x00")},
        {BYTES("\x92\x92\x92\x00\x00\x00\x91")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(skip_one(cases[i].bytes, cases[i].size), KILN_ERROR_CORRUPT_IMAGE);
}

/* A million arrays, each in the one before: no stack is used up. */
static void depth_takes_no_stack(void **state) {
    (void)state;
    enum { DEPTH = 1000000 };
    uint8_t *bytes = malloc(DEPTH + 1);
    assert_non_null(bytes);
    memset(bytes, 0x91, DEPTH);
    bytes[DEPTH] = 0x07;
    assert_int_equal(skip_one(bytes, DEPTH + 1), KILN_OK);
    assert_int_equal(skip_one(bytes, DEPTH), KILN_ERROR_CORRUPT_IMAGE);
    free(bytes);
}

static void another_type_than_expected(void **state) {
    (void)state;
    for (size_t i = 0; i < VALUE_COUNT; i++)
        for (int type = KILN__MSGPACK_NIL; type <= KILN__MSGPACK_MAP; type++) {
            kiln__bytes rest = {(const uint8_t *)values[i].bytes, values[i].size};
            kiln__msgpack_value value;
            kiln_status status = kiln__msgpack_expect(&rest, (kiln__msgpack_type)type, "its colour", &value);
            assert_int_equal(status, (int)values[i].type == type ? KILN_OK : KILN_ERROR_CORRUPT_IMAGE);
            if (status) assert_error_has("msgpack: its colour is");
        }
}

static void strings_are_compared_whole(void **state) {
    (void)state;
    kiln__bytes rest = {(const uint8_t *)"\xa3"
                                         "abc",
                        4};
    kiln__msgpack_value value;
    assert_int_equal(kiln__msgpack_next(&rest, &value), KILN_OK);
    assert_true(kiln__msgpack_is(&value, "abc"));
    assert_false(kiln__msgpack_is(&value, "ab"));
    assert_false(kiln__msgpack_is(&value, "abcd"));
    assert_false(kiln__msgpack_is(&value, "abd"));
    value.type = KILN__MSGPACK_BINARY;
    assert_false(kiln__msgpack_is(&value, "abc"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_value),         cmocka_unit_test(every_value_cut_short),
        cmocka_unit_test(a_byte_that_begins_no_value), cmocka_unit_test(promises_beyond_the_bytes),
        cmocka_unit_test(depth_takes_no_stack),        cmocka_unit_test(another_type_than_expected),
        cmocka_unit_test(strings_are_compared_whole),
    };
    return cmocka_run_group_tests_name("msgpack", tests, NULL, NULL);
}
