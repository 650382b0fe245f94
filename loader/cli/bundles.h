/* The embedded bundles, for the commands that list them. */
#ifndef KILN_CLI_BUNDLES_H
#define KILN_CLI_BUNDLES_H

#include "loader/cli/cli.h"

/* A range of kiln_all_bundles: all of it, or the bundle that an operand names. */
typedef struct bundle_list {
    const kiln_bundle *const *bundles;
    size_t count;
} bundle_list;

/* Reads the operands argv[optind...] of a command that takes [OP]; without one, lists every bundle. Returns CLI_OK, or
 * the exit code after a message. */
int bundles_find(int argc, char **argv, bundle_list *out_list);

/* Calls visit for every image of every part in the list, in order, until it returns anything but CLI_OK. Returns its
 * last result. */
typedef int (*image_visitor)(void *user, const kiln_bundle *bundle, const kiln_part *part, const kiln_image *image);
int bundles_each_image(const bundle_list *list, image_visitor visit, void *user);

#endif
