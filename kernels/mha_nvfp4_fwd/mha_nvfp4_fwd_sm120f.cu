/* mha_nvfp4_fwd for sm_120a and its family, f16 and bf16, by products of E2M1 with block scales, beside the portable
 * kernels (mha_nvfp4_fwd_gpu.h) for few rows, and for heads of out that are not on 16 bytes.
 *
 * A block does 128 rows, 16 by a warp, over tiles of 64 keys. cp.async fetches the next tile of k, of v and of their
 * scales while one is at work: one barrier a tile. Both products are mma.sync m16n8k64, which takes codes and scales as
 * they are in memory: q k^T has 64 elements of a head, and weights times v the 64 keys of a tile, with v as it is
 * transposed. Of the scores of 8 keys a lane has two neighbouring ones of a row, and of the weights it wants 8 and 8:
 * keys are put into shared memory in an order in which these are the same, so that a lane packs its own weights and
 * nothing is exchanged but a scale's maximum, with its neighbour, and scales, once for a tile. A column more than v
 * has, of ones, sums up what the weights are as codes. Products of a tile begin with zeros and are taken over by f32
 * additions.
 *
 * Rows of shared memory are 16 bytes longer than their codes, whereby neither copies nor ldmatrix meet a bank twice.
 * Heads are filled up to 64, 128 or 256 elements with zeros that are not read from memory; of more than 128 those that
 * a call has not are left out of the products, without which test ptxas spilled. The rows with the most keys to see,
 * the last, go first.
 *
 * Floor: 4 * rows * keys * head_dim operations. Not measured; docs/kernel-report.md has the instructions counted.
 * Test: build/tests/ops/mha_nvfp4_fwd_test. Bench: build/kiln bench mha_nvfp4_fwd */
#include "kernels/arch/sm100f.h"
#include "kernels/arch/sm120f.h"
#include "kernels/arch/sm80.h"
#include "kernels/arch/sm89.h"
#include "kernels/common/math/special.h"
#include "kernels/common/tuned.h"
#include "kernels/common/values.h"
#include "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_gpu.h"

enum : uint32_t {
    LANES = 32,
    WARPS = KILN_BLOCK / LANES,
    WARP_ROWS = 16,
    TILE_ROWS = WARPS * WARP_ROWS,
    TILE_KEYS = KILN_VALUE_TILE,
    VECTOR_BLOCKS = KILN_VECTOR_BYTES / KILN_NVFP4_BLOCK_BYTES, /* of codes */
    WHOLE_DIM = 128,                                            /* longer heads are done as far as a call has them */
    WORD_BLOCKS = 4,                                            /* whose scales are a word */
    STEP = WORD_BLOCKS * BLOCK,                                 /* elements of a product */
    UNSIGNED = 0x7f7f7f7f,                                      /* ue4m3 is E4M3 without its sign */
    ONES = 0x22222222,                                          /* E2M1 */
    ONE_SCALES = 0x38383838                                     /* E4M3 */
};

#define WEIGHT_LOG2 0x1.19d5dap3f /* of 448 */

/* Heads of DIM elements and TILE_KEYS keys of a tile, in shared memory: k, its scales of blocks, a word for each key
 * and STEP elements, and of keys; v, a row for each channel, and its scales, a word for each. */
template <uint32_t DIM> struct tile {
    enum : uint32_t {
        PITCH = DIM / 2 + KILN_VECTOR_BYTES,
        VECTORS = DIM / 2 / KILN_VECTOR_BYTES,
        STEPS = DIM / STEP,
        V_PITCH = TILE_KEYS / 2 + KILN_VECTOR_BYTES,
        V_VECTORS = TILE_KEYS / 2 / KILN_VECTOR_BYTES,
        K_BLOCKS = TILE_KEYS * PITCH,
        K_SCALES = K_BLOCKS + TILE_KEYS * STEPS * 4,
        V = K_SCALES + TILE_KEYS * 4,
        V_BLOCKS = V + DIM * V_PITCH,
        STAGE_BYTES = V_BLOCKS + DIM * 4,
        BYTES = 2 * STAGE_BYTES + TILE_ROWS * PITCH /* and the queries */
    };
};

