/* Quantising for attention on devices: the statistics of the channels of k and v.
 *
 * CHANNELS: a block takes a few hundred tokens of a sequence, of one head of k or v, and finds each channel's sum,
 * greatest and least number. A thread has 8 channels of
 * every n-th token, of which it loads several before it looks at the first; threads with the same channels combine
 * their results in shared memory, by halves. The order of additions is part of the definition and the same on every
 * device. JOIN: a thread adds up a channel's chunks, in their order, of which it loads several at a time, too, and
 * computes the mean and, for v, the scale.
 *
 * Includers define CHANNELS and JOIN, the entries' names, and what mha_quantize_keys.h asks for. */
#include "kernels/common/global.h"
#include "kernels/common/mha_quantize_keys.h"
#include "kernels/common/pairs.h"
#include "kernels/common/values.h"

enum { PIECE = KILN_MHA_QUANTIZE_PIECE, TOKENS = KILN_MHA_QUANTIZE_TOKENS, SUBGROUPS = KILN_BLOCK / KILN_SUBGROUP };

/* Vectors of tokens, and chunks, that a thread loads at a time. */
#if defined(__HIP__)
enum { VECTORS_AHEAD = 2, CHUNKS_AHEAD = 4 };
#else
enum { VECTORS_AHEAD = 4, CHUNKS_AHEAD = 8 };
#endif
enum { TOKENS_AHEAD = VECTORS_AHEAD * KILN_VECTOR / PIECE };

/* A piece as it is loaded. */
typedef struct piece_vectors {
    kiln_vector vectors[PIECE / KILN_VECTOR];
} piece_vectors;

KILN_INLINE piece_vectors vectors_load(const kiln_element *from) {
    piece_vectors p;
    KILN_UNROLL
    for (int i = 0; i < PIECE / KILN_VECTOR; i++)
        p.vectors[i] = kiln_vector_load(from + i * KILN_VECTOR);
    return p;
}

KILN_INLINE void vectors_values(float *values, const piece_vectors *p) {
    KILN_UNROLL
    for (int i = 0; i < PIECE / KILN_VECTOR; i++)
        kiln_vector_values(values + i * KILN_VECTOR, p->vectors[i]);
}

/* Loads the count numbers that a head has of a piece; zeros after them. An array that is not indexed by constants would
 * not stay in registers, so that single numbers are shifted in through the last place. */
KILN_INLINE void piece_load(float *values, const kiln_element *from, uint32_t count, uint32_t wide) {
    if (wide && count >= PIECE) {
        const piece_vectors p = vectors_load(from);
        vectors_values(values, &p);
        return;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = 0.0f;
    KILN_LOOP
    for (uint32_t i = 0; i < PIECE; i++) {
        KILN_UNROLL
        for (uint32_t j = 0; j + 1 < PIECE; j++)
            values[j] = values[j + 1];
        values[PIECE - 1] = i < count ? kiln_element_to_f32(from[i]) : 0.0f;
    }
}

KILN_INLINE void add_sums(float *sum, const float *values) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        sum[i] += values[i];
}

KILN_INLINE void add_range(float *high, float *low, const float *values) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        high[i] = kiln_max(values[i], high[i]);
        low[i] = kiln_max(-values[i], low[i]);
    }
}

/* Adds tokens to the greatest numbers and the greatest negatives of channels: of 16 bits two at a time, where the
 * device compares these. */
KILN_INLINE void add_ranges(float *high, float *low, const piece_vectors *pieces) {
#if KILN_PAIRS_COMPARED
    KILN_UNROLL
    for (uint32_t w = 0; w < PIECE / 2; w++) {
        uint32_t greatest = pieces[0].vectors[0].words[w], least = greatest;
        float values[2];
        KILN_UNROLL
        for (uint32_t t = 1; t < TOKENS_AHEAD; t++) {
            greatest = kiln_pair_max(greatest, pieces[t].vectors[0].words[w]);
            least = kiln_pair_min(least, pieces[t].vectors[0].words[w]);
        }
        kiln_pair_values(values, greatest);
        high[2 * w] = kiln_fast_max(values[0], high[2 * w]);
        high[2 * w + 1] = kiln_fast_max(values[1], high[2 * w + 1]);
        kiln_pair_values(values, least);
        low[2 * w] = kiln_fast_max(-values[0], low[2 * w]);
        low[2 * w + 1] = kiln_fast_max(-values[1], low[2 * w + 1]);
    }
#else
    KILN_UNROLL
    for (uint32_t t = 0; t < TOKENS_AHEAD; t++) {
        float values[PIECE];
        vectors_values(values, &pieces[t]);
        add_range(high, low, values);
    }
#endif
}

/* The statistics of a channel of each thread, for a block. */
typedef float channel_facts[KILN_CHANNEL_FACTS][PIECE][KILN_BLOCK];

