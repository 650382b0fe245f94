/* Attention for sm_80 and later, f16 and bf16, and for sm_75, f16: the device source of mha and mha_paged by matrix
 * instructions, beside the portable kernels (attention_gpu.h) for heads and rows that are not on 16 bytes. Here is what
 * a warp does with its rows and a tile of keys, and prefill; attention_sm80_decode.h is for few rows.
 *
 * Both multiply by mma.sync m16n8k16 with sums in f32 (Dao, FlashAttention-2, arXiv 2307.08691): q k^T, whose sums are,
 * element for element, the fragments that the product of the weights with v wants, so that weights stay in registers;
 * they are rounded to the part's precision, their sums are of what they were before. Results are scaled anew only where
 * some row's maximum rose. Rows of shared memory are 16 bytes longer than a head, whereby neither copies nor ldmatrix
 * meet a bank twice. Heads are filled up to 64, 96, 128 or 256 elements with zeros that are not read from memory.
 *
 * prefill: a block does 128 rows, 16 by a warp, over tiles of 64 keys (16 where a head has 256 elements, whose queries
 * stay in shared memory; on sm_75 those of 64 rows). cp.async fetches the next tile of k and v while one is at work:
 * one barrier a tile. The rows with the most keys to see, the last, go first.
 *
 * Floor: 4 * rows * keys * head_dim operations, of which mma.sync does 0.6 of an H100's. A prototype of this structure
 * on an H100: 330 to 360 TFLOP/s at 4096 and 16384 keys (head_dim 128, on a par with FlashAttention-2). Tiles of 32
 * keys were 15 to 20 % slower. Prefill here is not measured.
 * Includers define what attention_gpu.h asks for. Test: build/tests/ops/mha_test. Bench: build/kiln bench mha */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM80_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM80_H

#include "kernels/arch/sm80.h"
#include "kernels/common/attention/attention_gpu.h"
#include "kernels/common/attention/attention_sm80_codes.h"
#include "kernels/common/copies.h"
#include "kernels/common/math/special.h"
#include "kernels/common/tuned.h"

enum : uint32_t { LANES = 32, WARPS = KILN_BLOCK / LANES, WARP_ROWS = 16, PREFILL_ROWS = WARPS * WARP_ROWS };

/* Heads of DIM elements, in shared memory: as they are, or as codes of a byte. */
template <uint32_t DIM, bool CODES = false> struct heads {
    enum : uint32_t {
        ELEMENTS = CODES ? KILN_VECTOR_BYTES : KILN_VECTOR, /* of a vector */
        VECTORS = DIM / ELEMENTS,
        PITCH = (VECTORS + 1) * KILN_VECTOR_BYTES
    };
};

/* Where a row stands in q and out, and among partial results. */
struct row_place {
    uint32_t token, head;
};

KILN_INLINE row_place row_place_of(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head,
                                   uint32_t row) {
    return {s.q_first + row / args.group, kv_head * args.group + row % args.group};
}

/* What a warp has of its 16 rows. A lane has 2 of them, lane / 4 and 8 more, and of each every fourth pair of
 * neighbouring elements. */
template <uint32_t DIM> struct rows_of_warp {
    row_place at[2];
    bool has[2]; /* rows from the last on, which nobody has, are taken for the last one and not written */
    kiln_window window[2];
    float max[2], sum[2]; /* of scores before their scale; of this lane's keys */
    float unit[2];        /* of queries beside codes: what they were divided by */
    float result[DIM / 8][4];
};

/* How scores become exponents of 2: times a factor, and those that are capped have it already. `unit` makes natural
 * ones of them, `twice` those of the cap's tanh of products. */
struct score_scale {
    float factor, unit, twice;
};

template <bool CODES = true> KILN_INLINE score_scale score_scale_of(const kiln_attention_args &args, uint32_t kv_head) {
    float scale = args.scale * (CODES ? kiln_cache_scale(&args, args.k_scale, kv_head) : 1.0f);
    if (args.softcap == 0.0f) return {scale * KILN_LOG2_E, scale, 0.0f};
    return {1.0f, 0x1.62e430p-1f, scale * 2.0f * KILN_LOG2_E * kiln_fast_reciprocal(args.softcap)};
}

