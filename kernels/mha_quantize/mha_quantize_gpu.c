/* mha_quantize: q, k and v as codes with scales, for attention on them.
 *
 * mha_quantize_channels and mha_quantize_join are told in kernels/common/attention/mha_quantize_gpu.h.
 * mha_quantize_codes: a block does 128 tokens of one head of q, k or v; blocks next to each other have the heads of the
 * same tokens, which are neighbours in memory. A token is shared by as few threads as have 8 elements each, a power of
 * two. A thread loads its pieces of several tokens before it looks at the first, and keeps them while the block finds
 * out the scales of q and k, so that nothing is loaded twice unless more tokens share a scale than registers have room
 * for. No finite number over its scale is beyond the greatest code by more than rounding: codes are made without
 * bounds, and made again where there were infinities or NaN.
 *
 * Floor: k with means and v are read twice, q once, and a byte is written for each element. Measured on an H200 (driver
 * 580.159.04, 2026-11-26) with four tokens kept for each thread: q, k and v of bf16, 67 MB each, 146 us to int8 and 144
 * to E4M3; copying as many bytes takes some 73. On an H100 the same, and with eight tokens kept, loaded before the
 * channels: 169 and 160 us to E4M3, of which 51 are the channels, 3 joining them, and 104 the codes, 97 % of the speed
 * of a copy. Tried: codes of the last tokens first, whose k and v a cache may still have, 168 us; channels of
 * neighbouring heads in neighbouring blocks, 1 % less. Test: build/tests/ops/mha_quantize_test. Bench: build/kiln bench
 * mha_quantize */
#include "kernels/common/device.h"
#include "kernels/common/late_args.h"
#include "kernels/mha_quantize/mha_quantize_scale.h"

#define CHANNELS mha_quantize_channels
#define JOIN     mha_quantize_join
#include "kernels/common/attention/mha_quantize_gpu.h"

#include "kernels/common/formats/code_words.h"
#include "kernels/mha_quantize/mha_quantize_head.h"

/* How a block waits for the means and scales of a head's channels, and how it loads and stores what it does not need
 * again: a tuned source may define these. */
#ifndef CHANNELS_WAIT
#define CHANNELS_WAIT(of) (void)(of)
#define LAST_LOAD(from)   kiln_vector_load(from)
#define LAST_STORE(to, p) (void)(*(piece *)(to) = (p))
#endif

/* Tokens of which a thread keeps its piece. AMD's compiler wants more registers for them. */
#if defined(__HIP__)
enum { HELD = 1 };
#elif __CUDA_ARCH__ >= 900
enum { HELD = 8 * KILN_VECTOR / PIECE };
#else
enum { HELD = 4 * KILN_VECTOR / PIECE };
#endif

/* A thread's pieces of HELD of its tokens. */
typedef struct held {
    piece_vectors pieces[HELD];
} held;

/* What is taken from the elements of a piece, and what they are multiplied with, which is 1 but for v. */
typedef struct channels {
    float mean[PIECE], factors[PIECE];
} channels;

/* What the threads of a block tell each other. */
typedef struct shared_numbers {
    uint32_t greatest[TOKENS];  /* the bits of the greatest magnitude of tokens that share a scale */
    float numbers[TOKENS];      /* of each token: its greatest magnitude, then its factor */
    float channels[KILN_BLOCK]; /* factors of v's channels */
} shared_numbers;

/* The codes of a piece. */
typedef struct piece {
    uint32_t words[PIECE / 4];
} __attribute__((aligned(PIECE))) piece;

/* ---- Loads and stores -------------------------------------------------------------------------------------------- */

/* An array that is not indexed by constants would not stay in registers, so that here and below what a loop deals with
 * is shifted in through the last place, or taken from the first. */
KILN_INLINE piece_vectors singles_load(const kiln_element *from, uint32_t count) {
    enum { WORDS = PIECE * sizeof(kiln_element) / 4, BITS = 8 * sizeof(kiln_element) };
    piece_vectors p = {{{{0}}}};
    KILN_LOOP
    for (uint32_t i = 0; i < PIECE; i++) {
        const uint64_t last = i < count ? from[i] : 0;
        KILN_UNROLL
        for (int w = 0; w < WORDS; w++) {
            uint64_t next = w + 1 < WORDS ? p.vectors[(w + 1) % WORDS / 4].words[(w + 1) % 4] : last << (32 - BITS);
            if (w + 1 == WORDS) next = last << (32 - BITS) >> (32 - BITS);
            p.vectors[w / 4].words[w % 4] = (uint32_t)((next << 32 | p.vectors[w / 4].words[w % 4]) >> BITS);
        }
    }
    return p;
}

