/* Quantising for attention on devices: the statistics of the channels of k and v.
 *
 * CHANNELS: a block takes a few hundred tokens of a sequence, of one head of k or v, and finds each channel's sum,
 * greatest and least number. A thread has 8 channels of every n-th token, of which it loads several before it looks at
 * the first; the results of threads with the same channels are combined by halves, the last sixteen by a thread for
 * each channel. The order of additions is part of the definition and the same on every device. JOIN: a thread adds up a
 * channel's chunks, in their order, of which it loads several at a time, too, and computes the mean and, for v, the
 * scale.
 *
 * Includers define CHANNELS and JOIN, the entries' names, and what mha_quantize_keys.h asks for. */
#include "kernels/common/attention/mha_quantize_keys.h"
#include "kernels/common/global.h"
#include "kernels/common/math/pairs.h"
#include "kernels/common/values.h"

enum { PIECE = KILN_MHA_QUANTIZE_PIECE, TOKENS = KILN_MHA_QUANTIZE_TOKENS, SUBGROUPS = KILN_BLOCK / KILN_SUBGROUP };

/* Vectors of tokens, and chunks, that a thread loads at a time. */
#if defined(__HIP__)
enum { VECTORS_AHEAD = 2, CHUNKS_AHEAD = 4 };
#elif __CUDA_ARCH__ >= 900
enum { VECTORS_AHEAD = 8, CHUNKS_AHEAD = 8 };
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

/* The greatest numbers of channels, and the greatest negatives: of 16 bits two at a time, where the device compares
 * these. */
#if KILN_PAIRS_COMPARED
typedef struct ranges {
    uint32_t greatest[PIECE / 2], least[PIECE / 2];
} ranges;

KILN_INLINE void ranges_none(ranges *r) {
#if defined(KILN_PART_f16)
    const uint32_t infinities = 0x7c007c00u;
#else
    const uint32_t infinities = 0x7f807f80u;
#endif
    KILN_UNROLL
    for (uint32_t w = 0; w < PIECE / 2; w++) {
        r->greatest[w] = infinities | 0x80008000u;
        r->least[w] = infinities;
    }
}

KILN_INLINE void ranges_add(ranges *r, const piece_vectors *p) {
    KILN_UNROLL
    for (uint32_t w = 0; w < PIECE / 2; w++) {
        r->greatest[w] = kiln_pair_max(r->greatest[w], p->vectors[0].words[w]);
        r->least[w] = kiln_pair_min(r->least[w], p->vectors[0].words[w]);
    }
}

KILN_INLINE void ranges_values(const ranges *r, float *high, float *low) {
    KILN_UNROLL
    for (uint32_t w = 0; w < PIECE / 2; w++) {
        kiln_pair_values(high + 2 * w, r->greatest[w]);
        kiln_pair_values(low + 2 * w, r->least[w]);
        low[2 * w] = -low[2 * w];
        low[2 * w + 1] = -low[2 * w + 1];
    }
}
#else
typedef struct ranges {
    float high[PIECE], low[PIECE];
} ranges;

KILN_INLINE void ranges_none(ranges *r) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        r->high[i] = r->low[i] = -KILN_INFINITY;
}

KILN_INLINE void ranges_add(ranges *r, const piece_vectors *p) {
    float values[PIECE];
    vectors_values(values, p);
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        r->high[i] = kiln_max(values[i], r->high[i]);
        r->low[i] = kiln_max(-values[i], r->low[i]);
    }
}

KILN_INLINE void ranges_values(const ranges *r, float *high, float *low) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        high[i] = r->high[i];
        low[i] = r->low[i];
    }
}
#endif

/* One of the statistics of each channel of each thread, for a block: by lanes, whose channels are in a row. */
typedef float channel_facts[KILN_CHANNEL_FACTS][KILN_BLOCK * PIECE];

/* The numbers of a piece. */
typedef struct piece_facts {
    float values[PIECE];
} __attribute__((aligned(16))) piece_facts;

KILN_INLINE float more_of(uint32_t fact, float a, float b) {
    return fact == KILN_CHANNEL_SUM ? a + b : kiln_max(b, a);
}

/* Joins the lanes' numbers of a fact by halves, and writes those of the head. facts has them already, but is not yet
 * seen. own: this thread's. All threads of the block call this. */
KILN_INLINE void facts_join(float *to, uint32_t fact, float *facts, float *own, uint32_t columns_log2, uint32_t size) {
    enum { AT_ONCE = 16 };
    const uint32_t thread = kiln_thread(), width = PIECE << columns_log2;
    uint32_t lanes = KILN_BLOCK >> columns_log2;
    KILN_LOOP
    for (; lanes > AT_ONCE; lanes /= 2) {
        kiln_barrier();
        if (thread >> columns_log2 >= lanes / 2) continue;
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++) {
            own[i] = more_of(fact, own[i], facts[thread * PIECE + lanes / 2 * width + i]);
            facts[thread * PIECE + i] = own[i];
        }
    }
    kiln_barrier();
    if (thread >= size) return;
    float numbers[AT_ONCE];
    KILN_UNROLL
    for (uint32_t lane = 0; lane < AT_ONCE; lane++)
        numbers[lane] = facts[(lane & (lanes - 1)) * width + thread]; /* some twice, if these are fewer */
    KILN_UNROLL
    for (uint32_t halved = 1; halved <= AT_ONCE / 2; halved *= 2) {
        if (AT_ONCE / 2 / halved >= lanes) continue;
        KILN_UNROLL
        for (uint32_t lane = 0; lane < AT_ONCE / 2 / halved; lane++)
            numbers[lane] = more_of(fact, numbers[lane], numbers[lane + AT_ONCE / 2 / halved]);
    }
    to[fact * size + thread] = numbers[0];
}

