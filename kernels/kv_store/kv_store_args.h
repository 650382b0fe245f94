/* kv_store: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_KV_STORE_ARGS_H
#define KILN_KERNELS_KV_STORE_ARGS_H

#include "kernels/common/geometry.h"

typedef struct kiln_kv_store_args {
    void *key_cache;
    void *value_cache;
    const void *key;
    const void *value;
    const void *slot_mapping;
    kiln_shape shape;
    int64_t key_stride;
    int64_t value_stride;
    int64_t key_cache_stride;
    int64_t value_cache_stride;
    int64_t capacity;
    uint32_t wide_slots; /* non-zero: slot_mapping is of 64 bits, else of 32 */
    uint32_t padding;
} kiln_kv_store_args;

KILN_ARGS_SIZE(kiln_kv_store_args, 120);
KILN_ARGS_OFFSET(kiln_kv_store_args, key_cache, 0);
KILN_ARGS_OFFSET(kiln_kv_store_args, value_cache, 8);
KILN_ARGS_OFFSET(kiln_kv_store_args, key, 16);
KILN_ARGS_OFFSET(kiln_kv_store_args, value, 24);
KILN_ARGS_OFFSET(kiln_kv_store_args, slot_mapping, 32);
KILN_ARGS_OFFSET(kiln_kv_store_args, shape, 40);
KILN_ARGS_OFFSET(kiln_kv_store_args, key_stride, 72);
KILN_ARGS_OFFSET(kiln_kv_store_args, value_stride, 80);
KILN_ARGS_OFFSET(kiln_kv_store_args, key_cache_stride, 88);
KILN_ARGS_OFFSET(kiln_kv_store_args, value_cache_stride, 96);
KILN_ARGS_OFFSET(kiln_kv_store_args, capacity, 104);
KILN_ARGS_OFFSET(kiln_kv_store_args, wide_slots, 112);
KILN_ARGS_OFFSET(kiln_kv_store_args, padding, 116);

#endif