/* The first key with a mask, and whether there are such before `end`. */
KILN_INLINE int32_t masked_from(const kiln_attention_args &args, const kiln_sequence &s) {
    return PAGED && args.tree_mask ? kiln_tree_begin(&args, &s) : INT32_MAX;
}
KILN_INLINE bool has_mask(int32_t tree, uint32_t end) {
    return PAGED && (int32_t)end > tree;
}

/* Takes the scores of a lane's rows with the keys from `key` on that the rows' masks leave out. tokens: the rows of q.
 */
template <uint32_t KEYS>
KILN_INLINE void mask_tree(const kiln_attention_args &args, int32_t tree, float (*scores)[4], const uint32_t *tokens,
                           uint32_t key) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        KILN_UNROLL
        for (uint32_t first = 0; first < KEYS; first += 32) {
            uint32_t bits = kiln_tree_bits(&args, tree, tokens[r], key + first) >> kiln_thread() % 4 * 2;
            KILN_UNROLL
            for (uint32_t n = 0; n < 4 && first + 8 * n < KEYS; n++) {
                float *two = scores[first / 8 + n] + 2 * r;
                if (!(bits >> 8 * n & 1)) two[0] = -KILN_INFINITY;
                if (!(bits >> 8 * n & 2)) two[1] = -KILN_INFINITY;
            }
        }
    }
}

/* Adds the mask to the scores of a lane's rows with the keys from `key` on; those behind a row's window are left as
 * they are. Where the rows stand in the mask is computed anew, for want of registers to keep it in. */
template <uint32_t DIM, uint32_t KEYS>
KILN_INLINE void add_mask(const kiln_attention_args &args, const rows_of_warp<DIM> &rows, float (*scores)[4],
                          uint32_t key) {
    uint32_t batch = kiln_attention_work_of(&args, 0, (uint32_t)kiln_block()).batch;
    uint32_t q_first = kiln_sequence_of(&args, batch).q_first;
    float factor = args.softcap == 0.0f ? kiln_reciprocal(args.scale) : KILN_LOG2_E;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const kiln_element *row = (const kiln_element *)args.mask;
        row += kiln_mask_row(&args, batch, rows.at[r].head, rows.at[r].token - q_first);
        KILN_UNROLL
        for (uint32_t i = 0; i < KEYS / 4; i++) {
            uint32_t at = key + i / 2 * 8 + kiln_thread() % 4 * 2 + i % 2;
            float *score = &scores[i / 2][2 * r + i % 2];
            if (at >= rows.window[r].end) continue;
            float added = kiln_element_to_f32(row[at]);
            *score = added == -KILN_INFINITY ? -KILN_INFINITY : KILN_FMA(added, factor, *score);
        }
    }
}

/* kiln_score of a score that is capped, times log2 e. */
KILN_INLINE float capped(float dot, float twice, float softcap) {
    float power = kiln_fast_exp2(dot * twice);
    return KILN_FMA(kiln_fast_reciprocal(1.0f + power), -2.0f * softcap, softcap);
}

/* F16: in place of the part's precision. */
template <bool F16 = false> KILN_INLINE uint32_t pack(float low, float high) {
    const float values[2] = {low, high};
#ifdef KILN_PART_bf16
    if (!F16) return kiln_ptx_cvt_rn_bf16x2_f32(values);
#endif
    return kiln_ptx_cvt_rn_f16x2_f32(values);
}

template <bool F16 = false> KILN_INLINE void mma(float *sums, const uint32_t *a, const uint32_t *b) {
#ifdef KILN_PART_bf16
    if (!F16) return kiln_sm80_mma_bf16(sums, a, b);
#endif
#if __CUDA_ARCH__ >= 800
    kiln_sm80_mma_f16(sums, a, b);
#else
    kiln_sm75_mma_f16(sums, a, b);
#endif
}