/* The statistics of a chunk of a sequence, those that finish_channel uses. facts is shared memory. All threads of the
 * block call this. */
KILN_INLINE void chunk_facts(const kiln_mha_quantize_args *args, uint32_t tensor, uint32_t batch, uint32_t kv_head,
                             uint32_t chunk, channel_facts &facts) {
    const uint32_t thread = kiln_thread();
    const bool sums = tensor == 0 || args->v_means, has_ranges = tensor != 0;
    uint32_t column = thread & ((1u << args->columns_log2) - 1), lane = thread >> args->columns_log2;
    uint32_t lanes = KILN_BLOCK >> args->columns_log2, d = column * PIECE;
    uint32_t count = d < args->head_dim ? args->head_dim - d : 0;
    keys k = keys_of(args, batch);
    uint32_t end = (chunk + 1) * args->chunk;
    end = end < k.count ? end : k.count;
    uint64_t stride = (uint64_t)(tensor ? args->v_stride : args->k_stride);
    uint32_t key = chunk * args->chunk + lane;
    const kiln_element *from = KILN_GLOBAL(const kiln_element, tensor ? args->v : args->k) + kv_head * args->head_dim +
                               d + (k.first + (uint64_t)key) * stride;
    float sum[PIECE], high[PIECE], low[PIECE], values[PIECE];
    ranges r;
    ranges_none(&r);
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        sum[i] = 0.0f;
    stride *= lanes;
    KILN_LOOP
    for (; args->wide && count && key + (TOKENS_AHEAD - 1) * lanes < end; key += TOKENS_AHEAD * lanes) {
        piece_vectors pieces[TOKENS_AHEAD];
        KILN_UNROLL
        for (uint32_t t = 0; t < TOKENS_AHEAD; t++) {
            pieces[t] = vectors_load(from);
            from += stride;
        }
        if (sums) {
            KILN_UNROLL
            for (uint32_t t = 0; t < TOKENS_AHEAD; t++) {
                vectors_values(values, &pieces[t]);
                add_sums(sum, values);
            }
        }
        if (has_ranges) {
            KILN_UNROLL
            for (uint32_t t = 0; t < TOKENS_AHEAD; t++)
                ranges_add(&r, &pieces[t]);
        }
    }
    ranges_values(&r, high, low);
    KILN_LOOP
    for (; key < end; key += lanes, from += stride) {
        piece_load(values, from, count, args->wide);
        add_sums(sum, values);
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++) {
            high[i] = kiln_max(values[i], high[i]);
            low[i] = kiln_max(-values[i], low[i]);
        }
    }
    piece_facts own;
    float *to = facts_of(args, tensor, batch, kv_head, chunk);
    if (sums) {
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            own.values[i] = sum[i];
        ((piece_facts *)facts[KILN_CHANNEL_SUM])[thread] = own;
    }
    if (has_ranges) {
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            own.values[i] = high[i];
        ((piece_facts *)facts[KILN_CHANNEL_HIGH])[thread] = own;
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            own.values[i] = low[i];
        ((piece_facts *)facts[KILN_CHANNEL_LOW])[thread] = own;
    }
    if (sums) facts_join(to, KILN_CHANNEL_SUM, facts[KILN_CHANNEL_SUM], sum, args->columns_log2, args->head_dim);
    if (!has_ranges) return;
    facts_join(to, KILN_CHANNEL_HIGH, facts[KILN_CHANNEL_HIGH], high, args->columns_log2, args->head_dim);
    facts_join(to, KILN_CHANNEL_LOW, facts[KILN_CHANNEL_LOW], low, args->columns_log2, args->head_dim);
}

/* The mean and the scale of one channel of a sequence, from its chunks. */
KILN_INLINE void join_channel(const kiln_mha_quantize_args *args, uint32_t tensor, uint32_t batch, uint32_t kv_head,
                              uint32_t d) {
    const bool wanted[KILN_CHANNEL_FACTS] = {tensor == 0 || args->v_means, tensor != 0, tensor != 0};
    float sum = 0.0f, high = -KILN_INFINITY, low = -KILN_INFINITY;
    const float *from = facts_of(args, tensor, batch, kv_head, 0) + d;
    KILN_LOOP
    for (uint32_t chunk = 0; chunk < args->chunks; chunk += CHUNKS_AHEAD) {
        float facts[CHUNKS_AHEAD][KILN_CHANNEL_FACTS];
        KILN_UNROLL
        for (uint32_t c = 0; c < CHUNKS_AHEAD; c++) {
            KILN_UNROLL
            for (uint32_t fact = 0; fact < KILN_CHANNEL_FACTS; fact++) {
                facts[c][fact] = 0.0f;
                if (wanted[fact] && chunk + c < args->chunks) facts[c][fact] = *from;
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
