#include "loader/cli/json.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The bytes of the UTF-8 sequence at text and its code point; 0 if it is not one (RFC 3629: no overlong form, no
 * surrogate). */
static size_t decode(const unsigned char *text, uint32_t *out_point) {
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80   ? 1
                    : text[0] < 0xc0 ? 0
                    : text[0] < 0xe0 ? 2
                    : text[0] < 0xf0 ? 3
                    : text[0] < 0xf8 ? 4
                                     : 0;
    uint32_t point = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (text[i] & 0x3f);
    }
    if (length > 1 && (point < lowest[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))) return 0;
    *out_point = point;
    return length;
}

static void quote(FILE *file, const char *value) {
    const unsigned char *text = (const unsigned char *)value;
    fputc('"', file);
    while (*text) {
        uint32_t point = 0;
        size_t length = decode(text, &point);
        if (length == 0)
            fputs("\\ufffd", file);
        else if (point == '"' || point == '\\')
            fprintf(file, "\\%c", (char)point);
        else if (point < 0x20 || (point >= 0x7f && point < 0xa0))
            fprintf(file, "\\u%04" PRIx32, point);
        else
            fwrite(text, 1, length, file);
        text += length ? length : 1;
    }
    fputc('"', file);
}

/* What stands before a value: the comma, the line, the key. */
static void begin(json_writer *json, const char *key) {
    if (json->filled) fputc(',', json->file);
    if (json->depth) fprintf(json->file, "\n%*s", (int)(2 * json->depth), "");
    json->filled = true;
    if (!key) return;
    quote(json->file, key);
    fputs(": ", json->file);
}

static void nest(json_writer *json, const char *key, char open, char close) {
    begin(json, key);
    assert(json->depth < JSON_DEPTH);
    json->close[json->depth++] = close;
    json->filled = false;
    fputc(open, json->file);
}

void json_object(json_writer *json, const char *key) {
    nest(json, key, '{', '}');
}

void json_array(json_writer *json, const char *key) {
    nest(json, key, '[', ']');
}

void json_close(json_writer *json) {
    assert(json->depth > 0);
    json->depth--;
    if (json->filled) fprintf(json->file, "\n%*s", (int)(2 * json->depth), "");
    fputc(json->close[json->depth], json->file);
    if (json->depth == 0) fputc('\n', json->file);
    json->filled = true;
}

void json_string(json_writer *json, const char *key, const char *value) {
    begin(json, key);
    if (value)
        quote(json->file, value);
    else
        fputs("null", json->file);
}

void json_integer(json_writer *json, const char *key, int64_t value) {
    begin(json, key);
    fprintf(json->file, "%" PRId64, value);
}

void json_number(json_writer *json, const char *key, double value) {
    begin(json, key);
    if (isfinite(value))
        fprintf(json->file, "%.9g", value);
    else
        fputs("null", json->file);
}

void json_bool(json_writer *json, const char *key, bool value) {
    begin(json, key);
    fputs(value ? "true" : "false", json->file);
}
