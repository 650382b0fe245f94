/* Attention by the matrix units of AMD chips, f16 and bf16: the device source of mha and mha_paged, beside the portable
 * kernels (attention_gpu.h) for heads and rows that are not on 16 bytes.
 *
 * A block has 128 rows, 32 or 16 a wave, over tiles of 64 keys (Dao, FlashAttention-2, arXiv 2307.08691). Products
 * are turned: keys times queries, so that a lane has scores of one row alone, which needs no shuffle but one for the
 * maximum of both halves of a wave; and values, turned, times weights, whose fragments are, element for element, the
 * scores that a lane has (on gfx11, whose halves both want all, it asks the other half for its own). So weights stay in
 * registers, as queries do; they are rounded to the part's precision, their sums are of what they were before. For that
 * the rows of a tile lie in shared memory in an order of the unit's own, by which a lane's sums are runs of 8 keys, or
 * of 8 elements of a head, which are written as a vector. Results are scaled anew only where some row's maximum rose.
 *
 * Shared memory has one tile of k, and one of v, turned by threads that have the same 8 elements of 2 or 4 keys. While
 * one is multiplied, the next of each is on its way into registers: two barriers a tile. Vectors lie where neither
 * writes nor reads meet a bank twice. Two blocks fit a compute unit's 64 KiB, as do their registers; of heads of 256
 * elements one, where waves have 64 lanes; where they have 32, attention_gfx_wide.h has these. Heads are filled up to
 * 64, 96, 128 or 256 elements with zeros that are not read from memory; those of 96 lie in shared memory as those of
 * 128 do. The rows with the most keys to see, the last, go first. Up to 16 rows that share keys are
 * attention_gfx_decode.h's.
 *
 * gfx90a's products take subnormal numbers for 0: weights of f16 are 2^15 times as large there.
 *
 * Floor: 4 * rows * keys * head_dim operations of the matrix units. Not measured. In tiles of 128 keys, heads of 64
 * elements left registers for one wave instead of three; a barrier at the beginning of the loop, and not after the
 * writes that it is for, lost its wait in clang 19.
 * Includers define what attention_gpu.h asks for, and `unit`, a chip's matrix unit:
 *   WAVE, SIDE         lanes of a wave; rows and columns of a product, ELEMENTS of it a lane's sums
 *   VECTORS            that a lane has of a fragment, which is SIDE rows and 16 elements of k: 1, of its half of the
 *                      wave, or 2
 *   slot_of(number)    the row of a product whose sums are those of this number of 16 or 32; number_of(), its inverse
 *   weights_of(run)    the fragment of what a lane has of 16 weights
 *   WEIGHT_LOG2        of the factor of weights
 * Test: build/tests/ops/mha_test. Bench: build/kiln bench mha */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_GFX_H

#include "kernels/common/attention/attention_gpu.h"
#include "kernels/common/global.h"
#include "kernels/common/math/special.h"
#include "kernels/common/tuned.h"

enum : uint32_t {
    ROWS_OF_WAVE = unit::SIDE,
    PREFILL_ROWS = KILN_BLOCK / unit::WAVE * ROWS_OF_WAVE,
    STEP = 16,                   /* elements of k in a fragment */
    RUN = KILN_VECTOR,           /* of a lane's sums: neighbouring keys, or elements of a head */
    RUNS = unit::ELEMENTS / RUN, /* of a product */
    TILE_KEYS = 64               /* of a tile */
};

/* A tile in shared memory: k, a row for each key, and v, a row for each element of a head, with the keys beside each
 * other. */