/* What a warp has of its 16 rows. A lane has 2 of them, lane / 4 and 8 more, and of each two neighbouring channels of
 * every 8. */
template <uint32_t DIM> struct rows_of_warp {
    kiln_window window[2];
    float factor[2];             /* of scores, times log2 e */
    float origin[2];             /* m of attention_codes.h; -inf before the first key */
    float sum[2];                /* of weights, by this lane's keys, times 448 */
    float rounded[2];            /* of them as codes have them, by all, times 2688 */
    float result[DIM / 8][4];    /* times 2688 */
    uint32_t blocks[DIM / STEP]; /* scales of the queries, as the product takes them */
    uint32_t head_dim;           /* of longer heads what a call has not is left out of the products */
};

/* Where a row stands in q and out, and among partial results. */
struct row_place {
    uint32_t token, head;
};

KILN_INLINE row_place row_place_of(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head,
                                   uint32_t row) {
    return {s.q_first + row / args.group, kv_head * args.group + row % args.group};
}

/* Where a key of a tile is among its rows in shared memory: of every 32 keys, the two that a lane has of each 8 scores
 * are the two of each of its 8 weights. */
KILN_INLINE uint32_t place_of_key(uint32_t key) {
    return key / 32 * 32 + key / 2 % 4 * 8 + key / 8 % 4 * 2 + key % 2;
}

/* The first of a lane's keys of 8 scores: the other is next to it. */
KILN_INLINE uint32_t key_of_scores(uint32_t n) {
    return n / 4 * 32 + kiln_thread() % 4 * 8 + n % 4 * 2;
}

/* ---- Copies ---- */

/* Copies a vector of codes where it is present, else clears it. */
KILN_INLINE void copy_vector(uint32_t to, const void *codes, uint64_t vector, bool present) {
    kiln_sm80_cp_async(to, (const kiln_vector *)codes + (present ? vector : 0), present ? KILN_VECTOR_BYTES : 0);
}

/* Copies so many of the four scales from this one on, and clears the rest. */
KILN_INLINE void copy_scales(uint32_t to, const uint8_t *scales, uint64_t first, uint32_t count) {
    kiln_sm80_cp_async_4(to, scales + (count ? first : 0), count);
}

/* Copies the tile of keys from `key` on, before end; zeros behind the last key, but within its 16 of v, and behind a
 * head's last block. */
template <uint32_t DIM>
KILN_INLINE void copy_tile(const kiln_attention_nvfp4_args &args, const kiln_sequence &s, uint32_t batch,
                           uint32_t kv_head, uint32_t key, uint32_t end, uint32_t shared) {
    typedef tile<DIM> stage;
    const kiln_attention_codes_args &codes = args.codes;
    const kiln_attention_args &plain = codes.plain;
    const uint64_t row = s.kv_first + (uint64_t)key;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < TILE_KEYS * stage::VECTORS; i += KILN_BLOCK) {
        const uint32_t number = i / stage::VECTORS, vector = i % stage::VECTORS;
        const uint64_t head = (row + number) * plain.kv_heads + kv_head;
        const bool present = key + number < end && vector * VECTOR_BLOCKS < args.head_blocks;
        copy_vector(shared + place_of_key(number) * stage::PITCH + vector * KILN_VECTOR_BYTES, plain.k,
                    head * (args.head_blocks / VECTOR_BLOCKS) + vector, present);
    }
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < TILE_KEYS * stage::STEPS; i += KILN_BLOCK) {
        const uint32_t number = i % TILE_KEYS, step = i / TILE_KEYS;
        const uint64_t head = (row + number) * plain.kv_heads + kv_head;
        const bool present = key + number < end && step * WORD_BLOCKS < args.head_blocks;
        copy_scales(shared + stage::K_BLOCKS + (step * TILE_KEYS + place_of_key(number)) * 4, args.k_blocks,
                    head * args.head_blocks + step * WORD_BLOCKS, present ? WORD_BLOCKS : 0);
    }
    if (kiln_thread() < TILE_KEYS) {
        const bool present = key + kiln_thread() < end;
        const uint64_t place = kiln_scale_at(codes.k_index, row + kiln_thread());
        copy_scales(shared + stage::K_SCALES + kiln_thread() * 4, (const uint8_t *)codes.k_scales,
                    (kv_head * (uint64_t)codes.k_scale_rows + place) * 4, present ? 4 : 0);
    }
    const uint64_t first = (uint64_t)kiln_value_tile(s.kv_first, batch) * KILN_VALUE_TILE_BLOCKS + key / BLOCK;
    const uint32_t blocks = key < end ? (end - key + BLOCK - 1) / BLOCK : 0;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < DIM * stage::V_VECTORS; i += KILN_BLOCK) {
        const uint32_t d = i / stage::V_VECTORS, vector = i % stage::V_VECTORS;
        const uint64_t channel = ((uint64_t)kv_head * plain.head_dim + d) * args.value_blocks + first;
        copy_vector(shared + stage::V + d * stage::V_PITCH + vector * KILN_VECTOR_BYTES, plain.v,
                    channel / VECTOR_BLOCKS + vector, d < plain.head_dim && vector * VECTOR_BLOCKS < blocks);
    }
    for (uint32_t d = kiln_thread(); d < DIM; d += KILN_BLOCK) {
        const uint64_t channel = ((uint64_t)kv_head * plain.head_dim + d) * args.value_blocks + first;
        copy_scales(shared + stage::V_BLOCKS + d * 4, args.v_blocks, channel,
                    d < plain.head_dim ? min(blocks, (uint32_t)WORD_BLOCKS) : 0);
    }
    kiln_sm80_cp_async_commit();
}