template <uint32_t DIM, bool CODES = false>
KILN_INLINE uint32_t vector_at(uint32_t shared, uint32_t row, uint32_t vector) {
    return shared + row * heads<DIM, CODES>::PITCH + vector * KILN_VECTOR_BYTES;
}

/* A fragment of 16 rows and 16 elements as the first factor: the queries. */
template <uint32_t DIM> KILN_INLINE void load_queries(uint32_t *fragment, uint32_t shared, uint32_t step) {
    uint32_t lane = kiln_thread() % LANES;
    kiln_sm80_ldmatrix_x4(fragment, vector_at<DIM>(shared, lane % 16, 2 * step + lane / 16));
}

/* ---- Copies ---- */

/* What a thread copies of tiles of keys and values, one tile after the other: of one key STEP elements and again. The
 * lanes of a warp have 8 keys and 4 vectors of each, so that memory is read by 64 bytes and no bank is met twice. The
 * block of the cache is looked up a tile ahead. */
struct copier {
    const char *k, *v; /* this thread's first element of row 0 */
    uint32_t key, end; /* of the next tile, its own key, and the last */
    uint32_t block;
    uint32_t left; /* elements of a head from this thread's first one on */
};

enum : uint32_t { COPY_KEYS = 8, COPY_VECTORS = LANES / COPY_KEYS };

KILN_INLINE void look_up(const kiln_attention_args &args, const kiln_sequence &s, copier *c) {
    if (c->key < c->end) c->block = kiln_key_block(&args, &s, c->key);
}

/* first: the thread's first element, of so many bytes. */
KILN_INLINE copier copier_of(const kiln_attention_args &args, const kiln_sequence &s, const kiln_attention_work &work,
                             uint32_t row, uint32_t first, uint32_t bytes) {
    uint64_t offset = (uint64_t)(work.kv_head * args.head_dim + first) * bytes;
    copier c = {(const char *)args.k + offset,
                (const char *)args.v + offset,
                work.key + row,
                work.key_end,
                0,
                first < args.head_dim ? args.head_dim - first : 0};
    look_up(args, s, &c);
    return c;
}

/* Starts to copy COUNT vectors of a key and of its value into shared memory at `k_to` and `v_to`, STEP vectors apart;
 * zeros behind the last key and behind a head's last element, of which a vector has ELEMENTS. Then it goes on to the
 * key of the next tile, STRIDE keys on. */
template <uint32_t COUNT, uint32_t STEP, uint32_t STRIDE, uint32_t ELEMENTS>
KILN_INLINE void copy_key(const kiln_attention_args &args, const kiln_sequence &s, copier *c,
                          copies<2 * COUNT> *under_way, uint32_t k_to, uint32_t v_to) {
    bool present = c->key < c->end;
    uint64_t row = present ? kiln_block_row(&args, &s, c->block, c->key) * (KILN_VECTOR_BYTES / ELEMENTS) : 0;
    const char *k = c->k + row * (uint64_t)args.k_stride, *v = c->v + row * (uint64_t)args.v_stride;
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t first = i * STEP * KILN_VECTOR_BYTES;
        bool copied = present && i * STEP * ELEMENTS < c->left;
        uint32_t bytes = copied ? KILN_VECTOR_BYTES : 0;
        under_way->start(2 * i, k_to + first, copied ? k + first : args.k, bytes);
        under_way->start(2 * i + 1, v_to + first, copied ? v + first : args.v, bytes);
    }
    c->key += STRIDE;
    look_up(args, s, c);
}

/* The same of a key and a value of codes, which become elements on their way. */
template <uint32_t COUNT, uint32_t STEP, uint32_t STRIDE>
KILN_INLINE void convert_key(const kiln_attention_args &args, const kiln_sequence &s, copier *c, uint32_t k_to,
                             uint32_t v_to) {
    bool present = c->key < c->end;
    uint64_t row = present ? kiln_block_row(&args, &s, c->block, c->key) : 0;
    const char *k = c->k + row * (uint64_t)args.k_stride, *v = c->v + row * (uint64_t)args.v_stride;
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t first = i * STEP * KILN_VECTOR;
        bool copied = present && first < c->left;
        kiln_sm80_shared_store_v4(k_to + 2 * first, vector_of_codes(k + first, copied).words);
        kiln_sm80_shared_store_v4(v_to + 2 * first, vector_of_codes(v + first, copied).words);
    }
    c->key += STRIDE;
    look_up(args, s, c);
}

