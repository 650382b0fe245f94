/* What the host sides of mha_quantize and mha_quantize_nvfp4 share: how channels are divided among blocks. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_MHA_QUANTIZE_HOST_H
#define KILN_KERNELS_COMMON_ATTENTION_MHA_QUANTIZE_HOST_H

#include "kernels/common/attention/attention_host.h"
#include "kernels/common/attention/mha_quantize_args.h"

/* The fields of a call's params on which that depends; CUT_OF(params) takes them from either operator's. */
typedef struct kiln__keys_cut {
    const int32_t *cu_seqlens_k;
    int64_t kv_tokens, batch, kv_heads, head_dim, max_seqlen_k;
} kiln__keys_cut;

#define CUT_OF(params)                                                                                        \
    &(kiln__keys_cut) {                                                                                       \
        (params)->cu_seqlens_k, (params)->kv_tokens, (params)->batch, (params)->kv_heads, (params)->head_dim, \
            (params)->max_seqlen_k                                                                            \
    }

/* How many threads, as a logarithm, share a head of that many elements. */
static inline uint32_t columns_log2(int64_t head_dim) {
    uint32_t columns_log2 = 0;
    while ((int64_t)KILN_MHA_QUANTIZE_PIECE << columns_log2 < head_dim)
        columns_log2++;
    return columns_log2;
}

/* Fills in the lengths of sequences, and how their statistics are divided, for a call that has keys. */
static inline kiln_status cut(const char *name, const kiln__keys_cut *of, kiln_mha_quantize_args *args) {
    int64_t longest = of->max_seqlen_k;
    KILN__TRY(kiln__attention_length(name, "k", "kv_tokens", of->kv_tokens, of->batch, of->cu_seqlens_k, &longest));
    args->max_seqlen_k = (uint32_t)longest;
    args->chunk = ((uint32_t)longest + KILN_MHA_QUANTIZE_CHUNKS_MOST - 1) / KILN_MHA_QUANTIZE_CHUNKS_MOST;
    if (args->chunk < KILN_MHA_QUANTIZE_CHUNK) args->chunk = KILN_MHA_QUANTIZE_CHUNK;
    args->chunks = ((uint32_t)longest + args->chunk - 1) / args->chunk;
    return KILN_OK;
}

static inline uint64_t partials_size(const kiln__keys_cut *of, const kiln_mha_quantize_args *args) {
    uint64_t heads = 2 * (uint64_t)of->batch * (uint64_t)of->kv_heads;
    return heads * args->chunks * KILN_CHANNEL_FACTS * (uint64_t)of->head_dim * sizeof(float);
}

#endif