template <uint32_t DIM>
KILN_INLINE void copy_queries(const kiln_attention_nvfp4_args &args, const kiln_sequence &s, uint32_t kv_head,
                              uint32_t row, uint32_t end, uint32_t shared) {
    typedef tile<DIM> stage;
    const kiln_attention_args &plain = args.codes.plain;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < TILE_ROWS * stage::VECTORS; i += KILN_BLOCK) {
        const uint32_t place = i / stage::VECTORS, vector = i % stage::VECTORS, number = row + place;
        const row_place at = row_place_of(plain, s, kv_head, number < end ? number : end - 1);
        const uint64_t head = (uint64_t)at.token * plain.kv_heads * plain.group + at.head;
        copy_vector(shared + place * stage::PITCH + vector * KILN_VECTOR_BYTES, plain.q,
                    head * (args.head_blocks / VECTOR_BLOCKS) + vector, vector * VECTOR_BLOCKS < args.head_blocks);
    }
    kiln_sm80_cp_async_commit();
}

/* ---- Rows ---- */

/* A warp's rows before the first key. Of what they see the block has the keys before work.key_end. */
template <uint32_t DIM>
KILN_INLINE void start_rows(const kiln_attention_nvfp4_args &args, const kiln_sequence &s,
                            const kiln_attention_work &work, uint32_t row, uint32_t end, rows_of_warp<DIM> *rows) {
    const kiln_attention_codes_args &codes = args.codes;
    const kiln_attention_args &plain = codes.plain;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const uint32_t number = row + kiln_thread() % LANES / 4 + 8 * r, own = number < end ? number : end - 1;
        const row_place at = row_place_of(plain, s, work.kv_head, own);
        kiln_window window = kiln_window_of(&plain, &s, own / plain.group);
        window.end = min(window.end, max(work.key_end, window.begin));
        rows->window[r] = window;
        const uint64_t scale = at.head * (uint64_t)codes.q_scale_rows + kiln_scale_at(codes.q_index, at.token);
        rows->factor[r] = codes.q_scales[scale] * (plain.scale * KILN_LOG2_E);
        rows->origin[r] = -KILN_INFINITY;
        rows->sum[r] = rows->rounded[r] = 0.0f;
        if (kiln_thread() % 2 != r) continue; /* of each 4 lanes the first has the first row's scales */
        const uint64_t head = (uint64_t)at.token * plain.kv_heads * plain.group + at.head;
        const uint32_t *words = (const uint32_t *)(args.q_blocks + head * args.head_blocks);
        KILN_UNROLL
        for (uint32_t step = 0; step < DIM / STEP; step++)
            rows->blocks[step] = step * WORD_BLOCKS < args.head_blocks ? words[step] & UNSIGNED : 0;
    }
    rows->head_dim = plain.head_dim;
    KILN_UNROLL
    for (uint32_t i = 0; i < DIM / 2; i++)
        rows->result[i / 4][i % 4] = 0.0f;
}

