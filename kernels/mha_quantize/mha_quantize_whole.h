/* mha_quantize on sm_90a: the codes of a block's tokens of one sequence, of heads of 128 elements of 16 bits
 * that are aligned. As mha_quantize_gpu.c does it, but nothing is asked of each token that is known of all: a thread
 * keeps its pieces of all its tokens from one load on. The threads of a token find its greatest magnitude eight tokens
 * at a time, each sending half of what it has, so that every thread ends with one token's, whose scale it computes;
 * where tokens share none, no thread waits for another warp. Infinities and NaN are looked for among pairs of elements.
 */
#ifndef KILN_KERNELS_MHA_QUANTIZE_WHOLE_H
#define KILN_KERNELS_MHA_QUANTIZE_WHOLE_H

enum { WHOLE_COLUMNS = 128 / PIECE, WHOLE_STEP = KILN_BLOCK / WHOLE_COLUMNS };

/* Whether the tokens are such; *s becomes their segment. */
KILN_INLINE bool is_whole(const kiln_mha_quantize_args *args, const head *h, segment *s) {
    if (!args->wide || args->head_dim != 128) return false;
    *s = segment_of(args, h, 0);
    return !s->none && s->end >= h->tokens;
}

/* A thread's first token, and the column of its pieces. */
KILN_INLINE uint32_t whole_row(void) {
    return kiln_thread() / WHOLE_COLUMNS;
}
KILN_INLINE uint32_t whole_column(void) {
    return kiln_thread() % WHOLE_COLUMNS;
}

template <head_kind KIND> KILN_INLINE void whole_values(float *values, const piece_vectors *p, const channels *c) {
    vectors_values(values, p);
    if constexpr (KIND == HEAD_K) {
        KILN_UNROLL
        for (uint32_t e = 0; e < PIECE; e++)
            values[e] -= c->mean[e];
    }
}

/* The greatest magnitude of a piece; NaN is not greater. */
template <head_kind KIND> KILN_INLINE float piece_greatest(const piece_vectors *p, const channels *c) {
    float values[PIECE];
    if constexpr (KIND == HEAD_Q) {
        const uint32_t *words = p->vectors[0].words;
        kiln_pair_values(
            values, kiln_pair_greater(kiln_pair_greater(words[0], words[1]), kiln_pair_greater(words[2], words[3])));
        return kiln_fast_max(kiln_fast_max(__builtin_fabsf(values[0]), 0.0f), __builtin_fabsf(values[1]));
    } else {
        float greatest = 0.0f;
        whole_values<KIND>(values, p, c);
        KILN_UNROLL
        for (uint32_t e = 0; e < PIECE; e++)
            greatest = kiln_fast_max(__builtin_fabsf(values[e]), greatest);
        return greatest;
    }
}

/* Whether a thread has an infinity or NaN, among its elements or in what is taken from them. */
template <head_kind KIND> KILN_INLINE bool has_special(const held *k, const channels *c) {
    uint32_t greatest = 0;
    float pair[2], zero = 0.0f;
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++)
        KILN_UNROLL
    for (uint32_t w = 0; w < PIECE / 2; w++)
        greatest = kiln_pair_greater_or_nan(k->pieces[i].vectors[0].words[w], greatest);
    kiln_pair_values(pair, greatest);
    zero = KILN_FMA(pair[0], 0.0f, pair[1] * 0.0f);
    if constexpr (KIND == HEAD_K) {
        KILN_UNROLL
        for (uint32_t e = 0; e < PIECE; e++)
            zero = KILN_FMA(c->mean[e], 0.0f, zero);
    }
    return zero != zero;
}

/* The greater of two tokens' greatest magnitudes that a thread and its neighbour have, of the token that is this
 * thread's. */
KILN_INLINE float greater_of_mine(float even, float odd, uint32_t mask) {
    const bool is_odd = whole_column() & mask;
    const float kept = is_odd ? odd : even, sent = is_odd ? even : odd;
    return kiln_fast_max(kept, kiln_shuffle_xor(sent, mask));
}

/* The greatest magnitude of one of HELD tokens, that of the thread's column, from those of a thread's pieces from
 * `first` on, of which there are 2 * mask. */
template <head_kind KIND, uint32_t MASK>
KILN_INLINE float greatest_of_mine(const held *k, uint32_t first, const channels *c) {
    float even, odd;
    if constexpr (MASK == 1) {
        even = piece_greatest<KIND>(&k->pieces[first], c);
        odd = piece_greatest<KIND>(&k->pieces[first + 1], c);
    } else {
        even = greatest_of_mine<KIND, MASK / 2>(k, first, c);
        odd = greatest_of_mine<KIND, MASK / 2>(k, first + MASK, c);
    }
    return greater_of_mine(even, odd, MASK);
}

/* Makes the factors of tokens. own: the greatest magnitude of that of a thread's column. All threads of the block call
 * this. */