/* ---- A warp and a tile ---- */

/* Adds a tile of KEYS keys, the first of which is `key`, to a warp's rows. queries are fragments, or in shared memory
 * where they are too many for registers; keys and values may be CODES. All lanes come here. */
template <uint32_t DIM, uint32_t KEYS, bool QUERIES_SHARED, bool CODES>
KILN_INLINE void add_keys(const kiln_attention_args &args, const score_scale &scale, int32_t tree,
                          rows_of_warp<DIM> *rows, const uint32_t (*queries)[4], uint32_t shared_queries,
                          uint32_t k_shared, uint32_t v_shared, uint32_t key) {
    constexpr bool F16 = CODES && CODES_ARE_F16;
    uint32_t lane = kiln_thread() % LANES;
    bool sees = false, whole = true;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        kiln_window window = rows->window[r];
        sees |= key < window.end && key + KEYS > window.begin;
        whole &= key >= window.begin && key + KEYS <= window.end;
    }
    if (!__any_sync(0xffffffffu, sees)) return;
    whole = __all_sync(0xffffffffu, whole);
    bool masked = has_mask(tree, key + KEYS);

    float scores[KEYS / 8][4] = {};
    KILN_UNROLL
    for (uint32_t step = 0; step < DIM / 16; step++) {
        uint32_t from_shared[4];
        const uint32_t *a = from_shared;
        if (QUERIES_SHARED)
            load_queries<DIM>(from_shared, shared_queries, step);
        else
            a = queries[step];
        KILN_UNROLL
        for (uint32_t n = 0; !CODES && n < KEYS / 16; n++) {
            uint32_t b[4], row = 16 * n + lane % 8 + lane / 16 * 8;
            kiln_sm80_ldmatrix_x4(b, vector_at<DIM>(k_shared, row, 2 * step + lane / 8 % 2));
            mma(scores[2 * n], a, b);
            mma(scores[2 * n + 1], a, b + 2);
        }
        KILN_UNROLL
        for (uint32_t n = 0; CODES && n < KEYS / 32; n++) {
            uint32_t words[4], b[8];
            kiln_sm80_ldmatrix_x4(words, vector_at<DIM, CODES>(k_shared, 32 * n + lane, step));
            key_fragments(b, words);
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                mma<F16>(scores[4 * n + i], a, b + 2 * i);
        }
    }
    if (F16) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KEYS / 2; i++)
            scores[i / 4][i % 4] *= rows->unit[i / 2 % 2];
    }

    if (args.softcap != 0.0f) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KEYS / 2; i++)
            scores[i / 4][i % 4] = capped(scores[i / 4][i % 4], scale.twice, args.softcap * KILN_LOG2_E);
    }
    if (!PAGED && args.mask) add_mask<DIM, KEYS>(args, *rows, scores, key);
    if (!whole) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KEYS / 2; i++) {
            kiln_window window = rows->window[i / 2 % 2];
            uint32_t at = key + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (at - window.begin >= window.end - window.begin) scores[i / 4][i % 4] = -KILN_INFINITY;
        }
    }
    if (masked) {
        const uint32_t tokens[2] = {rows->at[0].token, rows->at[1].token};
        mask_tree<KEYS>(args, tree, scores, tokens, key);
    }

    float origin[2], keep[2];
    bool rose = false;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float max = rows->max[r];
        KILN_UNROLL
        for (uint32_t n = 0; n < KEYS / 8; n++)
            max = fmaxf(max, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
        max = fmaxf(max, kiln_shuffle_xor(max, 1));
        max = fmaxf(max, kiln_shuffle_xor(max, 2));
        origin[r] = max == -KILN_INFINITY ? 0.0f : max;
        keep[r] = kiln_fast_exp2((rows->max[r] - origin[r]) * scale.factor);
        rose |= max > rows->max[r];
        rows->max[r] = max;
    }
    if (__any_sync(0xffffffffu, rose)) {
        KILN_UNROLL
        for (uint32_t i = 0; i < DIM / 2; i++)
            rows->result[i / 4][i % 4] *= keep[i / 2 % 2];
        rows->sum[0] *= keep[0];
        rows->sum[1] *= keep[1];
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < KEYS / 2; i++) {
        float power = scores[i / 4][i % 4] - origin[i / 2 % 2];
        float weight =
            kiln_fast_exp2(F16 ? KILN_FMA(power, scale.factor, (float)CODES_WEIGHT_LOG2) : power * scale.factor);
        rows->sum[i / 2 % 2] += weight;
        scores[i / 4][i % 4] = weight;
    }

    KILN_UNROLL
    for (uint32_t n = 0; n < KEYS / 16; n++) {
        const float *left = scores[2 * n], *right = scores[2 * n + 1];
        const uint32_t a[4] = {pack<F16>(left[0], left[1]), pack<F16>(left[2], left[3]), pack<F16>(right[0], right[1]),
                               pack<F16>(right[2], right[3])};
        KILN_UNROLL
        for (uint32_t d = 0; !CODES && d < DIM / 16; d++) {
            uint32_t b[4];
            kiln_sm80_ldmatrix_x4_trans(b, vector_at<DIM>(v_shared, 16 * n + lane % 16, 2 * d + lane / 16));
            mma(rows->result[2 * d], a, b);
            mma(rows->result[2 * d + 1], a, b + 2);
        }
        KILN_UNROLL
        for (uint32_t d = 0; CODES && d < DIM / 32; d++) {
            uint32_t words[4], b[8];
            kiln_sm80_ldmatrix_x4_trans(words, vector_at<DIM, CODES>(v_shared, 16 * n + lane % 16, 2 * d + lane / 16));
            value_fragments(b, words);
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                mma<F16>(rows->result[4 * d + i], a, b + 2 * i);
        }
    }
}