/* The scales of 32 of a factor's columns: a lane has those of a column of four products. */
KILN_INLINE uint32_t column_scales(const uint32_t *words) {
    const uint32_t lane = kiln_thread() % LANES;
    return words[lane % 4 * 8 + lane / 4] & UNSIGNED;
}

/* Adds the products of a step with columns j of 4 groups of 8, of which b has two and two: the lanes of their scales
 * are constants. */
template <uint32_t J>
KILN_INLINE void multiply(float (*sums)[4], const uint32_t *a, const uint32_t (*b)[4], uint32_t a_scales,
                          uint32_t b_scales) {
    kiln_sm120f_mma_nvfp4<0, J>(sums[J], a, b[J / 2] + J % 2 * 2, a_scales, b_scales);
    if constexpr (J < 3) multiply<J + 1>(sums, a, b, a_scales, b_scales);
}

/* The products of a warp's queries with the tile's keys. Queries are read anew for each tile: registers are few. */
template <uint32_t DIM>
KILN_INLINE void score_keys(const rows_of_warp<DIM> *rows, uint32_t queries, uint32_t shared, const char *memory,
                            float (*products)[4]) {
    typedef tile<DIM> stage;
    const uint32_t lane = kiln_thread() % LANES, row = lane % 8 + lane / 16 * 8;
    KILN_UNROLL
    for (uint32_t step = 0; step < stage::STEPS; step++) {
        if (DIM > WHOLE_DIM && STEP * step >= rows->head_dim) break;
        uint32_t a[4];
        kiln_sm80_ldmatrix_x4(a, queries + lane % 16 * stage::PITCH + (2 * step + lane / 16) * KILN_VECTOR_BYTES);
        KILN_UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t b[2][4];
            KILN_UNROLL
            for (uint32_t i = 0; i < 2; i++)
                kiln_sm80_ldmatrix_x4(b[i], shared + (32 * half + 16 * i + row) * stage::PITCH +
                                                (2 * step + lane / 8 % 2) * KILN_VECTOR_BYTES);
            const uint32_t *words = (const uint32_t *)(memory + stage::K_BLOCKS) + step * TILE_KEYS + 32 * half;
            multiply<0>(products + 4 * half, a, b, rows->blocks[step], column_scales(words));
        }
    }
}

/* The scales of a row's four blocks of weights, from what a lane has of their maxima, times 448 / 6 of the greatest
 * element: of the first and the third in its lower pair of lanes, of the others in the upper. *scales gets them as the
 * product takes them, factors what the lane's own weights are multiplied with. */
KILN_INLINE uint32_t scale_weights(const float (*greatest)[2], float (*factors)[2]) {
    uint32_t codes[2];
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const float both[4] = {greatest[r][0], greatest[r][1], 0.0f, 0.0f};
        codes[r] = kiln_sm89_cvt_e4m3x4_f32(both) & UNSIGNED;
        KILN_UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            const float scale = kiln_e4m3_number(codes[r] >> 8 * half);
            factors[r][half] = scale > 0.0f ? KILN_E2M1_GREATEST * kiln_fast_reciprocal(scale) : 0.0f;
        }
    }
    const uint32_t own = kiln_thread() % 2 ? codes[1] : codes[0], spread = (own & 0xffu) | (own & 0xff00u) << 8;
    const uint32_t other = __shfl_xor_sync(0xffffffffu, spread, 2);
    return kiln_thread() % 4 < 2 ? spread | other << 8 : other | spread << 8;
}

