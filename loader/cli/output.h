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

/* Whether two paths name the same file: they are equal, or both exist and are one file. */
bool output_is(const char *path, const char *other);

/* Creates the temporary file. A path that names anything but a regular file is refused (renaming onto a device node
 * would replace it). On failure each function returns false after a message on stderr, and the output is discarded. */
bool output_create(output_file *output, const char *path);
bool output_write(output_file *output, const void *bytes, size_t size);

/* Renames the file to its path. */
bool output_commit(output_file *output);

/* Removes the temporary file. Does nothing for a zeroed, committed or discarded output. */
void output_discard(output_file *output);

#endif