/* A warp's rows before the first key. Of what they see the block has the keys before work.key_end. */
template <uint32_t DIM>
KILN_INLINE void start_rows(const kiln_attention_args &args, const kiln_sequence &s, const kiln_attention_work &work,
                            uint32_t row, uint32_t end, rows_of_warp<DIM> *rows) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t number = row + kiln_thread() % LANES / 4 + 8 * r;
        rows->has[r] = number < end;
        rows->at[r] = row_place_of(args, s, work.kv_head, number < end ? number : end - 1);
        kiln_window window = kiln_window_of(&args, &s, rows->at[r].token - s.q_first);
        window.end = min(window.end, max(work.key_end, window.begin));
        rows->window[r] = window;
        rows->max[r] = -KILN_INFINITY;
        rows->sum[r] = 0.0f;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < DIM / 2; i++)
        rows->result[i / 4][i % 4] = 0.0f;
}

/* The maximum and the sum of a row, where blocks share its keys, or lse. */
KILN_INLINE void write_scales(const kiln_attention_args &args, const row_place &at, uint32_t split, float max,
                              float sum) {
    if (args.partials) {
        uint64_t place = kiln_partial_row(&args, split, at.token, at.head);
        kiln_partial_scales(&args)[2 * place] = max;
        kiln_partial_scales(&args)[2 * place + 1] = sum;
    } else if (args.lse) {
        args.lse[at.head * (uint64_t)args.tokens + at.token] = sum == 0.0f ? -KILN_INFINITY : max + kiln_log(sum);
    }
}

KILN_INLINE float quad_sum(float value) {
    value += kiln_shuffle_xor(value, 1);
    return value + kiln_shuffle_xor(value, 2);
}

/* ---- prefill ---- */

