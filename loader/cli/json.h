/* Writes JSON (RFC 8259), indented, as it goes: nothing is kept in memory.
 *
 * A key is given inside an object and NULL inside an array or at the top. Strings are the caller's bytes: what is not
 * valid UTF-8 becomes U+FFFD, and control characters, DEL and the C1 controls are escaped, so that the output is safe
 * to show on a terminal. */
#ifndef KILN_CLI_JSON_H
#define KILN_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 16 };

typedef struct json_writer {
    FILE *file;
    unsigned depth;
    bool filled;            /* the innermost object or array has an element */
    char close[JSON_DEPTH]; /* what ends each open object or array */
} json_writer;

/* Opens an object or array; json_close ends the innermost one, and the line after the outermost. Initialise json with
 * its file alone: (json_writer){.file = stdout}. */
void json_object(json_writer *json, const char *key);
void json_array(json_writer *json, const char *key);
void json_close(json_writer *json);

void json_string(json_writer *json, const char *key, const char *value); /* NULL: null */
void json_integer(json_writer *json, const char *key, int64_t value);
void json_number(json_writer *json, const char *key, double value); /* NaN and infinities: null */
void json_bool(json_writer *json, const char *key, bool value);

#endif