template <uint32_t DIM, uint32_t KEYS_ = TILE_KEYS, uint32_t THREADS = KILN_BLOCK> struct tile {
    enum : uint32_t {
        KEYS = KEYS_,
        VECTORS = DIM / KILN_VECTOR,      /* of a row of k */
        KEY_VECTORS = KEYS / KILN_VECTOR, /* of one of v */
        SIZE = KEYS * VECTORS,            /* vectors of k; of v as many */
        LOADS = SIZE / THREADS,           /* that a thread loads of each */
        ACROSS = VECTORS / 8,             /* of these, of one key */
        DOWN = LOADS / ACROSS,            /* keys of k */
        APART = THREADS / 8,              /* from one of these to the next */
        GROUPS = KEYS / LOADS             /* of keys, of whose values a thread has a vector each */
    };
    KILN_INLINE uint32_t thread(void) { return kiln_thread(); }
};

/* Where a vector of a row is, of a tile's part of VECTORS a row: those of 8 neighbouring rows, and all of one row, meet
 * no bank twice. Both numbers are sums, of what depends on the thread and of a constant that shares no bit with it. Of
 * rows of 4 vectors it is two that meet no bank twice, neighbours or 8 rows apart. */
template <uint32_t VECTORS>
KILN_INLINE kiln_vector *place_of(kiln_vector *part, uint32_t thread_row, uint32_t row, uint32_t thread_vector,
                                  uint32_t vector) {
    if (VECTORS == 4) {
        uint32_t of_thread = (thread_row ^ thread_row / 8 % 2) * VECTORS + (thread_vector ^ thread_row / 2 % 4);
        uint32_t constant = (row ^ row / 8 % 2) * VECTORS + (vector ^ row / 2 % 4);
        return part + (of_thread ^ constant % 8) + constant / 8 * 8;
    }
    kiln_vector *place = part + thread_row * VECTORS + (thread_vector ^ thread_row % 8 ^ row % 8 ^ vector % 8);
    return place + (row * VECTORS + vector / 8 * 8);
}

/* The number of this thread's wave, which is the same for all of it. */
KILN_INLINE uint32_t wave_number(void) {
    return (uint32_t)__builtin_amdgcn_readfirstlane((int)(kiln_thread() / unit::WAVE));
}

/* Half of a wave: which of two runs of 8 numbers out of 16 a lane has. */
KILN_INLINE uint32_t half_of_wave(void) {
    return kiln_thread() % unit::WAVE / unit::SIDE;
}

/* Of a lane's sums, the number of one within its product. */
KILN_INLINE uint32_t number_of_sum(uint32_t element) {
    return element / RUN * STEP + half_of_wave() * RUN + element % RUN;
}

/* The fragment of SIDE rows, from `row` on, and of STEP elements. */
template <uint32_t VECTORS>
KILN_INLINE unit::fragment load_fragment(kiln_vector *part, uint32_t lane, uint32_t row, uint32_t step) {
    kiln_vector vectors[unit::VECTORS];
    KILN_UNROLL
    for (uint32_t i = 0; i < unit::VECTORS; i++)
        vectors[i] =
            *place_of<VECTORS>(part, lane % unit::SIDE, row, unit::VECTORS == 1 ? lane / unit::SIDE : 0, 2 * step + i);
    return unit::fragment_of(vectors);
}

/* Two numbers of f32 as elements, where half a unit more rounds to bf16: weights, which are not negative and whose NaNs
 * come back by their sum, and numbers of codes, which elements hold. */
KILN_INLINE uint32_t pack_short(float low, float high) {
#ifdef KILN_PART_bf16
    return __builtin_amdgcn_perm(kiln_bits(high) + 0x8000u, kiln_bits(low) + 0x8000u, 0x07060302u);
#else
    return kiln_element_from_f32(low) | (uint32_t)kiln_element_from_f32(high) << 16;
#endif
}

/* ---- Rows ---- */

typedef float weights4 __attribute__((ext_vector_type(4)));

/* What a lane has of one of its wave's rows: the sums of its half. */
template <uint32_t DIM> struct lane_row {
    uint32_t token, head;
    bool has; /* rows from the last on, which nobody has, are taken for the last one and not written */
    kiln_window window;
    float max;    /* of scores as exponents of 2 */
    weights4 sum; /* of this lane's keys */
    unit::sums result[DIM / unit::SIDE];
};