/* Adds the tile's values with weights, a fragment with its scales. */
template <uint32_t DIM>
KILN_INLINE void add_values(rows_of_warp<DIM> *rows, const uint32_t *weights, uint32_t scales, uint32_t shared,
                            const char *memory) {
    typedef tile<DIM> stage;
    const uint32_t lane = kiln_thread() % LANES, row = lane % 8 + lane / 16 * 8;
    const uint32_t ones[2] = {ONES, ONES};
    float of_ones[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    kiln_sm120f_mma_nvfp4<0, 0>(of_ones, weights, ones, scales, ONE_SCALES);
    rows->rounded[0] += of_ones[0];
    rows->rounded[1] += of_ones[2];
    KILN_UNROLL
    for (uint32_t d = 0; d < DIM; d += 32) {
        if (DIM > WHOLE_DIM && d >= rows->head_dim) break;
        uint32_t b[2][4];
        float sums[4][4] = {};
        KILN_UNROLL
        for (uint32_t i = 0; i < 2; i++)
            kiln_sm80_ldmatrix_x4(b[i], shared + stage::V + (d + 16 * i + row) * stage::V_PITCH +
                                            lane / 8 % 2 * KILN_VECTOR_BYTES);
        multiply<0>(sums, weights, b, scales, column_scales((const uint32_t *)(memory + stage::V_BLOCKS) + d));
        KILN_UNROLL
        for (uint32_t i = 0; i < 16; i++)
            rows->result[d / 8 + i / 4][i % 4] += sums[i / 4][i % 4];
    }
}

/* Adds a tile of keys, the first of which is `key`, to a warp's rows. All lanes come here. */
template <uint32_t DIM>
KILN_INLINE void add_keys(rows_of_warp<DIM> *rows, uint32_t queries, uint32_t shared, const char *memory,
                          uint32_t key) {
    bool sees = false, whole = true;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const kiln_window window = rows->window[r];
        sees |= key < window.end && key + TILE_KEYS > window.begin;
        whole &= key >= window.begin && key + TILE_KEYS <= window.end;
    }
    if (!__any_sync(0xffffffffu, sees)) return;
    whole = __all_sync(0xffffffffu, whole);

    float scores[TILE_KEYS / 8][4] = {};
    score_keys<DIM>(rows, queries, shared, memory, scores);
    KILN_UNROLL
    for (uint32_t n = 0; n < TILE_KEYS / 8; n++) {
        const float2 scale = *(const float2 *)(memory + tile<DIM>::K_SCALES + key_of_scores(n) * 4);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            scores[n][i] *= i % 2 ? scale.y : scale.x;
    }
    if (!whole) {
        KILN_UNROLL
        for (uint32_t i = 0; i < TILE_KEYS / 2; i++) {
            const kiln_window window = rows->window[i / 2 % 2];
            const uint32_t at = key + key_of_scores(i / 4) + i % 2;
            if (at - window.begin >= window.end - window.begin) scores[i / 4][i % 4] = -KILN_INFINITY;
        }
    }

    float less[2], keep[2];
    bool rose = false;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float max = -KILN_INFINITY;
        KILN_UNROLL
        for (uint32_t n = 0; n < TILE_KEYS / 8; n++)
            max = fmaxf(max, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
        max = fmaxf(max, kiln_shuffle_xor(max, 1));
        max = fmaxf(max, kiln_shuffle_xor(max, 2));
        const float origin = fmaxf(rows->origin[r], ceilf(max * rows->factor[r]));
        const float base = origin == -KILN_INFINITY ? 0.0f : origin;
        keep[r] = kiln_fast_exp2(rows->origin[r] - base);
        less[r] = WEIGHT_LOG2 - base;
        rose |= origin > rows->origin[r];
        rows->origin[r] = origin;
    }
    if (__any_sync(0xffffffffu, rose)) {
        KILN_UNROLL
        for (uint32_t i = 0; i < DIM / 2; i++)
            rows->result[i / 4][i % 4] *= keep[i / 2 % 2];
        KILN_UNROLL
        for (uint32_t r = 0; r < 2; r++) {
            rows->sum[r] *= keep[r];
            rows->rounded[r] *= keep[r];
        }
    }
    float greatest[2][2] = {};
    KILN_UNROLL
    for (uint32_t i = 0; i < TILE_KEYS / 2; i++) {
        const uint32_t r = i / 2 % 2, half = i / (TILE_KEYS / 4);
        const float weight = kiln_fast_exp2(KILN_FMA(scores[i / 4][i % 4], rows->factor[r], less[r]));
        rows->sum[r] += weight;
        greatest[r][half] = fmaxf(greatest[r][half], weight);
        scores[i / 4][i % 4] = weight;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        greatest[i / 2][i % 2] = fmaxf(greatest[i / 2][i % 2], kiln_shuffle_xor(greatest[i / 2][i % 2], 1));
    float factors[2][2];
    const uint32_t scales = scale_weights(greatest, factors);
    uint32_t weights[4];
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) { /* half a tile of one of the rows */
        const uint32_t r = i % 2, half = i / 2;
        float eight[8];
        KILN_UNROLL
        for (uint32_t j = 0; j < 8; j++)
            eight[j] = scores[4 * half + j / 2][2 * r + j % 2] * factors[r][half];
        weights[i] = kiln_sm100f_cvt_e2m1x8_f32(eight);
    }
    add_values<DIM>(rows, weights, scales, shared, memory);
}

