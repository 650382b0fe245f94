/* embedding: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_EMBEDDING_ARGS_H
#define KILN_KERNELS_EMBEDDING_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_embedding_args {
    void *y;
    const void *table;
    const void *ids;
    kiln_shape shape;
    int64_t y_stride;
    int64_t table_stride;
    int64_t vocabulary;
    int64_t first;
    uint32_t ids_64; /* non-zero: ids have 64 bits, else 32 */
    uint32_t padding;
} kiln_embedding_args;
KILN_ARGS_END

#endif