template <uint32_t DIM>
KILN_INLINE lane_row<DIM> start_row(const kiln_attention_args &args, const kiln_sequence &s,
                                    const kiln_attention_work &work, uint32_t row, uint32_t end) {
    lane_row<DIM> r = {};
    uint32_t number = row + kiln_thread() % unit::SIDE;
    r.has = number < end;
    number = r.has ? number : end - 1;
    uint32_t query = number / args.group;
    r.token = s.q_first + query;
    r.head = work.kv_head * args.group + (number - query * args.group);
    r.window = kiln_window_of(&args, &s, query);
    uint32_t last = work.key_end > r.window.begin ? work.key_end : r.window.begin;
    r.window.end = r.window.end < last ? r.window.end : last;
    r.max = -KILN_INFINITY;
    return r;
}

/* A row's query as fragments; zeros after its last element. */
template <uint32_t DIM>
KILN_INLINE void load_query(const kiln_attention_args &args, const lane_row<DIM> &r, unit::fragment *queries) {
    const kiln_element *q = (const kiln_element *)args.q + r.token * (uint64_t)args.q_stride + r.head * args.head_dim;
    KILN_UNROLL
    for (uint32_t step = 0; step < DIM / STEP; step++) {
        kiln_vector vectors[unit::VECTORS] = {};
        KILN_UNROLL
        for (uint32_t i = 0; i < unit::VECTORS; i++) {
            uint32_t d = step * STEP + (unit::VECTORS == 1 ? half_of_wave() : i) * KILN_VECTOR;
            if (d < args.head_dim) vectors[i] = kiln_vector_load(q + d);
        }
        queries[step] = unit::fragment_of(vectors);
    }
}

/* ---- Copies ---- */

/* What a thread copies of one tile after the other: of COUNT keys, APART from each other, ACROSS vectors, each 8
 * vectors from the next. The keys' blocks of the cache are looked up a tile ahead. */
template <uint32_t COUNT, uint32_t APART, uint32_t ACROSS> struct copier {
    uint32_t key, end; /* the first one's number, and that of the last key */
    uint32_t blocks[COUNT];
    uint64_t row;   /* the first one's, where they are contiguous, in elements */
    uint32_t first; /* element of a head */

    KILN_INLINE void look_up(const kiln_attention_args &args, const kiln_sequence &s, copier *c) {
        KILN_UNROLL
        for (uint32_t i = 0; PAGED && i < COUNT; i++)
            if (c->key + i * APART < c->end) c->blocks[i] = kiln_key_block(&args, &s, c->key + i * APART);
    }

    KILN_INLINE copier start(const kiln_attention_args &args, const kiln_sequence &s, const kiln_attention_work &work,
                             uint64_t stride, uint32_t key, uint32_t vector) {
        copier c = {work.key + key, work.key_end, {}, 0, vector * KILN_VECTOR};
        c.row = kiln_block_row(&args, &s, 0, c.key) * stride + work.kv_head * args.head_dim + c.first;
        look_up(args, s, &c);
        return c;
    }

    /* Loads from k or v, of codes half as many bytes; zeros after the last key and after a head's last element,
     * unless the tile is full. Then it goes on to the next tile. */
    KILN_INLINE void load(const kiln_attention_args &args, const kiln_sequence &s, const kiln_attention_work &work,
                          const void *data, uint64_t stride, bool full, copier *c, kiln_vector *vectors) {
        bool codes = PAGED && args.codes;
        KILN_UNROLL
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t key = c->key + i * APART;
            uint64_t row = c->row + i * APART * stride;
            if (PAGED)
                row = kiln_block_row(&args, &s, c->blocks[i], key) * stride + work.kv_head * args.head_dim + c->first;
            KILN_UNROLL
            for (uint32_t j = 0; j < ACROSS; j++) {
                uint32_t next = 8 * j * KILN_VECTOR;
                kiln_vector loaded = {};
                if (full || (key < c->end && c->first + next < args.head_dim)) {
                    if (codes) {
                        uint64_t bytes = *(const uint64_t *)((const char *)data + row + next);
                        loaded.words[0] = (uint32_t)bytes;
                        loaded.words[1] = (uint32_t)(bytes >> 32);
                    } else {
                        loaded = kiln_vector_load((const kiln_element *)data + row + next);
                    }
                }
                vectors[i * ACROSS + j] = loaded;
            }
        }
        c->key += TILE_KEYS;
        c->row += TILE_KEYS * stride;
        look_up(args, s, c);
    }
};

