/* A streaming writer of indented JSON (RFC 8259).
 *
 * key is the key in an object, and NULL in an array or at the top level. In strings, invalid UTF-8 becomes U+FFFD, and
 * control characters, DEL and the C1 controls are escaped, so that the output is safe to show on a terminal. */
#ifndef KILN_CLI_JSON_H
#define KILN_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 16 };

typedef struct json_writer {
    FILE *file;
    unsigned depth;
    bool filled;            /* the innermost object or array is not empty */
    char close[JSON_DEPTH]; /* the closing bracket of each open object or array */
} json_writer;

/* Open an object or array; json_close closes the innermost one and, after the outermost, ends the line. Initialise json
 * with only its file: (json_writer){.file = stdout}. */
void json_object(json_writer *json, const char *key);
void json_array(json_writer *json, const char *key);
void json_close(json_writer *json);

void json_string(json_writer *json, const char *key, const char *value); /* NULL: null */
void json_integer(json_writer *json, const char *key, int64_t value);
void json_number(json_writer *json, const char *key, double value); /* NaN and infinities: null */
void json_bool(json_writer *json, const char *key, bool value);

#endif
