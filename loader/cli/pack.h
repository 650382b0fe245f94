/* The data and steps of kiln pack. */
#ifndef KILN_CLI_PACK_H
#define KILN_CLI_PACK_H

#include "loader/cli/cli.h"
#include <kiln/inspect.h>

/* One image: a file, or the functions of one CPU level. */
typedef struct pack_image {
    char *target;           /* as requested */
    const char *path;       /* NULL for CPU */
    kiln_image_facts facts; /* CPU: only the kind */
    uint8_t *bytes;         /* NULL for CPU */
    size_t size;
    kiln_kernel_facts *kernels; /* their names point into bytes; CPU: into the command line */
    size_t kernel_count;
    const char **functions; /* CPU: one per kernel; else NULL */
} pack_image;

typedef struct pack_package {
    const char *name; /* a C identifier */
    pack_image *images;
    size_t image_count;
} pack_package;

/* NULL if text is valid as the name of a function or a bundle in C and C++, else why it is not. */
const char *pack_name_fault(const char *text);

/* Reads a file, checks that it is an image for image->target, which is set and a target of backend, and fills in the
 * rest of image. Returns CLI_OK, or the exit code after a message on stderr. */
int pack_read(pack_image *image, const char *path, kiln_backend_id backend);

/* Checks that all images hold the same kernels with the same arguments. Returns CLI_OK, or the exit code after a
 * message on stderr. Argument sizes that only other images state are copied to the first image's kernels. */
int pack_agree(pack_package *package);

/* Writes the package as source that is both C and C++. All names that it defines, besides the bundle NAME, begin with
 * "NAME_". */
void pack_write(FILE *file, const pack_package *package);

/* The kernel of that name in an image, or NULL. */
const kiln_kernel_facts *pack_find_kernel(const pack_image *image, const char *name, size_t name_size);

#endif