/* The numbers of the two codes in the low half of a word: their magnitudes, moved to where f16 has its own, are those
 * times 2^-8, subnormal ones too. */
KILN_INLINE uint32_t pair_of_codes(uint32_t codes) {
    typedef _Float16 half2 __attribute__((ext_vector_type(2)));
    uint32_t apart = __builtin_amdgcn_perm(0, codes, 0x0c010c00u), magnitudes = apart & 0x007f007fu;
    uint32_t nans = (magnitudes + 0x00010001u) & 0x00800080u;
    uint32_t bits = (magnitudes | nans) << 7 | (apart & 0x00800080u) << 8;
    half2 numbers = __builtin_bit_cast(half2, bits) * (half2){256.0f16, 256.0f16};
#ifdef KILN_PART_bf16
    return pack_short((float)numbers[0], (float)numbers[1]);
#else
    return __builtin_bit_cast(uint32_t, numbers);
#endif
}

/* Codes, of which a vector has 8 in its first half, become elements. Where registers are left it is in a loop, in which
 * each vector is in the first's place once, for the size of the image. */
template <uint32_t LOADS> KILN_INLINE void convert(kiln_vector *vectors) {
    _Pragma("unroll unit::VECTORS == 2 && LOADS > 2 ? LOADS : 1") for (uint32_t i = 0; i < LOADS; i++) {
        kiln_vector numbers;
        KILN_UNROLL
        for (uint32_t w = 0; w < 4; w++)
            numbers.words[w] = pair_of_codes(vectors[0].words[w / 2] >> w % 2 * 16);
        KILN_UNROLL
        for (uint32_t j = 1; j < LOADS; j++)
            vectors[j - 1] = vectors[j];
        vectors[LOADS - 1] = numbers;
    }
}

/* Eight neighbouring threads have the same vector of 8 rows of k. */
template <class t> KILN_INLINE uint32_t key_slot(void) {
    return t::thread() % 8 + t::thread() / 64 * 8;
}
template <class t> KILN_INLINE uint32_t key_vector(void) {
    return t::thread() / 8 % 8;
}

template <class t> KILN_INLINE void store_keys(const kiln_vector *vectors, kiln_vector *part) {
    KILN_UNROLL
    for (uint32_t i = 0; i < t::LOADS; i++)
        *place_of<t::VECTORS>(part, key_slot<t>(), i / t::ACROSS * t::APART, key_vector<t>(), i % t::ACROSS * 8) =
            vectors[i];
}

/* Neighbouring threads have the same elements of the values of neighbouring groups of keys. */
template <class t> KILN_INLINE uint32_t value_group(void) {
    return t::thread() % t::GROUPS;
}
template <class t> KILN_INLINE uint32_t value_vector(void) {
    return t::thread() / t::GROUPS;
}

/* A thread's values of a group, turned: the row of each element gets those of the keys beside each other. */
template <class t> KILN_INLINE void store_values(const kiln_vector *vectors, kiln_vector *part) {
    enum : uint32_t { WORDS = t::LOADS / 2, IN_VECTOR = KILN_VECTOR / t::LOADS };
    typedef struct run {
        uint32_t words[WORDS];
    } __attribute__((aligned(t::LOADS * sizeof(kiln_element)))) run;
    uint32_t first = unit::slot_of(value_vector<t>() * KILN_VECTOR), group = value_group<t>();
    KILN_UNROLL
    for (uint32_t e = 0; e < KILN_VECTOR; e++) {
        run keys;
        KILN_UNROLL
        for (uint32_t w = 0; w < WORDS; w++)
            keys.words[w] = __builtin_amdgcn_perm(vectors[2 * w + 1].words[e / 2], vectors[2 * w].words[e / 2],
                                                  e % 2 ? 0x07060302u : 0x05040100u);
        kiln_vector *place = place_of<t::KEY_VECTORS>(part, first, unit::slot_of(e), group / IN_VECTOR, 0);
        ((run *)place)[group % IN_VECTOR] = keys;
    }
}