KILN_INLINE float quad_sum(float value) {
    value += kiln_shuffle_xor(value, 1);
    return value + kiln_shuffle_xor(value, 2);
}

/* By how much a row's scores are greater than those of keys less their mean: from what of the query each of the four
 * lanes of a row has. */
KILN_INLINE float score_of_means(const kiln_attention_nvfp4_args &args, uint64_t channels, const row_place &at,
                                 float factor) {
    const kiln_attention_args &plain = args.codes.plain;
    const uint64_t head = ((uint64_t)at.token * plain.kv_heads * plain.group + at.head) * args.head_blocks;
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t d = kiln_thread() % 4; d < plain.head_dim; d += 4) {
        const uint64_t block = head + d / BLOCK;
        const uint32_t pair = ((const uint8_t *)plain.q)[block * KILN_NVFP4_BLOCK_BYTES + d % BLOCK / 2];
        const float number = kiln_e2m1_number(pair >> d % 2 * 4) * kiln_e4m3_number(args.q_blocks[block]);
        sum = KILN_FMA(number, args.codes.k_means[channels + d], sum);
    }
    return quad_sum(sum) * factor * KILN_WEIGHT_LN_2;
}

/* Writes one of a lane's two rows: two channels of every eight. */
template <uint32_t DIM>
KILN_INLINE void write_row(const kiln_attention_codes_args &args, const kiln_attention_work &work,
                           const rows_of_warp<DIM> &rows, uint32_t r, const row_place &at, float sum, float of_means,
                           uint64_t channels) {
    const kiln_attention_args &plain = args.plain;
    const float rounded = sum == sum ? rows.rounded[r] : sum; /* codes have no NaN */
    const float factor = sum == 0.0f ? 0.0f : kiln_reciprocal(rounded);
    const uint64_t place = kiln_partial_row(&plain, work.split, at.token, at.head);
    const float origin = rows.origin[r] * KILN_WEIGHT_LN_2 + of_means;
    kiln_element *out = (kiln_element *)plain.out + at.token * (uint64_t)plain.out_stride;
    KILN_UNROLL
    for (uint32_t n = 0; n < DIM / 8; n++) {
        const uint32_t d = 8 * n + kiln_thread() % 4 * 2;
        if (8 * n >= plain.head_dim) continue;
        float values[2];
        KILN_UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            values[i] = rows.result[n][2 * r + i] * factor * args.v_scales[channels + d + i];
            if (args.v_means && sum != 0.0f) values[i] += args.v_means[channels + d + i];
        }
        if (plain.partials)
            *(float2 *)(plain.partials + place * plain.head_dim + d) =
                make_float2(values[0] * rounded, values[1] * rounded);
        else
            *(uint32_t *)(out + at.head * plain.head_dim + d) = kiln_pair_of(values);
    }
    if (kiln_thread() % 4) return;
    if (plain.partials) {
        kiln_partial_scales(&plain)[2 * place] = origin;
        kiln_partial_scales(&plain)[2 * place + 1] = rounded;
        kiln_partial_sums(&plain)[place] = sum;
    } else if (plain.lse) {
        plain.lse[at.head * (uint64_t)plain.tokens + at.token] = sum == 0.0f ? -KILN_INFINITY : origin + kiln_log(sum);
    }
}

