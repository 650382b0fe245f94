/* mha_quantize on devices: blocks whose rows are aligned, whose keys are of one sequence and whose numbers are finite.
 *
 * A thread loads its pieces of several tokens before it looks at the first, and keeps them while the block finds out
 * the scales, one for each token: there is no second load unless more tokens share a scale than registers have room
 * for. Codes need no bounds, as no finite number over its scale is beyond the greatest code by more than rounding. */
#ifndef KILN_KERNELS_MHA_QUANTIZE_BLOCK_H
#define KILN_KERNELS_MHA_QUANTIZE_BLOCK_H

#include "kernels/common/atomic.h"
#include "kernels/common/code_words.h"

/* AMD's compiler wants more registers for what a thread keeps. */
#if defined(__HIP__)
enum { HELD_VECTORS = 2 };
#else
enum { HELD_VECTORS = 4 };
#endif

enum {
    VECTORS = PIECE / KILN_VECTOR,
    HELD = HELD_VECTORS / VECTORS /* tokens of which a thread keeps its piece */
};

/* The codes of a piece. */
typedef struct piece {
    uint32_t words[PIECE / 4];
} __attribute__((aligned(PIECE))) piece;

typedef enum head_kind { HEAD_Q, HEAD_K, HEAD_V } head_kind;

/* What of a head a block makes codes of: 128 tokens, of which a thread has every step-th from row on, and of those the
 * piece of its column. */
typedef struct head {
    head_kind kind;
    const kiln_element *from; /* the piece of the head's first token; of codes, means and v's scales likewise */
    uint8_t *to;
    const float *means; /* [batch, kv_heads, head_dim]; NULL: none */
    float *scales;      /* of the head's tokens; of v [batch, kv_heads, head_dim] */
    kiln_scale_index index;
    uint64_t stride, codes_stride;
    uint32_t first, end; /* tokens */
    uint32_t count;      /* elements of the head from the piece on */
    uint32_t size;       /* from sequence to sequence of means */
    uint32_t columns, column, row, step;
} head;

/* What the threads of a block tell each other: of tokens of q or k, or of the channels of v. */
typedef struct shared_numbers {
    uint32_t greatest[TOKENS]; /* the bits of the greatest magnitude of tokens that share a scale */
    float numbers[KILN_BLOCK]; /* of each token: its greatest magnitude, then its factor; factors of channels */
    uint32_t special;          /* whether there are infinities or NaN */
} shared_numbers;

/* Returns whether the block has anything to do. number: of the head among those of q, k and v. */
KILN_INLINE bool head_of(head *h, const kiln_mha_quantize_args *args, uint32_t number) {
    uint32_t size = args->head_dim, heads = args->heads;
    const void *from = args->q;
    uint8_t *codes = args->q_codes;
    float *scales = args->q_scales;
    const float *means = 0;
    uint64_t stride = (uint64_t)args->q_stride, scale_rows = (uint64_t)args->q_scale_rows;
    bool is_key = number >= heads, is_value = number >= heads + args->kv_heads;
    h->kind = is_value ? HEAD_V : is_key ? HEAD_K : HEAD_Q;
    h->index = args->q_index;
    h->end = args->tokens;
    if (is_key) {
        number -= heads + (is_value ? args->kv_heads : 0);
        from = is_value ? args->v : args->k;
        codes = is_value ? args->v_codes : args->k_codes;
        scales = is_value ? args->v_scales : args->k_scales;
        means = is_value ? args->v_means : args->k_means;
        stride = (uint64_t)(is_value ? args->v_stride : args->k_stride);
        scale_rows = is_value ? size : (uint64_t)args->k_scale_rows;
        h->index = args->k_index;
        heads = args->kv_heads;
        h->end = args->kv_tokens;
    }
    h->first = (uint32_t)kiln_block() * TOKENS;
    h->columns = 1u << args->columns_log2;
    h->column = kiln_thread() & (h->columns - 1);
    h->row = kiln_thread() >> args->columns_log2;
    h->step = KILN_BLOCK >> args->columns_log2;
    const uint32_t d = h->column * PIECE;
    h->count = d < size ? size - d : 0;
    h->size = args->kv_heads * size;
    h->from = KILN_GLOBAL(const kiln_element, from) + number * size + d;
    h->to = KILN_GLOBAL(uint8_t, codes) + number * size + d;
    h->means = means ? KILN_GLOBAL(const float, means) + number * size + d : 0;
    h->scales = KILN_GLOBAL(float, scales) + number * scale_rows + (is_value ? d : 0);
    h->stride = stride;
    h->codes_stride = heads * (uint64_t)size;
    return codes && h->first < h->end;
}

/* The block's tokens. */
KILN_INLINE uint32_t tokens_of(const head *h) {
    return h->end - h->first < TOKENS ? h->end - h->first : TOKENS;
}

/* Whether all keys of a block are of one sequence. */
KILN_INLINE bool of_one_sequence(const kiln_mha_quantize_args *args, const head *h, uint32_t *sequence) {
    *sequence = sequence_of_key(args, h->first);
    if (*sequence == args->batch) return false;
    const keys k = keys_of(args, *sequence);
    return h->first - k.first + tokens_of(h) <= k.count;
}

