/* A bounded reader of MessagePack, the encoding of AMD's metadata. (github.com/msgpack/msgpack, spec.md.)
 *
 * A reader walks over the bytes value by value. For an array or a map it returns only the head: the elements follow,
 * and the caller reads or skips as many as the head states (pairs, for a map). Nothing is copied or allocated, and
 * nesting uses no stack, so only the number of bytes limits its depth. */
#ifndef KILN_LOADER_IMAGE_MSGPACK_H
#define KILN_LOADER_IMAGE_MSGPACK_H

#include "loader/image/bytes.h"
#include "loader/status.h"

typedef enum kiln__msgpack_type {
    KILN__MSGPACK_NIL,
    KILN__MSGPACK_BOOL,
    KILN__MSGPACK_UNSIGNED, /* every integer that is not negative */
    KILN__MSGPACK_NEGATIVE,
    KILN__MSGPACK_FLOAT, /* its value is not kept */
    KILN__MSGPACK_STRING,
    KILN__MSGPACK_BINARY, /* and extension types */
    KILN__MSGPACK_ARRAY,
    KILN__MSGPACK_MAP
} kiln__msgpack_type;

typedef struct kiln__msgpack_value {
    kiln__msgpack_type type;
    union {
        bool boolean;
        uint64_t number;   /* UNSIGNED */
        int64_t negative;  /* NEGATIVE */
        uint32_t count;    /* ARRAY: elements; MAP: pairs */
        kiln__bytes bytes; /* STRING (not terminated, may hold NUL), BINARY */
    };
} kiln__msgpack_value;

/* Reads the value in front of *rest and moves *rest behind it. A count is never greater than what the bytes that are
 * left can hold. Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE. */
kiln_status kiln__msgpack_next(kiln__bytes *rest, kiln__msgpack_value *out_value);

/* Moves *rest behind the value in front of it, with all that is in it, however deep. Returns as kiln__msgpack_next. */
kiln_status kiln__msgpack_skip(kiln__bytes *rest);

/* Reads a value of one type: a sentence with "what" in it otherwise. Returns as kiln__msgpack_next. */
kiln_status kiln__msgpack_expect(kiln__bytes *rest, kiln__msgpack_type type, const char *what,
                                 kiln__msgpack_value *out_value);

/* Whether a value is this string. */
bool kiln__msgpack_is(const kiln__msgpack_value *value, const char *text);

#endif