/* ---- A wave and a tile ---- */

/* How products become exponents of 2: times a factor; `twice` makes those of the cap's tanh of them. */
struct score_scale {
    float factor, twice;
};

/* A number that all lanes have, which then takes no register of each. */
KILN_INLINE float uniform(float value) {
    return kiln_float((uint32_t)__builtin_amdgcn_readfirstlane((int)kiln_bits(value)));
}

KILN_INLINE score_scale score_scale_of(const kiln_attention_args &args, uint32_t kv_head) {
    float scale = args.scale * kiln_cache_scale(&args, args.k_scale, kv_head);
    if (args.softcap == 0.0f) return {uniform(scale * KILN_LOG2_E), 0.0f};
    return {0.0f, uniform(scale * 2.0f * KILN_LOG2_E * kiln_fast_reciprocal(args.softcap))};
}

/* kiln_score of a score that is capped, times log2 e. */
KILN_INLINE float capped(float dot, float twice, float softcap) {
    float power = kiln_fast_exp2(dot * twice);
    return KILN_FMA(kiln_fast_reciprocal(1.0f + power), -2.0f * softcap, softcap);
}

/* Takes the keys that the row's tree mask leaves out. */
template <uint32_t KEYS>
KILN_INLINE void mask_tree(const kiln_attention_args *args, int32_t tree, uint32_t token, uint32_t key,
                           unit::sums *scores) {
    KILN_UNROLL
    for (uint32_t first = 0; first < KEYS; first += 32) {
        uint32_t bits = kiln_tree_bits(args, tree, token, key + first) >> half_of_wave() * RUN;
        KILN_UNROLL
        for (uint32_t i = 0; i < 32 / 2; i++) {
            uint32_t sum = first / 2 + i;
            float *score = (float *)&scores[sum / unit::ELEMENTS];
            if (!(bits >> (i / RUN * STEP + i % RUN) & 1)) score[sum % unit::ELEMENTS] = -KILN_INFINITY;
        }
    }
}

/* Adds the mask; keys after a row's window are left as they are. Where the row stands in the mask is computed anew,
 * for want of registers to keep it in. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void add_mask(const kiln_attention_args *args, const kiln_attention_work &work, const kiln_sequence &s,
                          const lane_row<DIM> &r, uint32_t key, unit::sums *scores) {
    const kiln_element *row = (const kiln_element *)args->mask;
    uint32_t first = key + half_of_wave() * RUN;
    /* kiln_mask_row in parts, which take fewer registers. */
    uint64_t plane = args->mask_rows * (uint64_t)args->mask_cols;
    if (args->mask_batch > 1) row += work.batch * plane * args->mask_heads;
    if (args->mask_heads > 1) row += r.head * plane;
    row += (r.token - s.q_first) * (uint64_t)args->mask_cols + first;
    KILN_UNROLL
    for (uint32_t sum = 0; sum < KEYS / 2; sum++) {
        uint32_t n = sum / unit::ELEMENTS, i = sum % unit::ELEMENTS, at = sum / RUN * STEP + sum % RUN;
        if (i % RUN == 0) __builtin_amdgcn_sched_barrier(0); /* registers are too few to read all at once */
        if (first + at >= r.window.end) continue;
        float added = kiln_element_to_f32(row[at]);
        scores[n][i] = added == -KILN_INFINITY ? -KILN_INFINITY : KILN_FMA(added, KILN_LOG2_E, scores[n][i]);
    }
}

