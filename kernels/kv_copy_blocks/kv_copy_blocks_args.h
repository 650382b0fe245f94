/* kv_copy_blocks: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_KV_COPY_BLOCKS_ARGS_H
#define KILN_KERNELS_KV_COPY_BLOCKS_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_kv_copy_blocks_args {
    void *key_cache;
    void *value_cache;
    const void *pairs;
    kiln_shape shape; /* a row for each pair */
    int64_t blocks;
    uint32_t pairs_64; /* non-zero: pairs have 64 bits, else 32 */
    uint32_t padding;
} kiln_kv_copy_blocks_args;
KILN_ARGS_END

#endif
