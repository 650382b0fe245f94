/* Quantising for attention on the CPU: the statistics of the channels of k and v. mha_quantize_gpu.h says what its
 * blocks do; sums are added in the order in which a block's threads add them. Includers define CHANNELS and JOIN, the
 * entries' names, and what mha_quantize_keys.h asks for. */
#include "kernels/common/attention/mha_quantize_keys.h"

enum {
    PIECE = KILN_MHA_QUANTIZE_PIECE,
    TOKENS = KILN_MHA_QUANTIZE_TOKENS,
    SIZE = KILN_ATTENTION_DIM,
    SUMS = KILN_BLOCK * PIECE /* of a block's threads */
};

/* The sums of all threads of a block: one for each lane and element of its columns. */
typedef struct sums {
    float facts[KILN_CHANNEL_FACTS][SUMS], tile[SIZE];
} sums;
_Static_assert(sizeof(sums) <= KILN_CPU_SCRATCH, "fits");

/* Adds the statistics of the lanes `half` further on. */
KILN_INLINE void halve(sums *held, size_t count) {
    float *sum = held->facts[KILN_CHANNEL_SUM], *high = held->facts[KILN_CHANNEL_HIGH],
          *low = held->facts[KILN_CHANNEL_LOW];
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        sum[i] += sum[i + count];
        high[i] = kiln_max(high[i + count], high[i]);
        low[i] = kiln_max(low[i + count], low[i]);
    }
}

KILN_OUTLINED void CHANNELS(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_mha_quantize_args args =
        *(const kiln_mha_quantize_args *)arguments; /* a copy, which no store can change */
    const uint32_t size = args.head_dim, lanes = KILN_BLOCK >> args.columns_log2;
    const size_t width = (size_t)PIECE << args.columns_log2; /* from lane to lane */
    sums *held = span->scratch;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint32_t chunk = (uint32_t)(block % span->grid[0]), work = (uint32_t)(block / span->grid[0]);
        uint32_t tensor = work % 2, kv_head = work / 2 % args.kv_heads, batch = work / 2 / args.kv_heads;
        if (batch >= args.batch || !needs_channels(&args, tensor)) continue;
        keys k = keys_of(&args, batch);
        uint32_t begin = chunk * args.chunk, end = (uint32_t)kiln_min(begin + args.chunk, k.count);
        uint64_t stride = (uint64_t)(tensor ? args.v_stride : args.k_stride);
        for (size_t i = 0; i < SUMS; i++) {
            held->facts[KILN_CHANNEL_SUM][i] = 0.0f;
            held->facts[KILN_CHANNEL_HIGH][i] = held->facts[KILN_CHANNEL_LOW][i] = -KILN_INFINITY;
        }
        for (uint32_t key = begin; key < end; key++) {
            uint64_t at = (k.first + (uint64_t)key) * stride + kv_head * size;
            const float *values = kiln_tile_load(held->tile, kiln_at(tensor ? args.v : args.k, at, dtype), size, dtype);
            size_t lane = (key - begin) % lanes * width;
            float *sum = held->facts[KILN_CHANNEL_SUM] + lane, *high = held->facts[KILN_CHANNEL_HIGH] + lane,
                  *low = held->facts[KILN_CHANNEL_LOW] + lane;
            KILN_INDEPENDENT
            for (uint32_t d = 0; d < size; d++) {
                sum[d] += values[d];
                high[d] = kiln_max(values[d], high[d]);
                low[d] = kiln_max(-values[d], low[d]);
            }
        }
        for (uint32_t half = lanes / 2; half; half /= 2)
            halve(held, half * width);
        float *to = facts_of(&args, tensor, batch, kv_head, chunk);
        for (uint32_t fact = 0; fact < KILN_CHANNEL_FACTS; fact++)
            memcpy(to + fact * size, held->facts[fact], size * sizeof *to);
    }
}
KILN_CPU_KERNEL(CHANNELS)

KILN_OUTLINED void JOIN(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_mha_quantize_args args =
        *(const kiln_mha_quantize_args *)arguments; /* a copy, which no store can change */
    const uint32_t size = args.head_dim;
    (void)dtype; /* the same for all dtypes */
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint32_t work = (uint32_t)(block / span->grid[0]), tensor = work % 2, kv_head = work / 2 % args.kv_heads;
        uint32_t batch = work / 2 / args.kv_heads;
        if (batch >= args.batch || !needs_channels(&args, tensor)) continue;
        uint32_t count = keys_of(&args, batch).count;
        uint64_t channel = ((uint64_t)batch * args.kv_heads + kv_head) * size;
        for (uint32_t d = 0; d < size; d++) {
            float sum = 0.0f, high = -KILN_INFINITY, low = -KILN_INFINITY;
            for (uint32_t chunk = 0; chunk < args.chunks; chunk++) {
                const float *facts = facts_of(&args, tensor, batch, kv_head, chunk) + d;
                sum += facts[KILN_CHANNEL_SUM * size];
                high = kiln_max(facts[KILN_CHANNEL_HIGH * size], high);
                low = kiln_max(facts[KILN_CHANNEL_LOW * size], low);
            }
            finish_channel(&args, tensor, channel + d, sum, high, low, count);
        }
    }
}
KILN_CPU_KERNEL(JOIN)
