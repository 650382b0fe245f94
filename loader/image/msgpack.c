#include "loader/image/msgpack.h"

#include <string.h>

static kiln_status too_short(void) {
    return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "msgpack: the bytes end within a value");
}

/* A big-endian number of 1, 2, 4 or 8 bytes. */
static kiln_status take_number(kiln__bytes *rest, unsigned size, uint64_t *out_number) {
    if (rest->size < size) return too_short();
    uint64_t number = 0;
    for (unsigned i = 0; i < size; i++)
        number = number << 8 | rest->at[i];
    rest->at += size;
    rest->size -= size;
    *out_number = number;
    return KILN_OK;
}

static kiln_status take_bytes(kiln__bytes *rest, kiln__msgpack_type type, uint64_t size, kiln__msgpack_value *value) {
    if (size > rest->size) return too_short();
    value->type = type;
    value->bytes = (kiln__bytes){rest->at, (size_t)size};
    rest->at += size;
    rest->size -= (size_t)size;
    return KILN_OK;
}

/* A head whose values follow, each of one byte or more. */
static kiln_status take_container(const kiln__bytes *rest, kiln__msgpack_type type, uint64_t count,
                                  kiln__msgpack_value *value) {
    uint64_t values = type == KILN__MSGPACK_MAP ? 2 * count : count;
    if (values > rest->size) return too_short();
    value->type = type;
    value->count = (uint32_t)count;
    return KILN_OK;
}

/* Integers that are not negative are UNSIGNED, however they are written. */
static kiln_status take_signed(kiln__bytes *rest, unsigned size, kiln__msgpack_value *value) {
    uint64_t number = 0;
    KILN__TRY(take_number(rest, size, &number));
    uint64_t sign = UINT64_C(1) << (8 * size - 1);
    value->type = number & sign ? KILN__MSGPACK_NEGATIVE : KILN__MSGPACK_UNSIGNED;
    value->number = (number ^ sign) - sign; /* extends the sign; shares its bytes with value->negative */
    return KILN_OK;
}

/* A value whose first byte is 0xc0 to 0xdf. Codes of a group stand in order of the size of their number: 1, 2, 4, 8. */
static kiln_status take_coded(kiln__bytes *rest, uint8_t code, kiln__msgpack_value *value) {
    uint64_t number = 0;
    switch (code) {
    case 0xc0:
        value->type = KILN__MSGPACK_NIL;
        return KILN_OK;
    case 0xc2:
    case 0xc3:
        value->type = KILN__MSGPACK_BOOL;
        value->boolean = code == 0xc3;
        return KILN_OK;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        KILN__TRY(take_number(rest, 1u << (code - 0xc4), &number));
        return take_bytes(rest, KILN__MSGPACK_BINARY, number, value);
    case 0xc7: /* an extension of any size: its type is one byte more */
    case 0xc8:
    case 0xc9:
        KILN__TRY(take_number(rest, 1u << (code - 0xc7), &number));
        return take_bytes(rest, KILN__MSGPACK_BINARY, number + 1, value);
    case 0xca:
    case 0xcb:
        KILN__TRY(take_number(rest, 4u << (code - 0xca), &number));
        value->type = KILN__MSGPACK_FLOAT;
        return KILN_OK;
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        value->type = KILN__MSGPACK_UNSIGNED;
        return take_number(rest, 1u << (code - 0xcc), &value->number);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return take_signed(rest, 1u << (code - 0xd0), value);
    case 0xd4: /* extensions of 1, 2, 4, 8, 16 bytes */
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return take_bytes(rest, KILN__MSGPACK_BINARY, 1 + (UINT64_C(1) << (code - 0xd4)), value);
    case 0xd9:
    case 0xda:
    case 0xdb:
        KILN__TRY(take_number(rest, 1u << (code - 0xd9), &number));
        return take_bytes(rest, KILN__MSGPACK_STRING, number, value);
    case 0xdc:
    case 0xdd:
        KILN__TRY(take_number(rest, 2u << (code - 0xdc), &number));
        return take_container(rest, KILN__MSGPACK_ARRAY, number, value);
    case 0xde:
    case 0xdf:
        KILN__TRY(take_number(rest, 2u << (code - 0xde), &number));
        return take_container(rest, KILN__MSGPACK_MAP, number, value);
    default: /* 0xc1 */
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "msgpack: 0x%02x begins no value", code);
    }
}

kiln_status kiln__msgpack_next(kiln__bytes *rest, kiln__msgpack_value *out_value) {
    memset(out_value, 0, sizeof *out_value);
    if (rest->size == 0) return too_short();
    uint8_t code = *rest->at++;
    rest->size--;
    if (code >= 0xe0) { /* -32 to -1 */
        out_value->type = KILN__MSGPACK_NEGATIVE;
        out_value->negative = (int64_t)code - 256;
        return KILN_OK;
    }
    if (code >= 0xc0) return take_coded(rest, code, out_value);
    if (code >= 0xa0) return take_bytes(rest, KILN__MSGPACK_STRING, code & 31, out_value);
    if (code >= 0x90) return take_container(rest, KILN__MSGPACK_ARRAY, code & 15, out_value);
    if (code >= 0x80) return take_container(rest, KILN__MSGPACK_MAP, code & 15, out_value);
    out_value->type = KILN__MSGPACK_UNSIGNED;
    out_value->number = code;
    return KILN_OK;
}

kiln_status kiln__msgpack_skip(kiln__bytes *rest) {
    /* Each head adds at most as many values as there are bytes left, so that the sum of what is due cannot wrap. */
    for (uint64_t due = 1; due > 0; due--) {
        kiln__msgpack_value value;
        KILN__TRY(kiln__msgpack_next(rest, &value));
        if (value.type == KILN__MSGPACK_ARRAY) due += value.count;
        if (value.type == KILN__MSGPACK_MAP) due += 2 * (uint64_t)value.count;
        if (due - 1 > rest->size) return too_short();
    }
    return KILN_OK;
}

kiln_status kiln__msgpack_expect(kiln__bytes *rest, kiln__msgpack_type type, const char *what,
                                 kiln__msgpack_value *out_value) {
    static const char *const names[] = {
        [KILN__MSGPACK_NIL] = "nil",
        [KILN__MSGPACK_BOOL] = "a bool",
        [KILN__MSGPACK_UNSIGNED] = "a number that is not negative",
        [KILN__MSGPACK_NEGATIVE] = "a negative number",
        [KILN__MSGPACK_FLOAT] = "a float",
        [KILN__MSGPACK_STRING] = "a string",
        [KILN__MSGPACK_BINARY] = "binary",
        [KILN__MSGPACK_ARRAY] = "an array",
        [KILN__MSGPACK_MAP] = "a map",
    };
    KILN__TRY(kiln__msgpack_next(rest, out_value));
    if (out_value->type != type)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "msgpack: %s is %s: must be %s", what, names[out_value->type],
                          names[type]);
    return KILN_OK;
}

bool kiln__msgpack_is(const kiln__msgpack_value *value, const char *text) {
    return value->type == KILN__MSGPACK_STRING && value->bytes.size == strlen(text) &&
           memcmp(value->bytes.at, text, value->bytes.size) == 0;
}