/* The statistics of a chunk of a sequence. facts is shared memory. All threads of the block call this. */
KILN_INLINE void chunk_facts(const kiln_mha_quantize_args *args, uint32_t tensor, uint32_t batch, uint32_t kv_head,
                             uint32_t chunk, channel_facts &facts) {
    const uint32_t thread = kiln_thread();
    const bool sums = tensor == 0 || args->v_means, ranges = tensor != 0; /* what finish_channel uses */
    uint32_t column = thread & ((1u << args->columns_log2) - 1), lane = thread >> args->columns_log2;
    uint32_t lanes = KILN_BLOCK >> args->columns_log2, d = column * PIECE;
    uint32_t count = d < args->head_dim ? args->head_dim - d : 0;
    keys k = keys_of(args, batch);
    uint32_t end = (chunk + 1) * args->chunk;
    end = end < k.count ? end : k.count;
    uint64_t stride = (uint64_t)(tensor ? args->v_stride : args->k_stride);
    const kiln_element *from =
        KILN_GLOBAL(const kiln_element, tensor ? args->v : args->k) + kv_head * args->head_dim + d;
    float sum[PIECE], high[PIECE], low[PIECE], values[PIECE];
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        sum[i] = 0.0f;
        high[i] = low[i] = -KILN_INFINITY;
    }
    uint32_t key = chunk * args->chunk + lane;
    KILN_LOOP
    for (; args->wide && count && key + (TOKENS_AHEAD - 1) * lanes < end; key += TOKENS_AHEAD * lanes) {
        piece_vectors pieces[TOKENS_AHEAD];
        KILN_UNROLL
        for (uint32_t t = 0; t < TOKENS_AHEAD; t++)
            pieces[t] = vectors_load(from + (k.first + (uint64_t)key + t * lanes) * stride);
        if (sums) {
            KILN_UNROLL
            for (uint32_t t = 0; t < TOKENS_AHEAD; t++) {
                vectors_values(values, &pieces[t]);
                add_sums(sum, values);
            }
        }
        if (ranges) add_ranges(high, low, pieces);
    }
    KILN_LOOP
    for (; key < end; key += lanes) {
        piece_load(values, from + (k.first + (uint64_t)key) * stride, count, 0); /* few, if rows are aligned */
        add_sums(sum, values);
        add_range(high, low, values);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        facts[KILN_CHANNEL_SUM][i][thread] = sum[i];
        facts[KILN_CHANNEL_HIGH][i][thread] = high[i];
        facts[KILN_CHANNEL_LOW][i][thread] = low[i];
    }
    KILN_LOOP
    for (uint32_t half = lanes / 2; half; half /= 2) {
        kiln_barrier();
        uint32_t other = (thread + (half << args->columns_log2)) % KILN_BLOCK;
        if (lane >= half) continue;
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++) {
            sum[i] += facts[KILN_CHANNEL_SUM][i][other];
            high[i] = kiln_max(facts[KILN_CHANNEL_HIGH][i][other], high[i]);
            low[i] = kiln_max(facts[KILN_CHANNEL_LOW][i][other], low[i]);
            facts[KILN_CHANNEL_SUM][i][thread] = sum[i];
            facts[KILN_CHANNEL_HIGH][i][thread] = high[i];
            facts[KILN_CHANNEL_LOW][i][thread] = low[i];
        }
    }
    kiln_barrier();
    float *to = facts_of(args, tensor, batch, kv_head, chunk);
    KILN_LOOP
    for (uint32_t fact = 0; fact < KILN_CHANNEL_FACTS && thread < args->head_dim; fact++)
        to[fact * args->head_dim + thread] = facts[fact][thread % PIECE][thread / PIECE];
}

/* The mean and the scale of one channel of a sequence, from its chunks. */
KILN_INLINE void join_channel(const kiln_mha_quantize_args *args, uint32_t tensor, uint32_t batch, uint32_t kv_head,
                              uint32_t d) {
    float sum = 0.0f, high = -KILN_INFINITY, low = -KILN_INFINITY;
    const float *from = facts_of(args, tensor, batch, kv_head, 0) + d;
    KILN_LOOP
    for (uint32_t chunk = 0; chunk < args->chunks; chunk += CHUNKS_AHEAD) {
        float facts[CHUNKS_AHEAD][KILN_CHANNEL_FACTS];
        KILN_UNROLL
        for (uint32_t c = 0; c < CHUNKS_AHEAD; c++) {
            KILN_UNROLL
            for (uint32_t fact = 0; fact < KILN_CHANNEL_FACTS; fact++) {
                if (chunk + c < args->chunks) facts[c][fact] = *from;
                from += args->head_dim;
            }
        }
        KILN_UNROLL
        for (uint32_t c = 0; c < CHUNKS_AHEAD && chunk + c < args->chunks; c++) {
            sum += facts[c][KILN_CHANNEL_SUM];
            high = kiln_max(facts[c][KILN_CHANNEL_HIGH], high);
            low = kiln_max(facts[c][KILN_CHANNEL_LOW], low);
        }
    }
    uint64_t channel = ((uint64_t)batch * args->kv_heads + kv_head) * args->head_dim + d;
    finish_channel(args, tensor, channel, sum, high, low, keys_of(args, batch).count);
}

KILN_ENTRY(CHANNELS, kiln_mha_quantize_args) {
    KILN_SHARED channel_facts facts;
    uint32_t work = (uint32_t)kiln_block(), tensor = work % 2, kv_head = work / 2 % args.kv_heads;
    uint32_t batch = work / 2 / args.kv_heads;
    if (batch >= args.batch || !needs_channels(&args, tensor)) return; /* the whole block */
    chunk_facts(&args, tensor, batch, kv_head, kiln_tile(), facts);
}

KILN_ENTRY(JOIN, kiln_mha_quantize_args) {
    uint32_t work = (uint32_t)kiln_block(), tensor = work % 2, kv_head = work / 2 % args.kv_heads;
    uint32_t batch = work / 2 / args.kv_heads, d = kiln_thread();
    if (batch >= args.batch || !needs_channels(&args, tensor) || d >= args.head_dim) return;
    join_channel(&args, tensor, batch, kv_head, d);
}
