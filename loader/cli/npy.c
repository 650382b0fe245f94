/* The header of a .npy file: a Python dict literal of three keys, which is parsed here as the little grammar that NumPy
 * writes, not as Python. */
#include "loader/cli/npy.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    const char *descr;
} dtypes[] = {
#define NPY_DTYPE_ROW(name, word, size, descr) {word, size, descr},
    NPY_DTYPE_MAP(NPY_DTYPE_ROW)
#undef NPY_DTYPE_ROW
};

const char *npy_dtype_name(npy_dtype dtype) {
    return dtypes[dtype].name;
}

size_t npy_dtype_size(npy_dtype dtype) {
    return dtypes[dtype].size;
}

npy_dtype npy_dtype_find(const char *name) {
    unsigned dtype = 0;
    while (dtype < NPY_DTYPE_COUNT && strcmp(dtypes[dtype].name, name) != 0)
        dtype++;
    return (npy_dtype)dtype;
}

/* What is left of the dict's text. */
typedef struct dict_cursor {
    const char *at, *end;
    char *error;
} dict_cursor;

static bool fail(dict_cursor *cursor, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(dict_cursor *cursor, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(cursor->error, NPY_ERROR_SIZE, format, list);
    va_end(list);
    return false;
}

static bool unexpected(dict_cursor *cursor, const char *wanted) {
    if (cursor->at == cursor->end) return fail(cursor, "the header ends where %s should stand", wanted);
    unsigned char c = (unsigned char)*cursor->at;
    if (c < 0x20 || c > 0x7e) return fail(cursor, "the header has byte 0x%02x where %s should stand", c, wanted);
    return fail(cursor, "the header has '%c' where %s should stand", c, wanted);
}

static void skip_spaces(dict_cursor *cursor) {
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\t' || *cursor->at == '\n'))
        cursor->at++;
}

/* Takes c, after spaces, if it stands there. */
static bool take(dict_cursor *cursor, char c) {
    skip_spaces(cursor);
    if (cursor->at == cursor->end || *cursor->at != c) return false;
    cursor->at++;
    return true;
}

/* A quoted string without escapes. */
static bool take_string(dict_cursor *cursor, const char **out_text, size_t *out_length) {
    char quote = take(cursor, '\'') ? '\'' : '"';
    if (quote == '"' && !take(cursor, '"')) return unexpected(cursor, "a string");
    const char *end = memchr(cursor->at, quote, (size_t)(cursor->end - cursor->at));
    if (!end) return fail(cursor, "a string of the header has no end");
    *out_text = cursor->at;
    *out_length = (size_t)(end - cursor->at);
    cursor->at = end + 1;
    return true;
}

static bool equal(const char *text, size_t length, const char *word) {
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static bool take_descr(dict_cursor *cursor, npy_header *header) {
    const char *text;
    size_t length;
    if (take(cursor, '[')) return fail(cursor, "structured dtypes are not read");
    if (!take_string(cursor, &text, &length)) return false;
    if (equal(text, length, "bfloat16")) {
        header->dtype = NPY_BF16;
        return true;
    }
    bool ordered = length && memchr("<>=|", *text, 4); /* '=' or nothing: this machine's, little-endian */
    const char *type = text + ordered;
    size_t type_length = length - (size_t)(type - text);
    if (type_length && *type == 'O') return fail(cursor, "dtype object is pickled Python, which is not read");
    for (unsigned i = 0; i < NPY_DTYPE_COUNT; i++) {
        if (!equal(type, type_length, dtypes[i].descr + 1)) continue;
        if (*text == '>' && dtypes[i].size > 1)
            return fail(cursor, "dtype '%.*s' is big-endian: only little-endian is read", (int)length, text);
        header->dtype = (npy_dtype)i;
        return true;
    }
    return fail(cursor, "dtype '%.*s' is none of f32, f16, bf16, u16, i8, u8, i32, i64", length > 32 ? 32 : (int)length,
                text);
}

static bool take_word(dict_cursor *cursor, const char *word) {
    size_t length = strlen(word);
    skip_spaces(cursor);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0) return false;
    cursor->at += length;
    return true;
}

static bool take_order(dict_cursor *cursor, bool *out_fortran) {
    *out_fortran = take_word(cursor, "True");
    return *out_fortran || take_word(cursor, "False") || unexpected(cursor, "True or False");
}

static bool take_dimension(dict_cursor *cursor, int64_t *out_value) {
    skip_spaces(cursor);
    if (cursor->at == cursor->end || *cursor->at < '0' || *cursor->at > '9') return unexpected(cursor, "a dimension");
    int64_t value = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *cursor->at - '0', &value))
            return fail(cursor, "a dimension is 2^63 or more");
    }
    if (cursor->at < cursor->end && *cursor->at == 'L') cursor->at++; /* Python 2 wrote its long integers so */
    *out_value = value;
    return true;
}