template <uint32_t DIM> KILN_INLINE void attend_tiles(const kiln_attention_nvfp4_args &args) {
    typedef tile<DIM> stage;
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    const kiln_attention_args &plain = args.codes.plain;
    const uint32_t shared = kiln_sm80_shared(memory), warp = kiln_thread() / LANES, lane = kiln_thread() % LANES;
    kiln_attention_work work = kiln_attention_work_of(&plain, 0, (uint32_t)kiln_block());
    work.row = (plain.row_tiles - 1 - kiln_tile()) * TILE_ROWS; /* the last rows first: with causal they see most */
    if (work.batch >= plain.batch) return;                      /* the whole block */
    const kiln_sequence s = kiln_sequence_of(&plain, work.batch);
    const uint32_t end = s.seqlen_q * plain.group; /* of the rows */
    if (work.row >= end) return;                   /* the whole block */
    kiln_attention_trim(&plain, &s, work.row + TILE_ROWS < end ? work.row + TILE_ROWS : end, &work);
    work.key = work.key / TILE_KEYS * TILE_KEYS;

    const uint32_t queries = shared + 2 * stage::STAGE_BYTES + warp * WARP_ROWS * stage::PITCH;
    copy_tile<DIM>(args, s, work.batch, work.kv_head, work.key, work.key_end, shared);
    copy_queries<DIM>(args, s, work.kv_head, work.row, end, shared + 2 * stage::STAGE_BYTES);
    const uint32_t row = work.row + warp * WARP_ROWS;
    rows_of_warp<DIM> rows;
    start_rows(args, s, work, row, end, &rows);
    KILN_LOOP
    for (uint32_t key = work.key, use = 0; key < work.key_end; key += TILE_KEYS, use ^= 1) {
        kiln_sm80_cp_async_wait<0>();
        kiln_barrier();
        copy_tile<DIM>(args, s, work.batch, work.kv_head, key + TILE_KEYS, work.key_end,
                       shared + (use ^ 1) * stage::STAGE_BYTES);
        if (row < end)
            add_keys<DIM>(&rows, queries, shared + use * stage::STAGE_BYTES,
                          (const char *)memory + use * stage::STAGE_BYTES, key);
    }
    kiln_sm80_cp_async_wait<0>();
    if (row >= end) return;
    const uint64_t channels = ((uint64_t)work.batch * plain.kv_heads + work.kv_head) * plain.head_dim;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const uint32_t number = row + lane / 4 + 8 * r;
        const row_place at = row_place_of(plain, s, work.kv_head, number < end ? number : end - 1);
        const float sum = quad_sum(rows.sum[r]) * (1.0f / KILN_E4M3_GREATEST);
        float of_means = 0.0f;
        if (args.codes.k_means && plain.lse) of_means = score_of_means(args, channels, at, rows.factor[r]);
        if (number < end) write_row(args.codes, work, rows, r, at, sum, of_means, channels);
    }
}

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(mha_nvfp4_fwd_mma_64, 128, 64, 64, 19968, 100)
KILN_SHAPE(mha_nvfp4_fwd_mma_128, 128, 128, 64, 35328, 100)
KILN_SHAPE(mha_nvfp4_fwd_mma_256, 128, 256, 64, 66048, 100)

static_assert(tile<64>::BYTES == 19968 && tile<128>::BYTES == 35328 && tile<256>::BYTES == 66048, "shared memory");

KILN_ENTRY(mha_nvfp4_fwd_mma_64, kiln_attention_nvfp4_args) {
    attend_tiles<64>(args);
}

KILN_ENTRY(mha_nvfp4_fwd_mma_128, kiln_attention_nvfp4_args) {
    attend_tiles<128>(args);
}

KILN_ENTRY(mha_nvfp4_fwd_mma_256, kiln_attention_nvfp4_args) {
    attend_tiles<256>(args);
}