/* Adds to N products the SIDE rows of each, of a tile's part, times STEPS fragments. A few fragments of the part are on
 * their way while those before are multiplied, and no more, for want of registers. */
template <uint32_t VECTORS, uint32_t N, uint32_t STEPS>
KILN_INLINE void multiply(kiln_vector *part, const unit::fragment *right, unit::sums *sums) {
    enum : uint32_t { FEW = unit::VECTORS == 2 ? 1 : N < 4 ? N : 4, TIMES = N * STEPS / FEW };
    unit::fragment next[FEW];
    uint32_t lane = kiln_thread() % unit::WAVE;
    if (unit::VECTORS == 2) __asm__ volatile("" : "+v"(lane)); /* places are computed anew, for want of registers */
    KILN_UNROLL
    for (uint32_t time = 0; time <= TIMES; time++) {
        unit::fragment now[FEW];
        KILN_UNROLL
        for (uint32_t i = 0; i < FEW; i++) {
            uint32_t number = time * FEW + i;
            now[i] = next[i];
            if (time < TIMES) next[i] = load_fragment<VECTORS>(part, lane, number % N * unit::SIDE, number / N);
        }
        KILN_UNROLL
        for (uint32_t i = 0; time && i < FEW; i++) {
            uint32_t number = (time - 1) * FEW + i;
            sums[number % N] = unit::multiply(now[i], right[number / N], sums[number % N]);
        }
        __builtin_amdgcn_sched_barrier(0);
    }
}

/* Scores become weights relative to the row's maximum, and what is left of the old result is scaled to that. */
template <uint32_t DIM, uint32_t KEYS = TILE_KEYS>
KILN_INLINE void weigh(const kiln_attention_args &args, const kiln_attention_work &work, const kiln_sequence &s,
                       const score_scale &scale, bool whole, uint32_t key, lane_row<DIM> *r, unit::sums *scores) {
    enum : uint32_t { PRODUCTS = KEYS / unit::SIDE };
    float softcap = uniform(args.softcap * KILN_LOG2_E);
    KILN_UNROLL
    for (uint32_t n = 0; n < PRODUCTS; n++) {
        if (args.softcap == 0.0f) {
            scores[n] *= scale.factor;
        } else {
            KILN_UNROLL
            for (uint32_t i = 0; i < unit::ELEMENTS; i++)
                scores[n][i] = capped(scores[n][i], scale.twice, softcap);
        }
    }
    if (!PAGED && args.mask) add_mask<DIM, KEYS>(KILN_LATE_ARGS(kiln_attention_args, args), work, s, *r, key, scores);
    if (!whole) {
        uint32_t first = key - r->window.begin + half_of_wave() * RUN, length = r->window.end - r->window.begin;
        KILN_UNROLL
        for (uint32_t n = 0; n < PRODUCTS; n++) {
            KILN_UNROLL
            for (uint32_t i = 0; i < unit::ELEMENTS; i++)
                if (first + (n * unit::SIDE + i / RUN * STEP + i % RUN) >= length) scores[n][i] = -KILN_INFINITY;
        }
    }
    if (PAGED && args.tree_mask) {
        int32_t tree = kiln_tree_begin(&args, &s);
        if ((int32_t)(key + KEYS) > tree)
            mask_tree<KEYS>(KILN_LATE_ARGS(kiln_attention_args, args), tree, r->token, key, scores);
    }

    float max = r->max;
    KILN_UNROLL
    for (uint32_t n = 0; n < PRODUCTS; n++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < unit::ELEMENTS; i++)
            max = __builtin_fmaxf(max, scores[n][i]);
    }
    max = __builtin_fmaxf(max, unit::other_half(max));
    float origin = max == -KILN_INFINITY ? 0.0f : max;
    if (unit::any(max > r->max)) {
        float keep = kiln_fast_exp2(r->max - origin);
        r->sum *= keep;
        KILN_UNROLL
        for (uint32_t n = 0; n < DIM / unit::SIDE; n++)
            r->result[n] *= keep;
    }
    r->max = max;
    KILN_UNROLL
    for (uint32_t n = 0; n < PRODUCTS; n++) {
        scores[n] -= origin;
        if (unit::WEIGHT_LOG2) scores[n] += (float)unit::WEIGHT_LOG2;
        KILN_UNROLL
        for (uint32_t i = 0; i < unit::ELEMENTS; i++)
            scores[n][i] = kiln_fast_exp2(scores[n][i]);
        KILN_UNROLL
        for (uint32_t i = 0; i < unit::ELEMENTS; i += 4)
            r->sum += weights4{scores[n][i], scores[n][i + 1], scores[n][i + 2], scores[n][i + 3]};
    }
}

