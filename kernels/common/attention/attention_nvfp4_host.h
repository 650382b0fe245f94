/* What the host sides of mha_nvfp4_fwd and mha_quantize_nvfp4 share: how many NVFP4 blocks there are, and their layout.
 */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_NVFP4_HOST_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_NVFP4_HOST_H

#include "kernels/common/host.h"

enum { KILN__NVFP4_HEAD_TILE = 64, KILN__NVFP4_VALUE_TILE = 64, KILN__NVFP4_TILE_BLOCKS = 4, KILN__NVFP4_CODES = 8 };

static inline int64_t kiln__nvfp4_head_blocks(int64_t head_dim) {
    return (head_dim + KILN__NVFP4_HEAD_TILE - 1) / KILN__NVFP4_HEAD_TILE * KILN__NVFP4_TILE_BLOCKS;
}

static inline int64_t kiln__nvfp4_value_blocks(int64_t kv_tokens, int64_t batch) {
    return (kv_tokens / KILN__NVFP4_VALUE_TILE + batch) * KILN__NVFP4_TILE_BLOCKS;
}

/* Checks the numbers of blocks, and replaces 0 by the least. */
static inline kiln_status kiln__nvfp4_head_blocks_check(const char *name, int64_t head_dim, int64_t *head_blocks) {
    const int64_t blocks = kiln__nvfp4_head_blocks(head_dim);
    if (!*head_blocks) *head_blocks = blocks;
    KILN__REQUIRE(*head_blocks == blocks, "%s: head_blocks is %lld: must be head_dim / 64, rounded up, times 4: %lld",
                  name, (long long)*head_blocks, (long long)blocks);
    return KILN_OK;
}
static inline kiln_status kiln__nvfp4_value_blocks_check(const char *name, int64_t kv_tokens, int64_t batch,
                                                         int64_t *v_blocks) {
    const int64_t blocks = kiln__nvfp4_value_blocks(kv_tokens, batch);
    if (!*v_blocks) *v_blocks = blocks;
    KILN__TRY(kiln__size_check(name, "v_blocks", *v_blocks, INT32_MAX));
    KILN__REQUIRE(*v_blocks >= blocks && *v_blocks % KILN__NVFP4_TILE_BLOCKS == 0,
                  "%s: v_blocks is %lld: must be a multiple of 4, and at least kv_tokens / 64, rounded down, + batch, "
                  "times 4: %lld",
                  name, (long long)*v_blocks, (long long)blocks);
    return KILN_OK;
}

/* Checks codes and their blocks' scales, in rows of that many blocks. */
static inline kiln_status kiln__nvfp4_blocks_check(const char *name, const char *codes_name, const void *codes,
                                                   const char *scales_name, const void *scales, int64_t rows,
                                                   int64_t blocks) {
    const int64_t bytes = KILN__NVFP4_CODES * blocks;
    KILN__TRY(kiln__tensor_check(name, codes_name, codes, rows, bytes, bytes, 0));
    KILN__TRY(kiln__tensor_check(name, scales_name, scales, rows, blocks, blocks, 0));
    KILN__REQUIRE(!((uintptr_t)codes & (KILN_VECTOR_BYTES - 1)), "%s: %s is %p: must be 16-byte aligned", name,
                  codes_name, codes);
    KILN__REQUIRE(!((uintptr_t)scales & 3), "%s: %s is %p: must be 4-byte aligned", name, scales_name, scales);
    return KILN_OK;
}

#endif