/* A tuple: "()", "(3,)", "(3, 4)". */
static bool take_shape(dict_cursor *cursor, npy_header *header) {
    if (!take(cursor, '(')) return unexpected(cursor, "the shape's '('");
    bool comma = true;
    while (!take(cursor, ')')) {
        if (!comma) return unexpected(cursor, "',' or ')'");
        if (header->dimensions == NPY_DIMENSIONS) return fail(cursor, "more than %d dimensions", NPY_DIMENSIONS);
        if (!take_dimension(cursor, &header->shape[header->dimensions])) return false;
        header->dimensions++;
        comma = take(cursor, ',');
    }
    if (header->dimensions == 1 && !comma) return fail(cursor, "the shape is a number, not a tuple");
    return true;
}

/* The product counts dimensions of 0 as 1, so that no product of some of the dimensions overflows either. */
static bool count_bytes(dict_cursor *cursor, npy_header *header) {
    int64_t bytes = (int64_t)dtypes[header->dtype].size;
    bool empty = false;
    for (uint32_t i = 0; i < header->dimensions; i++) {
        int64_t dimension = header->shape[i];
        empty = empty || dimension == 0;
        if (dimension && __builtin_mul_overflow(bytes, dimension, &bytes))
            return fail(cursor, "the shape has 2^63 bytes or more");
    }
    header->data_size = empty ? 0 : (uint64_t)bytes;
    return true;
}

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

static bool take_entry(dict_cursor *cursor, npy_header *header, bool *fortran, unsigned *seen) {
    const char *key;
    size_t length;
    if (!take_string(cursor, &key, &length)) return false;
    unsigned entry = equal(key, length, "descr")           ? DESCR
                     : equal(key, length, "fortran_order") ? ORDER
                     : equal(key, length, "shape")         ? SHAPE
                                                           : 0;
    if (!entry) return fail(cursor, "the header has an unknown key '%.*s'", length > 32 ? 32 : (int)length, key);
    if (*seen & entry) return fail(cursor, "the header has '%.*s' twice", (int)length, key);
    *seen |= entry;
    if (!take(cursor, ':')) return unexpected(cursor, "':'");
    return entry == DESCR   ? take_descr(cursor, header)
           : entry == ORDER ? take_order(cursor, fortran)
                            : take_shape(cursor, header);
}

static bool parse_dict(dict_cursor *cursor, npy_header *header) {
    bool fortran = false, comma = true;
    unsigned seen = 0;
    if (!take(cursor, '{')) return unexpected(cursor, "'{'");
    while (!take(cursor, '}')) {
        if (!comma) return unexpected(cursor, "',' or '}'");
        if (!take_entry(cursor, header, &fortran, &seen)) return false;
        comma = take(cursor, ',');
    }
    skip_spaces(cursor);
    if (cursor->at != cursor->end) return unexpected(cursor, "the end");
    if (seen != ALL)
        return fail(cursor, "the header lacks %s",
                    !(seen & DESCR)   ? "'descr'"
                    : !(seen & ORDER) ? "'fortran_order'"
                                      : "'shape'");
    if (fortran && header->dimensions > 1)
        return fail(cursor, "the array is in Fortran order: save numpy.ascontiguousarray() of it");
    return count_bytes(cursor, header);
}

/* Version 1 has a 16-bit length of the dict, versions 2 and 3 a 32-bit one. */
static bool find_dict(const uint8_t *bytes, size_t size, dict_cursor *cursor) {
    static const char magic[] = "\x93NUMPY";
    if (size < 10 || memcmp(bytes, magic, sizeof magic - 1) != 0) return fail(cursor, "not a .npy file");
    unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0) return fail(cursor, "version %u.%u of .npy is not read", major, minor);
    size_t offset = major == 1 ? 10 : 12;
    if (size < offset) return fail(cursor, "the file ends in its header");
    uint64_t length = bytes[8] | (uint64_t)bytes[9] << 8;
    if (major > 1) length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    if (length > NPY_HEADER_LIMIT - offset) return fail(cursor, "a header of %" PRIu64 " bytes is too long", length);
    if (length > size - offset) return fail(cursor, "the file ends in its header");
    cursor->at = (const char *)bytes + offset;
    cursor->end = cursor->at + length;
    return true;
}

bool npy_parse_header(const uint8_t *bytes, size_t size, npy_header *out_header, char error[NPY_ERROR_SIZE]) {
    dict_cursor cursor = {.error = error};
    npy_header header = {0};
    *out_header = header;
    if (!find_dict(bytes, size, &cursor) || !parse_dict(&cursor, &header)) return false;
    header.data_offset = (uint64_t)((const uint8_t *)cursor.end - bytes);
    *out_header = header;
    return true;
}

size_t npy_format_header(const npy_header *header, char bytes[NPY_WRITTEN_SIZE]) {
    size_t length = 10;
    size_t room = NPY_WRITTEN_SIZE;
    length += (size_t)snprintf(bytes + length, room - length, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                               dtypes[header->dtype].descr);
    for (uint32_t i = 0; i < header->dimensions; i++)
        length += (size_t)snprintf(bytes + length, room - length, "%s%" PRId64, i ? ", " : "", header->shape[i]);
    length += (size_t)snprintf(bytes + length, room - length, "%s), }", header->dimensions == 1 ? "," : "");
    size_t padded = (length + 1 + 63) / 64 * 64;
    memset(bytes + length, ' ', padded - length);
    bytes[padded - 1] = '\n';
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (char)((padded - 10) & 0xff);
    bytes[9] = (char)((padded - 10) >> 8);
    return padded;
}
