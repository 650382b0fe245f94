/* embedding: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_EMBEDDING_ARGS_H
#define KILN_KERNELS_EMBEDDING_ARGS_H

#include "kernels/common/geometry.h"

typedef struct kiln_embedding_args {
    void *y;
    const void *table;
    const void *ids;
    kiln_shape shape;
    int64_t y_stride;
    int64_t table_stride;
    int64_t vocabulary;
    int64_t first;
    uint32_t wide_ids; /* non-zero: ids are of 64 bits, else of 32 */
    uint32_t padding;
} kiln_embedding_args;

KILN_ARGS_SIZE(kiln_embedding_args, 96);
KILN_ARGS_OFFSET(kiln_embedding_args, y, 0);
KILN_ARGS_OFFSET(kiln_embedding_args, table, 8);
KILN_ARGS_OFFSET(kiln_embedding_args, ids, 16);
KILN_ARGS_OFFSET(kiln_embedding_args, shape, 24);
KILN_ARGS_OFFSET(kiln_embedding_args, y_stride, 56);
KILN_ARGS_OFFSET(kiln_embedding_args, table_stride, 64);
KILN_ARGS_OFFSET(kiln_embedding_args, vocabulary, 72);
KILN_ARGS_OFFSET(kiln_embedding_args, first, 80);
KILN_ARGS_OFFSET(kiln_embedding_args, wide_ids, 88);
KILN_ARGS_OFFSET(kiln_embedding_args, padding, 92);

#endif
