/* How a tree is made. */
#ifndef KILN_LOADER_TREE_TREE_H
#define KILN_LOADER_TREE_TREE_H

#include <kiln/tree.h>

/* Makes a tree by parents that have been checked, with tokens of its nodes if they are not NULL. name is the function
 * that is called. Returns KILN_OK, KILN_ERROR_OUT_OF_MEMORY. */
kiln_status kiln__tree_make(const char *name, const int32_t *parents, const int32_t *tokens, int32_t nodes,
                            const kiln_tree **out_tree);

#endif
