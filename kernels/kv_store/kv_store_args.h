/* kv_store: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_KV_STORE_ARGS_H
#define KILN_KERNELS_KV_STORE_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_kv_store_args {
    void *key_cache;
    void *value_cache;
    const void *key;
    const void *value;
    const void *slot_mapping;
    const float *k_scale; /* [heads], of the codes; NULL: 1 */
    const float *v_scale;
    kiln_shape shape; /* a row for each token, or for each head of a token that is stored as codes */
    int64_t key_stride;
    int64_t value_stride;
    int64_t key_cache_stride;
    int64_t value_cache_stride;
    int64_t capacity;
    uint32_t slots_64; /* non-zero: slot_mapping has 64 bits, else 32 */
    uint32_t heads;    /* each of which has a scale */
} kiln_kv_store_args;
KILN_ARGS_END

#endif