template <uint32_t DIM, uint32_t ROWS>
KILN_INLINE void copy_queries(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head, uint32_t row,
                              uint32_t end, uint32_t shared) {
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < ROWS * heads<DIM>::VECTORS; i += KILN_BLOCK) {
        uint32_t place = i / heads<DIM>::VECTORS, vector = i % heads<DIM>::VECTORS, number = row + place;
        row_place at = row_place_of(args, s, kv_head, number < end ? number : end - 1);
        const kiln_element *q = (const kiln_element *)args.q + at.token * (uint64_t)args.q_stride;
        bool present = vector * KILN_VECTOR < args.head_dim;
        copies<1> under_way;
        under_way.start(0, vector_at<DIM>(shared, place, vector),
                        present ? q + at.head * args.head_dim + vector * KILN_VECTOR : args.q,
                        present ? KILN_VECTOR_BYTES : 0);
        under_way.land();
    }
}

/* Writes one of a lane's two rows where blocks share its keys. */
template <uint32_t DIM>
KILN_INLINE void write_partial(const kiln_attention_args &args, const row_place &at, uint32_t split,
                               const rows_of_warp<DIM> &rows, uint32_t r, float v_scale) {
    float *partial = args.partials + kiln_partial_row(&args, split, at.token, at.head) * args.head_dim;
    partial += kiln_thread() % 4 * 2;
    KILN_UNROLL
    for (uint32_t n = 0; n < DIM / 8; n++)
        if (8 * n < args.head_dim)
            *(float2 *)(partial + 8 * n) =
                make_float2(rows.result[n][2 * r] * v_scale, rows.result[n][2 * r + 1] * v_scale);
}

/* Writes a warp's rows, by its part of shared memory, so that vectors go out. */
template <uint32_t DIM>
KILN_INLINE void write_rows(const kiln_attention_args &args, const kiln_sequence &s, const kiln_attention_work &work,
                            uint32_t row, uint32_t end, float unit, const rows_of_warp<DIM> &rows, char *shared) {
    uint32_t lane = kiln_thread() % LANES;
    float v_scale = kiln_cache_scale(&args, args.v_scale, work.kv_head);
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t place = lane / 4 + 8 * r;
        float sum = quad_sum(rows.sum[r]);
        if (rows.has[r] && lane % 4 == 0) write_scales(args, rows.at[r], work.split, rows.max[r] * unit, sum);
        if (rows.has[r] && args.partials) write_partial(args, rows.at[r], work.split, rows, r, v_scale);
        float scale = sum == 0.0f ? 0.0f : v_scale * kiln_reciprocal(sum);
        uint32_t *to = (uint32_t *)(shared + place * heads<DIM>::PITCH) + lane % 4;
        KILN_UNROLL
        for (uint32_t n = 0; n < DIM / 8; n++)
            to[4 * n] = pack(rows.result[n][2 * r] * scale, rows.result[n][2 * r + 1] * scale);
    }
    if (args.partials) return;
    __syncwarp();
    KILN_LOOP
    for (uint32_t i = lane; i < WARP_ROWS * heads<DIM>::VECTORS; i += LANES) {
        uint32_t place = i / heads<DIM>::VECTORS, d = i % heads<DIM>::VECTORS * KILN_VECTOR;
        if (row + place >= end || d >= args.head_dim) continue;
        row_place at = row_place_of(args, s, work.kv_head, row + place);
        kiln_element *out = (kiln_element *)args.out + at.token * (uint64_t)args.out_stride;
        const kiln_element *from = (const kiln_element *)(shared + place * heads<DIM>::PITCH) + d;
        kiln_vector_store(out + at.head * args.head_dim + d, *(const kiln_vector *)from);
    }
}

/* Blocks of ROWS rows, whose warps all copy, over tiles of KEYS keys. One stage of these is for copies that wait in
 * registers: a tile lands when the one before has been read. */