KILN_INLINE void whole_scales(const kiln_mha_quantize_args *args, const head *h, float own, shared_numbers *shared) {
    const kiln_scale_index index = h->kind == HEAD_K ? args->k_index : args->q_index;
    own = kiln_fast_max(own, kiln_shuffle_xor(own, HELD));
    const uint32_t token = whole_row() + whole_column() % HELD * WHOLE_STEP;
    const bool mine = whole_column() < HELD && token < h->tokens;
    if (index.high) { /* tokens share scales */
        if (kiln_thread() < TOKENS) shared->greatest[kiln_thread()] = 0;
        if (mine) shared->numbers[token] = own;
        block_scales(args, h, 0, h->tokens, shared);
        return;
    }
    const float scale = scale_of(own, greatest_code(args)), factor = 1.0f / scale;
    if (mine) {
        shared->numbers[token] = factor;
        scales_of(args, h)[kiln_scale_at(index, h->first + (uint64_t)token)] = scale;
    }
    __syncwarp();
}

/* The means, and of v the factors, of a thread's channels. All threads of the block call this. */
template <head_kind KIND>
KILN_INLINE void whole_channels(channels *c, const kiln_mha_quantize_args *args, const head *h, const segment *s,
                                float *shared) {
    const uint32_t thread = kiln_thread();
    const uint64_t at = (uint64_t)s->sequence * h->size;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        c->mean[i] = h->means ? h->means[at + i] : 0.0f;
    if (KIND != HEAD_V) return;
    if (thread < args->head_dim) shared[thread] = 1.0f / scales_of(args, h)[at + thread];
    kiln_barrier();
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        c->factors[i] = shared[whole_column() * PIECE + i];
}

/* Makes the codes. All threads of the block call this. */
template <head_kind KIND, bool E4M3>
KILN_INLINE void whole_codes(const kiln_mha_quantize_args *args, const head *h, const segment *s,
                             shared_numbers *shared, const void *awaited) {
    channels c;
    held k;
    const kiln_element *from = h->from + whole_row() * h->stride;
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++) {
        k.pieces[i] = {{{{0, 0, 0, 0}}}};
        if (whole_row() + i * WHOLE_STEP < h->tokens) k.pieces[i] = last_load(from);
        from += WHOLE_STEP * h->stride;
    }
    if constexpr (KIND != HEAD_Q) {
        CHANNELS_WAIT(awaited);
        whole_channels<KIND>(&c, args, h, s, shared->channels);
    }
    if constexpr (KIND != HEAD_V) whole_scales(args, h, greatest_of_mine<KIND, HELD / 2>(&k, 0, &c), shared);
    const bool special = !E4M3 && has_special<KIND>(&k, &c); /* codes of int8 want bounds then */
    /* of the arguments alone, so that no register has it before */
    const uint32_t width = (KIND == HEAD_Q ? args->heads : args->kv_heads) * args->head_dim;
    uint8_t *to = KIND == HEAD_Q ? args->q_codes : KIND == HEAD_K ? args->k_codes : args->v_codes;
    to += h->first * (uint64_t)width + h->number * args->head_dim + whole_column() * PIECE + whole_row() * width;
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++) {
        const uint32_t token = whole_row() + i * WHOLE_STEP;
        if (token < h->tokens) {
            float values[PIECE];
            piece codes;
            whole_values<KIND>(values, &k.pieces[i], &c);
            if (KIND == HEAD_V && h->means) {
                KILN_UNROLL
                for (uint32_t e = 0; e < PIECE; e++)
                    values[e] -= c.mean[e];
            }
            const float factor = KIND == HEAD_V ? 0.0f : shared->numbers[token];
            KILN_UNROLL
            for (uint32_t e = 0; e < PIECE; e++)
                values[e] *= KIND == HEAD_V ? c.factors[e] : factor;
            if (special) {
                KILN_UNROLL
                for (uint32_t e = 0; e < PIECE; e++)
                    values[e] = values[e] == values[e] ? kiln_fast_clamp(values[e], 127.0f) : 0.0f;
            }
            KILN_UNROLL
            for (uint32_t w = 0; w < PIECE / 4; w++)
                codes.words[w] = E4M3 ? kiln_e4m3_word(values + 4 * w) : kiln_int8_word(values + 4 * w);
            LAST_STORE(to, codes);
        }
        to += WHOLE_STEP * width;
    }
}

KILN_INLINE void whole_head_codes(const kiln_mha_quantize_args *args, const head *h, const segment *s,
                                  shared_numbers *shared, const void *awaited) {
    if (h->kind == HEAD_V)
        whole_codes<HEAD_V, true>(args, h, s, shared, awaited);
    else if (h->kind == HEAD_K && args->e4m3)
        whole_codes<HEAD_K, true>(args, h, s, shared, awaited);
    else if (h->kind == HEAD_K)
        whole_codes<HEAD_K, false>(args, h, s, shared, awaited);
    else if (args->e4m3)
        whole_codes<HEAD_Q, true>(args, h, s, shared, awaited);
    else
        whole_codes<HEAD_Q, false>(args, h, s, shared, awaited);
}

#endif
