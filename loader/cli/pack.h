/* The data that kiln pack collects, checks and writes. */
#ifndef KILN_CLI_PACK_H
#define KILN_CLI_PACK_H

#include "loader/cli/cli.h"
#include <kiln/inspect.h>

/* One image: a file, or the functions of one CPU level. */
typedef struct pack_image {
    char *target;           /* as asked for */
    const char *path;       /* NULL for CPU */
    kiln_image_facts facts; /* CPU: the kind alone */
    uint8_t *bytes;         /* NULL for CPU */
    size_t size;
    kiln_kernel_facts *kernels; /* their names are in bytes; CPU: of the command line */
    size_t kernel_count;
    const char **functions; /* CPU: of each kernel; else NULL */
} pack_image;

typedef struct pack_package {
    const char *name; /* a C identifier */
    pack_image *images;
    size_t image_count;
} pack_package;

/* NULL if text can name a function or a bundle in C and C++, else why not. */
const char *pack_name_fault(const char *text);

/* Reads a file and checks that it is what the target claims; target is one of the given backend. Fills the image but
 * for its target, which is set. Gives the exit code, after a line on stderr. */
int pack_read(pack_image *image, const char *path, kiln_backend_id backend);

/* Whether all images hold the same kernels with the same arguments. Gives the exit code, after a line on stderr. The
 * first image's kernels get the sizes of arguments that any image knows. */
int pack_agree(pack_package *package);

/* Writes the package as C, which is C++ too. What it defines beside the bundle NAME begins with "NAME_". */
void pack_write(FILE *file, const pack_package *package);

/* The kernel of that name in an image; NULL if it has none. */
const kiln_kernel_facts *pack_find_kernel(const pack_image *image, const char *name, size_t name_size);

#endif