KILN_INLINE piece_vectors last_load(const kiln_element *from) {
    piece_vectors p;
    KILN_UNROLL
    for (int i = 0; i < PIECE / KILN_VECTOR; i++)
        p.vectors[i] = LAST_LOAD(from + i * KILN_VECTOR);
    return p;
}

/* Loads pieces of tokens from the thread's token on, as far as they are of the segment. */
KILN_INLINE void held_load(held *k, const head *h, uint32_t token, const segment *s, uint32_t wide) {
    const kiln_element *from = KILN_GLOBAL(const kiln_element, h->from) + token * h->stride;
    const uint64_t apart = h->step * h->stride;
    if (wide && !s->none) {
        KILN_UNROLL
        for (uint32_t i = 0; i < HELD; i++) {
            if (token + i * h->step - s->begin < s->end - s->begin) k->pieces[i] = last_load(from);
            from += apart;
        }
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < HELD; i++) {
        KILN_UNROLL
        for (uint32_t j = 0; j + 1 < HELD; j++)
            k->pieces[j] = k->pieces[j + 1];
        const bool valid = !s->none && token + i * h->step - s->begin < s->end - s->begin;
        k->pieces[HELD - 1] = singles_load(from, valid ? h->count : 0);
        from += apart;
    }
}

KILN_INLINE void piece_store(uint8_t *codes, piece p, uint32_t count, uint32_t wide) {
    if (wide) {
        LAST_STORE(codes, p);
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < PIECE && i < count; i++) {
        codes[i] = (uint8_t)p.words[0];
        p.words[0] = p.words[0] >> 8 | p.words[1] << 24;
        p.words[1] >>= 8;
    }
}

/* Leaves the greater of value and the word of shared memory there; other threads see it after the next barrier. */
KILN_INLINE void shared_max(uint32_t *word, uint32_t value) {
#if defined(__CUDACC__)
    atomicMax(word, value);
#else
    __hip_atomic_fetch_max(word, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
#endif
}

/* ---- Scales ------------------------------------------------------------------------------------------------------ */

/* Tells the block the greatest magnitudes of those of the thread's tokens, from `token` on, that are of the segment.
 * NaN is not greater. */
KILN_INLINE void held_greatest(const held *k, const head *h, uint32_t token, const segment *s, const channels *c,
                               float *numbers) {
    float greatest[HELD];
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++) {
        greatest[i] = 0.0f;
        if (h->count && token + i * h->step - s->begin < s->end - s->begin) {
            float values[PIECE];
#if KILN_PAIRS_COMPARED
            if (!h->means) {
                const uint32_t *words = k->pieces[i].vectors[0].words;
                kiln_pair_values(values, kiln_pair_greater(kiln_pair_greater(words[0], words[1]),
                                                           kiln_pair_greater(words[2], words[3])));
                greatest[i] = kiln_fast_max(__builtin_fabsf(values[0]), greatest[i]);
                greatest[i] = kiln_fast_max(__builtin_fabsf(values[1]), greatest[i]);
                continue;
            }
#endif
            vectors_values(values, &k->pieces[i]);
            KILN_UNROLL
            for (uint32_t e = 0; e < PIECE; e++)
                greatest[i] = kiln_fast_max(__builtin_fabsf(values[e] - c->mean[e]), greatest[i]);
        }
    }
    KILN_LOOP
    for (uint32_t mask = 1; mask < h->columns; mask *= 2) {
        KILN_UNROLL
        for (uint32_t i = 0; i < HELD; i++)
            greatest[i] = kiln_fast_max(greatest[i], kiln_shuffle_xor(greatest[i], mask));
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++)
        if (h->column == 0 && token + i * h->step - s->begin < s->end - s->begin)
            numbers[token + i * h->step] = greatest[i];
}

/* Turns the greatest magnitudes of tokens from `first` on, of which there are `count`, into factors, and writes their
 * scales. */
