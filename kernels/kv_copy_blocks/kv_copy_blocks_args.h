/* kv_copy_blocks: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_KV_COPY_BLOCKS_ARGS_H
#define KILN_KERNELS_KV_COPY_BLOCKS_ARGS_H

#include "kernels/common/geometry.h"

typedef struct kiln_kv_copy_blocks_args {
    void *key_cache;
    void *value_cache;
    const int32_t *pairs;
    kiln_shape shape; /* a row for each pair */
    int64_t blocks;
} kiln_kv_copy_blocks_args;

KILN_ARGS_SIZE(kiln_kv_copy_blocks_args, 64);
KILN_ARGS_OFFSET(kiln_kv_copy_blocks_args, key_cache, 0);
KILN_ARGS_OFFSET(kiln_kv_copy_blocks_args, value_cache, 8);
KILN_ARGS_OFFSET(kiln_kv_copy_blocks_args, pairs, 16);
KILN_ARGS_OFFSET(kiln_kv_copy_blocks_args, shape, 24);
KILN_ARGS_OFFSET(kiln_kv_copy_blocks_args, blocks, 56);

#endif