/* Weights as fragments. */
template <uint32_t KEYS = TILE_KEYS> KILN_INLINE void pack(const unit::sums *scores, unit::fragment *weights) {
    KILN_UNROLL
    for (uint32_t step = 0; step < KEYS / STEP; step++) {
        kiln_vector own;
        KILN_UNROLL
        for (uint32_t w = 0; w < 4; w++) {
            uint32_t i = step % RUNS * RUN + 2 * w;
            own.words[w] = pack_short(scores[step / RUNS][i], scores[step / RUNS][i + 1]);
        }
        weights[step] = unit::weights_of(own);
    }
}

/* ---- The end ---- */

template <uint32_t DIM>
KILN_INLINE void write_row(const kiln_attention_args *args, const kiln_attention_work &work, const lane_row<DIM> &r) {
    float half = (r.sum[0] + r.sum[1]) + (r.sum[2] + r.sum[3]), sum = half + unit::other_half(half),
          v_scale = kiln_cache_scale(args, args->v_scale, work.kv_head);
    float max = (r.max - (float)unit::WEIGHT_LOG2) * 0x1.62e430p-1f; /* of natural exponents */
    if (!r.has) return;
    uint64_t place = kiln_partial_row(args, work.split, r.token, r.head);
    if (half_of_wave() == 0) {
        if (args->partials) {
            kiln_partial_scales(args)[2 * place] = max;
            kiln_partial_scales(args)[2 * place + 1] = sum;
        } else if (args->lse) {
            args->lse[r.head * (uint64_t)args->tokens + r.token] = sum == 0.0f ? -KILN_INFINITY : max + kiln_log(sum);
        }
    }
    float scale = args->partials ? v_scale : sum == 0.0f ? 0.0f : v_scale * kiln_reciprocal(sum);
    kiln_element *out = (kiln_element *)args->out + r.token * (uint64_t)args->out_stride + r.head * args->head_dim;
    float *partial = KILN_GLOBAL(float, args->partials) + place * args->head_dim;
    KILN_UNROLL
    for (uint32_t n = 0; n < DIM / unit::SIDE; n++) {
        KILN_UNROLL
        for (uint32_t first = 0; first < unit::ELEMENTS; first += RUN) {
            uint32_t d = n * unit::SIDE + number_of_sum(first);
            if (d >= args->head_dim) continue;
            float values[RUN];
            KILN_UNROLL
            for (uint32_t i = 0; i < RUN; i++)
                values[i] = r.result[n][first + i] * scale;
            if (args->partials) {
                KILN_UNROLL
                for (uint32_t i = 0; i < RUN; i += 4)
                    *(quad *)(partial + d + i) = {{values[i], values[i + 1], values[i + 2], values[i + 3]}};
            } else {
                kiln_vector vector;
                KILN_UNROLL
                for (uint32_t w = 0; w < RUN / 2; w++)
                    vector.words[w] =
                        kiln_element_from_f32(values[2 * w]) | (uint32_t)kiln_element_from_f32(values[2 * w + 1]) << 16;
                kiln_vector_store(out + d, vector);
            }
        }
    }
}

/* ---- prefill ---- */

