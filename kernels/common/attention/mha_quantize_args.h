/* Quantising for attention, mha_quantize and mha_quantize_nvfp4: the one argument of mha_quantize's kernels, and of the
 * kernels of mha_quantize_nvfp4 that process channels. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_MHA_QUANTIZE_ARGS_H
#define KILN_KERNELS_COMMON_ATTENTION_MHA_QUANTIZE_ARGS_H

#include "kernels/common/attention/attention_codes_args.h"

enum {
    KILN_MHA_QUANTIZE_PIECE = 8,    /* elements of a head per thread */
    KILN_MHA_QUANTIZE_TOKENS = 128, /* of one head, that a block quantises: those of the largest group with a scale */
    KILN_MHA_QUANTIZE_CHUNK = 256,  /* tokens that a block sums, at least */
    KILN_MHA_QUANTIZE_CHUNKS_MOST = 64 /* of a sequence */
};

/* The statistics of a channel: the sum of its numbers, the greatest, and the greatest of their negatives. */
typedef enum kiln_channel_fact {
    KILN_CHANNEL_SUM,
    KILN_CHANNEL_HIGH,
    KILN_CHANNEL_LOW,
    KILN_CHANNEL_FACTS
} kiln_channel_fact;

KILN_ARGS_BEGIN
typedef struct kiln_mha_quantize_args {
    uint8_t *q_codes; /* NULL: not wanted; k_codes and v_codes likewise */
    uint8_t *k_codes;
    uint8_t *v_codes;
    float *q_scales; /* [heads, q_scale_rows] */
    float *k_scales; /* [kv_heads, k_scale_rows] */
    float *v_scales; /* [batch, kv_heads, head_dim] */
    float *k_means;  /* [batch, kv_heads, head_dim]; NULL: k has none */
    float *v_means;  /* [batch, kv_heads, head_dim]; NULL: v has none */
    const void *q;
    const void *k;
    const void *v;
    const int32_t *cu_seqlens_k; /* [batch + 1]; NULL: sequences of max_seqlen_k */
    const int32_t *seqlens_k;    /* [batch]; NULL: whole sequences */
    float *partials;             /* [k and v, batch, kv_heads, chunks, KILN_CHANNEL_FACTS, head_dim] */
    int64_t q_stride;            /* between tokens */
    int64_t k_stride;
    int64_t v_stride;
    int64_t q_scale_rows;
    int64_t k_scale_rows;
    uint32_t tokens;
    uint32_t kv_tokens;
    uint32_t batch;
    uint32_t heads;
    uint32_t kv_heads;
    uint32_t head_dim;
    uint32_t max_seqlen_k;
    uint32_t chunk;        /* tokens of a sequence that a block sums */
    uint32_t chunks;       /* of the longest sequence */
    uint32_t columns_log2; /* threads that share a token, a piece each; others have other tokens */
    uint32_t e4m3;         /* non-zero: codes of q and k are E4M3, else int8 */
    uint32_t wide;         /* non-zero: pieces of q, k and v are 16-byte aligned, and those of codes 8-byte */
    kiln_scale_index q_index;
    kiln_scale_index k_index;
} kiln_mha_quantize_args;
KILN_ARGS_END

#endif