template <uint32_t DIM, uint32_t KEYS, uint32_t ROWS = PREFILL_ROWS, uint32_t STAGES = 2>
KILN_INLINE void prefill(const kiln_attention_args &args) {
    enum : uint32_t {
        PITCH = heads<DIM>::PITCH,
        TILE_BYTES = KEYS * PITCH,
        STAGE_BYTES = 2 * TILE_BYTES, /* k, then v */
        KEY_WARPS = KEYS / COPY_KEYS, /* that copy different keys */
        QUERIES_SHARED = DIM > 128,   /* registers are too few for them */
        STEP = COPY_VECTORS * WARPS / KEY_WARPS,
        COUNT = heads<DIM>::VECTORS / STEP
    };
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    uint32_t shared = kiln_sm80_shared(memory), warp = kiln_thread() / LANES, lane = kiln_thread() % LANES;
    kiln_attention_work work = kiln_attention_work_of(&args, 0, (uint32_t)kiln_block());
    work.row = (args.row_tiles - 1 - kiln_tile()) * ROWS; /* the last rows first: with causal they see most */
    if (work.batch >= args.batch) return;                 /* the whole block */
    kiln_sequence s = kiln_sequence_of(&args, work.batch);
    uint32_t end = s.seqlen_q * args.group; /* of the rows */
    if (work.row >= end) return;            /* the whole block */
    kiln_attention_trim(&args, &s, work.row + ROWS < end ? work.row + ROWS : end, &work);

    uint32_t copy_row = warp % KEY_WARPS * COPY_KEYS + lane % COPY_KEYS;
    uint32_t copy_vector = warp / KEY_WARPS * COPY_VECTORS + lane / COPY_KEYS;
    uint32_t copy_to = vector_at<DIM>(shared, copy_row, copy_vector);
    bool codes = PAGED && args.codes;
    copier c = copier_of(args, s, work, copy_row, copy_vector * KILN_VECTOR, codes ? 1 : sizeof(kiln_element));
    copies<2 * COUNT> under_way;
    auto copy_stage = [&](uint32_t stage) {
        uint32_t to = copy_to + stage * STAGE_BYTES;
        if (codes)
            convert_key<COUNT, STEP, KEYS>(args, s, &c, to, to + TILE_BYTES);
        else
            copy_key<COUNT, STEP, KEYS, KILN_VECTOR>(args, s, &c, &under_way, to, to + TILE_BYTES);
        copies_commit();
    };
    auto land_stage = [&]() {
        if (!codes) under_way.land();
    };
    copy_stage(0);
    land_stage();

    /* Queries that registers take have the place of the second stage, others a place of their own. */
    uint32_t queries_shared = shared + (QUERIES_SHARED ? STAGES : 1) * STAGE_BYTES;
    copy_queries<DIM, ROWS>(args, s, work.kv_head, work.row, end, queries_shared);
    copies_commit();
    queries_shared += warp * WARP_ROWS * PITCH;
    copies_wait<0>();
    kiln_barrier();
    uint32_t queries[QUERIES_SHARED ? 1 : DIM / 16][4];
    if (!QUERIES_SHARED) {
        KILN_UNROLL
        for (uint32_t step = 0; step < DIM / 16; step++)
            load_queries<DIM>(queries[step], queries_shared, step);
    }

    uint32_t row = work.row + warp * WARP_ROWS;
    bool has_rows = row < end && warp * WARP_ROWS < ROWS;
    score_scale scale = score_scale_of(args, work.kv_head);
    int32_t tree = masked_from(args, s);
    rows_of_warp<DIM> rows;
    start_rows(args, s, work, row, end, &rows);
    KILN_LOOP
    for (uint32_t key = work.key, stage = 0; key < work.key_end; key += KEYS, stage ^= STAGES - 1) {
        copies_wait<0>();
        kiln_barrier();
        if (STAGES == 2 || !codes) copy_stage(stage ^ (STAGES - 1));
        uint32_t tile = shared + stage * STAGE_BYTES;
        if (has_rows)
            add_keys<DIM, KEYS, QUERIES_SHARED, false>(args, scale, tree, &rows, queries, queries_shared, tile,
                                                       tile + TILE_BYTES, key);
        if (STAGES == 1) kiln_barrier();
        if (STAGES == 1 && codes) copy_stage(0);
        land_stage();
    }
    copies_wait<0>();
    kiln_barrier();
    if (has_rows) write_rows(args, s, work, row, end, scale.unit, rows, (char *)memory + warp * WARP_ROWS * PITCH);
}

#endif
