/* rope_kv_store: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ROPE_KV_STORE_ARGS_H
#define KILN_KERNELS_ROPE_KV_STORE_ARGS_H

#include "kernels/common/geometry.h"
#include "kernels/common/rotary/turn_source.h"

/* The heads of a token that a thread has a share of, at most. */
enum { KILN_ROPE_KV_STORE_HEADS = 2 };

/* A token's heads are those of its query, of its key and of its value, in this order. 1 << (lanes_log2 + slots_log2)
 * threads of a block share a token. */
KILN_ARGS_BEGIN
typedef struct kiln_rope_kv_store_args {
    void *query_out;
    void *key_cache;
    void *value_cache;
    const void *query;
    const void *key;
    const void *value;
    const void *slot_mapping;
    const void *positions; /* NULL: 0, 1, 2 and so on */
    const uint64_t *frequencies;
    const void *cosines;
    const void *sines;
    const float *k_scale; /* of codes; NULL: 1 */
    const float *v_scale;
    int64_t tokens;
    int64_t query_out_stride;
    int64_t query_stride;
    int64_t key_stride;
    int64_t value_stride;
    int64_t key_cache_stride;
    int64_t value_cache_stride;
    int64_t capacity;
    int64_t table_rows;
    int64_t table_stride;
    uint32_t heads;
    uint32_t kv_heads; /* 0: nothing is stored */
    uint32_t head_dim;
    uint32_t pairs;
    uint32_t lanes_log2;   /* of the threads that share a head */
    uint32_t slots_log2;   /* of the heads that a block begins with at once; thread by thread, the next heads follow */
    uint32_t each;         /* heads of a thread */
    uint32_t step;         /* elements from the first to the second of a pair: 1, or pairs */
    uint32_t wide;         /* KILN_ROTATE_WIDE_HEADS: tables too, where they are used; or 0 */
    uint32_t positions_64; /* 1: positions have 64 bits, or are not given; 0: 32 */
    uint32_t slots_64;     /* the same for slot_mapping, which is given */
    uint32_t source;       /* kiln_turn_source */
    uint32_t scale_step;   /* from a head's scale of codes to the next one's: 0, or 1 */
    float scale;
    uint32_t codes; /* non-zero: the caches have codes of E4M3 */
    uint32_t padding;
} kiln_rope_kv_store_args;
KILN_ARGS_END

#endif