KILN_INLINE void block_scales(const kiln_mha_quantize_args *args, const head *h, uint32_t first, uint32_t count,
                              shared_numbers *shared) {
    const kiln_scale_index index = h->kind == HEAD_K ? args->k_index : args->q_index;
    const uint32_t token = first + kiln_thread();
    const bool mine = kiln_thread() < count; /* a thread for each token */
    kiln_barrier();
    if (index.high) { /* tokens share scales */
        if (mine) shared_max(&shared->greatest[kiln_scale_at(index, token)], kiln_bits(shared->numbers[token]));
        kiln_barrier();
    }
    if (mine) {
        float greatest = shared->numbers[token];
        if (index.high) greatest = kiln_float(shared->greatest[kiln_scale_at(index, token)]);
        const float scale = scale_of(greatest, greatest_code(args));
        shared->numbers[token] = 1.0f / scale;
        scales_of(args, h)[kiln_scale_at(index, h->first + (uint64_t)token)] = scale;
    }
    kiln_barrier();
}

/* ---- Codes ------------------------------------------------------------------------------------------------------- */

/* Codes of any numbers, of which the first piece is the next token's. */
KILN_INLINE void any_codes(held *k, const head *h, uint32_t token, const segment *s, const channels *c,
                           const float *numbers, bool e4m3, uint32_t wide) {
    KILN_LOOP
    for (uint32_t i = 0; i < HELD; i++, token += h->step) {
        float values[PIECE];
        piece codes = {{0, 0}};
        vectors_values(values, &k->pieces[0]);
        KILN_UNROLL
        for (uint32_t j = 0; j + 1 < HELD; j++)
            k->pieces[j] = k->pieces[j + 1];
        if (token - s->begin >= s->end - s->begin) continue;
        KILN_UNROLL
        for (uint32_t e = 0; e < PIECE; e++)
            values[e] = (values[e] - c->mean[e]) * numbers[token] * c->factors[e];
        KILN_LOOP
        for (uint32_t e = 0; e < PIECE; e++) {
            codes.words[0] = codes.words[0] >> 8 | codes.words[1] << 24;
            codes.words[1] = codes.words[1] >> 8 | (uint32_t)code_of(values[0], e4m3) << 24;
            KILN_UNROLL
            for (uint32_t j = 0; j + 1 < PIECE; j++)
                values[j] = values[j + 1];
        }
        piece_store(KILN_GLOBAL(uint8_t, h->to) + token * h->codes_stride, codes, h->count, wide);
    }
}

/* Writes the codes of those of the thread's tokens, from `token` on, that are of the segment. Returns NaN if they are
 * wrong, as those of infinities and NaN are, but for the instruction for E4M3. */
KILN_INLINE float held_codes(const held *k, const head *h, uint32_t token, const segment *s, const channels *c,
                             const float *numbers, bool e4m3, uint32_t wide) {
    uint8_t *to = KILN_GLOBAL(uint8_t, h->to) + token * h->codes_stride;
    const uint64_t apart = h->step * h->codes_stride;
    float special = 0.0f;
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD; i++) {
        if (token + i * h->step - s->begin < s->end - s->begin) {
            const float factor = numbers[token + i * h->step];
            float values[PIECE];
            piece codes;
            vectors_values(values, &k->pieces[i]);
            if (h->means) {
                KILN_UNROLL
                for (uint32_t e = 0; e < PIECE; e++)
                    values[e] -= c->mean[e];
            }
            if (e4m3 && h->kind == HEAD_V) {
                KILN_UNROLL
                for (uint32_t e = 0; e < PIECE; e++)
                    values[e] *= c->factors[e];
            } else {
                KILN_UNROLL
                for (uint32_t e = 0; e < PIECE; e++)
                    values[e] *= factor;
            }
            if (!e4m3 || !KILN_E4M3_INSTRUCTION) {
                KILN_UNROLL
                for (uint32_t e = 0; e < PIECE; e++)
                    special = KILN_FMA(values[e], 0.0f, special);
            }
            KILN_UNROLL
            for (uint32_t w = 0; w < PIECE / 4; w++)
                codes.words[w] = e4m3 ? kiln_e4m3_word(values + 4 * w) : kiln_int8_word(values + 4 * w);
            piece_store(to, codes, h->count, wide);
        }
        to += apart;
    }
    return special;
}