/* A thread's pieces of HELD of its tokens. */
typedef struct held {
    piece_vectors pieces[HELD];
} held;

/* Loads those of tokens from `token` of the block on, which has count of them. */
KILN_INLINE void held_load(held *k, const head *h, uint32_t token, uint32_t count) {
    const kiln_element *from = h->from + (h->first + token) * h->stride;
    const uint64_t apart = h->step * h->stride;
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++) {
        if (token + i * h->step < count) k->pieces[i] = vectors_load(from);
        from += apart;
    }
}

KILN_INLINE uint32_t greater(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The bits of a piece's greatest magnitude. NaN is greater than infinity. */
KILN_INLINE uint32_t piece_greatest(const piece_vectors *p) {
    uint32_t greatest = 0;
#if defined(KILN_PART_f32)
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        greatest = greater(greatest, p->vectors[i / 4].words[i % 4] & 0x7fffffffu);
    return greatest;
#else
    uint32_t low = 0; /* of each half of all words, with the sign shifted out or masked */
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        low = greater(low, p->vectors[0].words[i] << 17);
        greatest = greater(greatest, p->vectors[0].words[i] & 0x7fffffffu);
    }
    return kiln_bits(kiln_element_to_f32((kiln_element)greater(low >> 17, greatest >> 16)));
#endif
}

/* The same less mean. */
KILN_INLINE uint32_t piece_greatest_less(const piece_vectors *p, const float *mean) {
    uint32_t greatest = 0;
    float values[PIECE];
    vectors_values(values, p);
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        greatest = greater(greatest, kiln_bits(values[i] - mean[i]) & 0x7fffffffu);
    return greatest;
}

/* The codes of a piece. The values are lost. */
KILN_INLINE piece piece_codes(float *values, bool e4m3) {
    piece codes = {{0, 0}};
    if (!e4m3 || KILN_E4M3_INSTRUCTION) {
        KILN_UNROLL
        for (uint32_t w = 0; w < PIECE / 4; w++)
            codes.words[w] = e4m3 ? kiln_e4m3_word(values + 4 * w) : kiln_int8_word(values + 4 * w);
        return codes;
    }
    KILN_LOOP
    for (uint32_t w = 0; w < PIECE / 4; w++) { /* always the first four values, for half the code */
        codes.words[0] = codes.words[1];
        codes.words[1] = kiln_e4m3_word(values);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            values[i] = values[i + 4];
    }
    return codes;
}

KILN_INLINE void held_codes(const held *k, const head *h, uint32_t token, uint32_t count, const float *mean,
                            const float *factors, bool e4m3) {
    uint8_t *to = h->to + (h->first + token) * h->codes_stride;
    const uint64_t apart = h->step * h->codes_stride;
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++) {
        if (token + i * h->step < count) {
            const float factor = factors[token + i * h->step];
            float values[PIECE];
            vectors_values(values, &k->pieces[i]);
            KILN_UNROLL
            for (uint32_t e = 0; e < PIECE; e++)
                values[e] = (values[e] - mean[e]) * factor;
            *(piece *)to = piece_codes(values, e4m3);
        }
        to += apart;
    }
}

/* An array that is not indexed by constants would not stay in registers, so that below elements are shifted in through
 * the last place, or take turns in the first. */

/* Of numbers of channels [batch, kv_heads, head_dim], from the head's piece on, those of the piece in a sequence. from
 * may be NULL: zeros. */
KILN_INLINE void piece_channels(float *numbers, const float *from, const head *h, uint32_t sequence) {
    const float *at = from + (uint64_t)sequence * h->size;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        numbers[i] = from && h->count >= PIECE ? at[i] : 0.0f;
    if (!from || h->count >= PIECE) return;
    KILN_LOOP
    for (uint32_t i = 0; i < PIECE; i++) {
        KILN_UNROLL
        for (uint32_t j = 0; j + 1 < PIECE; j++)
            numbers[j] = numbers[j + 1];
        numbers[PIECE - 1] = i < h->count ? at[i] : 0.0f;
    }
}

/* The greatest magnitudes of a thread's tokens, as bits, from those of all threads that share one. */
KILN_INLINE void held_greatest(uint32_t *greatest, const held *k, const head *h, uint32_t token, uint32_t count,
                               const float *mean) {
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++)
        greatest[i] = 0;
    if (h->means) {
        KILN_UNROLL
        for (uint32_t i = 0; i < HELD; i++)
            if (token + i * h->step < count) greatest[i] = piece_greatest_less(&k->pieces[i], mean);
    } else {
        KILN_UNROLL
        for (uint32_t i = 0; i < HELD; i++)
            if (token + i * h->step < count) greatest[i] = piece_greatest(&k->pieces[i]);
    }
    KILN_LOOP
    for (uint32_t mask = 1; mask < h->columns; mask *= 2) {
        KILN_UNROLL
        for (uint32_t i = 0; i < HELD; i++)
            greatest[i] = greater(greatest[i], kiln_bits(kiln_shuffle_xor(kiln_float(greatest[i]), mask)));
    }
}

