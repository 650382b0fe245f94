/* kv_compact: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_KV_COMPACT_ARGS_H
#define KILN_KERNELS_KV_COMPACT_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_kv_compact_args {
    void *key_cache;
    void *value_cache;
    const void *slot_mapping;
    const int32_t *path;
    const int32_t *accepted;
    kiln_shape shape; /* a row for each sequence */
    int64_t key_cache_stride;
    int64_t value_cache_stride;
    int64_t capacity;
    uint32_t nodes;
    uint32_t depth;
    uint32_t slots_64; /* non-zero: slot_mapping has 64 bits, else 32 */
    uint32_t padding;
} kiln_kv_compact_args;
KILN_ARGS_END

#endif