/* The channels of a segment. All threads of the block call this. */
KILN_INLINE void channels_load(channels *c, const kiln_mha_quantize_args *args, const head *h, const segment *s,
                               float *shared) {
    const uint32_t thread = kiln_thread();
    const uint64_t at = (uint64_t)s->sequence * h->size;
    const bool whole = h->count >= PIECE && h->means && !s->none;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        c->mean[i] = whole ? KILN_GLOBAL(const float, h->means)[at + i] : 0.0f;
    KILN_LOOP
    for (uint32_t i = 0; !whole && h->means && !s->none && i < PIECE; i++) {
        KILN_UNROLL
        for (uint32_t j = 0; j + 1 < PIECE; j++)
            c->mean[j] = c->mean[j + 1];
        c->mean[PIECE - 1] = i < h->count ? KILN_GLOBAL(const float, h->means)[at + i] : 0.0f;
    }
    if (h->kind != HEAD_V) return;
    kiln_barrier(); /* others have the factors before */
    shared[thread] = thread < args->head_dim && !s->none ? 1.0f / scales_of(args, h)[at + thread] : 0.0f;
    kiln_barrier();
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        c->factors[i] = shared[h->column * PIECE + i];
}

#ifdef WHOLE /* a tuned source defines it */
#include "kernels/mha_quantize/mha_quantize_whole.h"
#endif

/* Makes the codes of a head's tokens. awaited: for CHANNELS_WAIT. All threads of the block call this. */
KILN_INLINE void head_codes(const kiln_mha_quantize_args *args, const head *h, shared_numbers *shared,
                            const void *awaited) {
    const uint32_t chunk = HELD * h->step, wide = args->wide;
    const uint32_t shares = 1u << (h->kind == HEAD_K ? args->k_index.high : args->q_index.high);
    const uint32_t round = chunk < shares && h->kind != HEAD_V ? shares : chunk;
    segment s = {0, 0, 0, false};
    channels c;
    held k;
#ifdef WHOLE
    if (is_whole(args, h, &s)) {
        whole_head_codes(args, h, &s, shared, awaited);
        return;
    }
    s = {0, 0, 0, false};
#endif
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        c.factors[i] = 1.0f;
    if (kiln_thread() < TOKENS) {
        shared->greatest[kiln_thread()] = 0;
        shared->numbers[kiln_thread()] = 1.0f;
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t first = 0; first < h->tokens; first += round) {
        const uint32_t end = first + round < h->tokens ? first + round : h->tokens;
        bool kept = false;
        KILN_LOOP
        for (uint32_t pass = h->kind == HEAD_V; pass < 2; pass++) { /* greatest magnitudes, then codes */
            KILN_LOOP
            for (uint32_t from = first; from < end;) {
                const uint32_t token = (from - first) / chunk * chunk + first + h->row;
                const uint32_t chunk_end = token - h->row + chunk < end ? token - h->row + chunk : end;
                const bool other = from < s.begin || from >= s.end;
                if (other) s = segment_of(KILN_LATE_ARGS(kiln_mha_quantize_args, *args), h, from);
                segment part = s;
                part.begin = from;
                part.end = s.end < chunk_end ? s.end : chunk_end;
                if (!h->count && wide) part.end = part.begin;
                if (!kept) held_load(&k, h, token, &part, wide);
                if (other) {
                    CHANNELS_WAIT(awaited);
                    channels_load(&c, KILN_LATE_ARGS(kiln_mha_quantize_args, *args), h, &s, shared->channels);
                }
                if (pass == 0) {
                    held_greatest(&k, h, token, &part, &c, shared->numbers);
                } else {
                    const bool e4m3 = h->kind == HEAD_V || KILN_LATE_ARGS(kiln_mha_quantize_args, *args)->e4m3;
                    const float special = e4m3 ? held_codes(&k, h, token, &part, &c, shared->numbers, true, wide)
                                               : held_codes(&k, h, token, &part, &c, shared->numbers, false, wide);
                    if (special != special) any_codes(&k, h, token, &part, &c, shared->numbers, e4m3, wide);
                }
                from = s.end < chunk_end ? s.end : chunk_end;
            }
            if (pass == 0) block_scales(KILN_LATE_ARGS(kiln_mha_quantize_args, *args), h, first, end - first, shared);
            kept = round == chunk && s.begin <= first && s.end >= end;
        }
    }
}

/* Without a bound NVIDIA's compiler takes half as many registers more. */
#if defined(__CUDACC__)
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 3) void
#endif
KILN_ENTRY(mha_quantize_codes, kiln_mha_quantize_args) {
    KILN_SHARED shared_numbers shared;
    head h;
    if (!head_of(&h, &args, kiln_tile(), (uint32_t)kiln_block())) return; /* the whole block */
    head_codes(&args, &h, &shared, 0);
}