/* Codes of q or k, in rounds of as many tokens as are kept or share a scale. Returns whether all numbers were finite.
 * All threads of the block call this, and all get the same answer. */
KILN_INLINE bool block_tokens(const kiln_mha_quantize_args *args, const head *h, uint32_t sequence,
                              shared_numbers *shared) {
    const kiln_scale_index index = h->index;
    const uint32_t thread = kiln_thread(), tokens = tokens_of(h), count = h->count ? tokens : 0;
    const uint32_t chunk = HELD * h->step, round = greater(chunk, 1u << index.high);
    float mean[PIECE];
    held k;
    piece_channels(mean, h->means, h, sequence);
    if (thread < TOKENS) shared->greatest[thread] = 0;
    if (thread == TOKENS) shared->special = 0;
    kiln_barrier();
    KILN_LOOP
    for (uint32_t first = 0; first < tokens; first += round) {
        KILN_LOOP
        for (uint32_t token = first + h->row; token < first + h->row + round; token += chunk) {
            uint32_t greatest[HELD];
            held_load(&k, h, token, count);
            held_greatest(greatest, &k, h, token, count, mean);
            KILN_UNROLL
            for (uint32_t i = 0; i < HELD; i++)
                if (h->column == 0 && token + i * h->step < count)
                    shared->numbers[token + i * h->step] = kiln_float(greatest[i]);
        }
        kiln_barrier();
        const uint32_t own = first + thread, mine = thread < round && own < tokens; /* a thread for each token */
        if (index.high) {                                                           /* tokens share scales */
            if (mine) kiln_shared_max(&shared->greatest[kiln_scale_at(index, own)], kiln_bits(shared->numbers[own]));
            kiln_barrier();
        }
        float scale = 1.0f;
        if (mine) {
            uint32_t greatest = kiln_bits(shared->numbers[own]);
            if (index.high) greatest = shared->greatest[kiln_scale_at(index, own)];
            if (greatest >= 0x7f800000u) kiln_shared_max(&shared->special, 1);
            scale = scale_of(kiln_float(greatest), greatest_code(args));
            shared->numbers[own] = 1.0f / scale;
        }
        kiln_barrier();
        if (shared->special) return false;
        if (mine) h->scales[kiln_scale_at(index, h->first + (uint64_t)own)] = scale;
        KILN_LOOP
        for (uint32_t back = chunk; back <= round; back += chunk) { /* the last are kept */
            const uint32_t token = first + h->row + round - back;
            if (back > chunk) held_load(&k, h, token, count);
            if (args->e4m3)
                held_codes(&k, h, token, count, mean, shared->numbers, true);
            else
                held_codes(&k, h, token, count, mean, shared->numbers, false);
        }
    }
    return true;
}

/* Codes of v, whose channels' scales are known. All threads of the block call this. Returns whether those of the thread
 * are right: without an instruction for E4M3, codes of what is not finite are not. */
KILN_INLINE bool block_values(const head *h, uint32_t sequence, uint32_t size, float *shared) {
    const uint32_t tokens = tokens_of(h), count = h->count ? tokens : 0, chunk = HELD * h->step;
    float mean[PIECE], factors[PIECE], special = 0.0f;
    held k;
    const uint32_t thread = kiln_thread();
    const float *scales = h->scales - h->column * PIECE; /* of the whole head */
    piece_channels(mean, h->means, h, sequence);
    shared[thread] = thread < size ? 1.0f / scales[(uint64_t)sequence * h->size + thread] : 0.0f;
    kiln_barrier();
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        factors[i] = shared[h->column * PIECE + i];
    KILN_LOOP
    for (uint32_t begin = h->row; begin < count; begin += chunk) {
        uint8_t *to = h->to + (h->first + begin) * h->codes_stride;
        held_load(&k, h, begin, count);
        KILN_UNROLL
        for (uint32_t i = 0; i < HELD; i++) {
            if (begin + i * h->step < count) {
                float values[PIECE];
                vectors_values(values, &k.pieces[i]);
                KILN_UNROLL
                for (uint32_t e = 0; e < PIECE; e++) {
                    values[e] = (values[e] - mean[e]) * factors[e];
                    if (!KILN_E4M3_INSTRUCTION) special = KILN_FMA(values[e], 0.0f, special); /* NaN then */
                }
                *(piece *)to = piece_codes(values, true);
            }
            to += h->step * h->codes_stride;
        }
    }
    return special == special;
}

/* Returns whether the thread's codes are written; for q and k all threads of the block get the same answer. */
KILN_INLINE bool block_codes(const kiln_mha_quantize_args *args, const head *h, shared_numbers *shared) {
    uint32_t sequence = 0;
    if (h->kind != HEAD_Q && !of_one_sequence(args, h, &sequence)) return false;
    if (h->kind == HEAD_V) return block_values(h, sequence, args->head_dim, shared->numbers);
    return block_tokens(args, h, sequence, shared);
}

#endif
