/* A file that appears under its name only once it is complete: it is written under a temporary name in the same folder,
 * synced, and then renamed. */
#ifndef KILN_CLI_OUTPUT_H
#define KILN_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct output_file {
    const char *path; /* the caller's; must live as long as the output */
    char *temporary;
    int file;
} output_file;

/* Whether two paths name one file: they are the same, or both are there and are the same file. */
bool output_is(const char *path, const char *other);

/* Creates the temporary file. A path that names something else than a regular file is refused (renaming onto a device
 * node would replace it). Each function gives false after a message on stderr; the output is then discarded. */
bool output_create(output_file *output, const char *path);
bool output_write(output_file *output, const void *bytes, size_t size);

/* Gives the file its name. */
bool output_commit(output_file *output);

/* Removes the temporary file. Does nothing for a zeroed, committed or discarded output. */
void output_discard(output_file *output);

#endif
