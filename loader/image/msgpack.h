/* A bounded reader of MessagePack, the encoding of AMD's metadata. (github.com/msgpack/msgpack, spec.md.)
 *
 * A reader walks over the bytes value by value. For an array or a map it returns only the header; the caller then reads
 * or skips as many elements as the header states (pairs, for a map). Nothing is copied or allocated, and nesting uses
 * no stack, so only the number of bytes limits the depth. */
#ifndef KILN_LOADER_IMAGE_MSGPACK_H
#define KILN_LOADER_IMAGE_MSGPACK_H

#include "loader/image/bytes.h"
#include "loader/status.h"

typedef enum kiln__msgpack_type {
    KILN__MSGPACK_NIL,
    KILN__MSGPACK_BOOL,
    KILN__MSGPACK_UNSIGNED, /* all nonnegative integers */
    KILN__MSGPACK_NEGATIVE,
    KILN__MSGPACK_FLOAT, /* the value is not kept */
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

/* Reads the value at *rest and advances *rest past it. A count never exceeds what the remaining bytes can hold. Returns
 * KILN_OK, KILN_ERROR_CORRUPT_IMAGE. */
kiln_status kiln__msgpack_next(kiln__bytes *rest, kiln__msgpack_value *out_value);

/* Advances *rest past the value at it, including everything nested in it. Returns as kiln__msgpack_next. */
kiln_status kiln__msgpack_skip(kiln__bytes *rest);

/* Reads a value that must be of the given type; what names it in the error text. Returns as kiln__msgpack_next. */
kiln_status kiln__msgpack_expect(kiln__bytes *rest, kiln__msgpack_type type, const char *what,
                                 kiln__msgpack_value *out_value);

/* Whether a value is a string equal to text. */
bool kiln__msgpack_is(const kiln__msgpack_value *value, const char *text);

#endif
