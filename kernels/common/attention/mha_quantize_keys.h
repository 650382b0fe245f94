/* Quantising for attention, on all backends: the keys of a sequence, and the statistics of its channels. The includer
 * (device.h, cpu.h) defines KILN_INLINE, and its own includer value_scale(amax), the scale of a channel of v. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_MHA_QUANTIZE_KEYS_H
#define KILN_KERNELS_COMMON_ATTENTION_MHA_QUANTIZE_KEYS_H

#define PAGED 0
#include "kernels/common/attention/attention_codes.h"
#include "kernels/common/attention/mha_quantize_args.h"

/* The keys of a sequence. */
typedef struct keys {
    uint32_t first, count;
} keys;

KILN_INLINE keys keys_of(const kiln_mha_quantize_args *args, uint32_t batch) {
    keys k;
    k.first = batch * args->max_seqlen_k;
    k.count = args->max_seqlen_k;
    if (args->cu_seqlens_k)
        k.first = kiln_sequence_rows(args->cu_seqlens_k, batch, args->kv_tokens, args->max_seqlen_k, &k.count);
    if (args->seqlens_k) k.count = kiln_clipped(args->seqlens_k[batch], k.count);
    return k;
}

/* The sequence in whose room a key is: the first that ends after it. args->batch: none. */
KILN_INLINE uint32_t room_of_key(const kiln_mha_quantize_args *args, uint32_t key) {
    uint32_t batch = 0, end = args->batch;
    if (!args->cu_seqlens_k) batch = key / args->max_seqlen_k;
    while (args->cu_seqlens_k && batch < end) {
        uint32_t middle = batch + (end - batch) / 2;
        if (kiln_clipped(args->cu_seqlens_k[middle + 1], args->kv_tokens) > key)
            end = middle;
        else
            batch = middle + 1;
    }
    return batch;
}

/* The sequence that a key belongs to. args->batch: none. */
KILN_INLINE uint32_t sequence_of_key(const kiln_mha_quantize_args *args, uint32_t key) {
    uint32_t batch = room_of_key(args, key);
    if (batch == args->batch) return batch;
    keys k = keys_of(args, batch);
    return key - k.first < k.count ? batch : args->batch;
}

/* The place of the statistics of a sequence's chunk. tensor: 0 is k, 1 is v. */
KILN_INLINE float *facts_of(const kiln_mha_quantize_args *args, uint32_t tensor, uint32_t batch, uint32_t kv_head,
                            uint32_t chunk) {
    uint64_t place = ((uint64_t)tensor * args->batch + batch) * args->kv_heads + kv_head;
    return args->partials + (place * args->chunks + chunk) * KILN_CHANNEL_FACTS * args->head_dim;
}

/* Whether the statistics of a tensor's channels are needed. */
KILN_INLINE bool needs_channels(const kiln_mha_quantize_args *args, uint32_t tensor) {
    return tensor ? args->v_codes != 0 : args->k_codes && args->k_means;
}

/* Writes the mean of a channel, and for v its scale, from its statistics and the number of its keys. */
KILN_INLINE void finish_channel(const kiln_mha_quantize_args *args, uint32_t tensor, uint64_t channel, float sum,
                                float high, float low, uint32_t count) {
    float *means = tensor ? args->v_means : args->k_means, mean = 0.0f;
    if (means) {
        mean = count ? sum / (float)count : 0.0f;
        means[channel] = mean;
    }
    if (tensor) args->v_scales[channel] = value_scale(kiln_max(high - mean, low + mean));
}

#endif