/* Of heads of up to DIM elements, of which USED are multiplied. */
template <uint32_t DIM, uint32_t USED = DIM> KILN_INLINE void prefill(const kiln_attention_args &args) {
    typedef tile<DIM> t;
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    kiln_vector *k = memory, *v = memory + t::SIZE;
    kiln_attention_work work = kiln_attention_work_of(&args, 0, (uint32_t)kiln_block());
    work.row = (args.row_tiles - 1 - kiln_tile()) * PREFILL_ROWS; /* the last rows first: with causal they see most */
    if (work.batch >= args.batch) return;                         /* the whole block */
    kiln_sequence s = kiln_sequence_of(&args, work.batch);
    uint32_t end = s.seqlen_q * args.group; /* of the rows */
    if (work.row >= end) return;            /* the whole block */
    kiln_attention_trim(&args, &s, work.row + PREFILL_ROWS < end ? work.row + PREFILL_ROWS : end, &work);

    typedef copier<t::DOWN, t::APART, t::ACROSS> key_copier;
    typedef copier<t::LOADS, 1, 1> value_copier;
    kiln_vector next_keys[t::LOADS], next_values[t::LOADS];
    uint64_t k_stride = (uint64_t)args.k_stride, v_stride = (uint64_t)args.v_stride;
    key_copier keys = key_copier::start(args, s, work, k_stride, unit::number_of(key_slot<t>()), key_vector<t>());
    value_copier values = value_copier::start(args, s, work, v_stride, value_group<t>() * t::LOADS, value_vector<t>());
    key_copier::load(args, s, work, args.k, k_stride, false, &keys, next_keys);
    value_copier::load(args, s, work, args.v, v_stride, false, &values, next_values);

    uint32_t row = work.row + wave_number() * ROWS_OF_WAVE;
    lane_row<USED> r = start_row<USED>(args, s, work, row, end);
    unit::fragment queries[USED / STEP];
    load_query<USED>(args, r, queries);
    score_scale scale = score_scale_of(args, work.kv_head);
    bool codes = PAGED && args.codes;
    KILN_LOOP
    for (uint32_t key = work.key; key < work.key_end; key += TILE_KEYS) {
        unit::sums scores[TILE_KEYS / unit::SIDE] = {};
        bool sees = row < end && unit::any(key < r.window.end && key + TILE_KEYS > r.window.begin);
        bool whole = !unit::any(key < r.window.begin || key + TILE_KEYS > r.window.end);
        bool full = args.head_dim == DIM && key + 2 * TILE_KEYS <= work.key_end; /* the next tile */
        if (codes) convert<t::LOADS>(next_keys);
        store_keys<t>(next_keys, k);
        kiln_barrier();
        key_copier::load(args, s, work, args.k, k_stride, full, &keys, next_keys);
        if (sees) multiply<t::VECTORS, TILE_KEYS / unit::SIDE, USED / STEP>(k, queries, scores);
        if (codes) convert<t::LOADS>(next_values);
        store_values<t>(next_values, v);
        kiln_barrier();
        value_copier::load(args, s, work, args.v, v_stride, full, &values, next_values);
        if (sees) {
            weigh<USED>(args, work, s, scale, whole, key, &r, scores);
            unit::fragment weights[TILE_KEYS / STEP];
            pack(scores, weights);
            multiply<t::KEY_VECTORS, USED / unit::SIDE, TILE_KEYS / STEP>(v, weights, r.result);
        }
    }
    if (row < end) write_row<USED>(KILN_LATE_ARGS(kiln_attention_args, args), work, r);
}

#define ENTRY_PASTE(kernel, part, threads)                                                                         \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void kiln_##kernel##_##part( \
        const kiln_attention_args args)
#define ENTRY_OF_PART(kernel, part, threads) ENTRY_PASTE(kernel, part, threads)

/* Head of an entry of so many threads. */
#define ENTRY_OF_THREADS(kernel, threads) ENTRY_OF_PART(kernel, KILN_PART, threads)

#endif
