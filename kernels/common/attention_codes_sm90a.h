/* Attention on codes of 8 bits for sm_90a, f16 and bf16: the device source of mha_int8_x_fp8_fwd and mha_fp8_fwd by
 * wgmma, beside those for few rows (attention_codes_decode.h), and the portable ones (attention_codes_gpu.h) for heads
 * that are not on 16 bytes.
 *
 * A block does 128 rows, over tiles of 128 keys. Of its three warpgroups the first copies, the others have 64 rows
 * each. A tile of keys, one of values, and the scales of its keys come into rings of three; wgmma takes codes of 8 bits
 * only with the depth of the product along the rows, so the first warpgroup transposes a tile of values, 128 channels
 * of 128 keys, into a ring of two: ldmatrix transposes pairs of bytes, which are of two channels, a permutation of
 * bytes parts the channels, and stmatrix stores them. Of each 16 keys the one at place 4 t + e is 8 (e / 2) + 2 t + e %
 * 2, of each 16 channels those of even number come first: so the products of queries and keys are, once they are codes,
 * word for word the fragments of the second product, and a lane has four neighbouring channels of its results. What
 * stands behind the last key is zero in the transposed tile, since it may be no number at all.
 *
 * Of the values' rows in shared memory eight more are 448, the greatest code: their products are the sums of the
 * weights' codes. wgmma keeps of E4M3 13 bits below the greatest of what it adds, its sums too, with an error toward
 * zero: products of a tile begin with zeros and are taken over by f32 arithmetic, result * keep + product in one
 * instruction, where `keep` is the power of two by which the rows' origins rose. Values that are all equal have that
 * code, so that their results and the sums lose the same.
 *
 * The two consumers take turns with the matrix units, by two barriers of the block: one begins the products of its
 * queries with tile n, and behind them those of its weights with the values of tile n - 1; when the first are done it
 * gives the turn to the other, whose products then follow without a gap, and when the second are, it makes weights of
 * tile n. (Given after both, ptxas gave the turn after the results were taken over.) Where the keys of a tile have two
 * scales for a lane, as blocks of 64 keys and Sage's threads have, the greatest product is found as it is (integers:
 * three at a time), and the scales become part of the factor of each half.
 *
 * Tiles are taken from the last to the first, and the rows with the most keys to see, the last, go first. Only tiles
 * that an end of some row's window cuts are masked, in a loop of their own; the first tile stands before both.
 *
 * Rows of shared memory are 128 bytes, whose vectors are swizzled; heads that are shorter are filled up with zeros that
 * are not read from memory. Shared memory: 132, 140 and 148 KB by heads of up to 64, 96 and 128. Registers: 168 a
 * thread at the launch; then 240 of a consumer and 24 of a producer. None spills.
 *
 * Floor: 4 * rows * keys * head_dim operations; wgmma does 1979 TFLOP/s of E4M3 and int8 on an H100 at most, and the
 * exponents of 2 take as long as products of heads of 128. These kernels are not measured. Prototypes on an H100
 * (head_dim 128, 4096 and 16384 keys, k's scales of 64 keys) that took turns as here, with values that lay transposed
 * in memory, did 853 and 939 TFLOP/s with int8 and 872 and 962 with E4M3, 1.28, 1.37, 1.30 and 1.40 of cuDNN in bf16;
 * with causal 758 and 930, 768 and 957. Three consumers of 160 registers did 881 and 953, but 690 and 865 with causal.
 * Taking sums over every 128 keys cost 4 to 14 %; without it values with means err by 5 to 19 %. A test for masks in
 * the main loop cost 21 %. A row of ones in place of additions gave 4 to 21 %. Includers define what
 * attention_codes_gpu.h asks for, and unit: the sums of products of q and k, and multiply. Test:
 * build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_CODES_SM90A_H
#define KILN_KERNELS_COMMON_ATTENTION_CODES_SM90A_H

#include "kernels/arch/sm80.h"
#include "kernels/arch/sm89_codes.h"
#include "kernels/arch/sm90a_fragments.h"
#include "kernels/arch/sm90a_products.h"
#include "kernels/common/attention_codes_mapped_args.h"
#include "kernels/common/attention_codes_rows.h"
#include "kernels/common/tuned.h"

enum : uint32_t {
    WARPGROUP = 128, /* threads */
    GROUP_ROWS = 64,
    CONSUMERS = 2,
    CONSUMER_WARPS = CONSUMERS * WARPGROUP / LANES,
    TILE_ROWS = CONSUMERS * GROUP_ROWS,
    TILE_KEYS = 128,
    TILE_THREADS = (1 + CONSUMERS) * WARPGROUP,
    STAGES = 3,            /* of tiles as they come */
    TRANSPOSED_STAGES = 2, /* of tiles of values */
    SPAN = 128,            /* bytes of a row */
    ATOM = 8 * SPAN,       /* bytes: eight rows, after which a swizzle repeats */
    TILE_BYTES = TILE_KEYS * SPAN,
    QUERY_BYTES = GROUP_ROWS * SPAN,
    GREATEST = 0x7e7e7e7e,  /* E4M3 */
    SHARED_SCALE_KEYS = 64, /* of which a lane's have one scale, where scales are shared */
    PRODUCER_REGISTERS = 24,
    CONSUMER_REGISTERS = 240
};

/* Barriers of the block, beside that of all its threads: of a consumer, of its turn, of the producer. */
enum : uint32_t { OF_CONSUMER = 1, OF_TURN = OF_CONSUMER + CONSUMERS, OF_PRODUCER = OF_TURN + CONSUMERS };

/* Shared memory, in bytes. */
template <uint32_t DIM> struct layout {
    enum : uint32_t {
        ROWS = DIM + 8, /* of a transposed tile: channels, and the greatest code */
        TRANSPOSED_BYTES = ROWS * SPAN,
        KEYS = 0,
        VALUES = KEYS + STAGES * TILE_BYTES,
        TRANSPOSED = VALUES + STAGES * TILE_BYTES,
        QUERIES = TRANSPOSED + TRANSPOSED_STAGES * TRANSPOSED_BYTES,
        SCALES = QUERIES + CONSUMERS * QUERY_BYTES,
        BARRIERS = SCALES + STAGES * TILE_KEYS * (uint32_t)sizeof(float),
        KEYS_FULL = BARRIERS,
        KEYS_EMPTY = KEYS_FULL + STAGES * 8,
        VALUES_FULL = KEYS_EMPTY + STAGES * 8,
        TRANSPOSED_FULL = VALUES_FULL + STAGES * 8,
        TRANSPOSED_EMPTY = TRANSPOSED_FULL + TRANSPOSED_STAGES * 8,
        BYTES = TRANSPOSED_EMPTY + TRANSPOSED_STAGES * 8
    };
};

struct __align__(1024) atom {
    char bytes[ATOM];
};

/* The tiles of a block: count of them from key on, of which the last is short where end is. */
struct key_tiles {
    uint32_t key, end, count;
};

/* The first key of the n-th tile: the last of them come first. */
KILN_INLINE uint32_t tile_key(const key_tiles &tiles, uint32_t n) {
    return tiles.key + (tiles.count - 1 - n) * TILE_KEYS;
}

/* A vector's place in swizzled rows: its number is turned by its row's within an atom. */
KILN_INLINE uint32_t swizzled(uint32_t row, uint32_t vector) {
    return row * SPAN + (vector ^ row % 8) * CODES;
}

/* What all lanes of a warp have, so that the compiler knows it. */
KILN_INLINE uint32_t uniform(uint32_t value) {
    return __shfl_sync(0xffffffffu, value, 0);
}

/* The n-th use of a ring of barriers: waits until it is full, or empty again. */
template <uint32_t COUNT> KILN_INLINE void wait_full(uint32_t barriers, uint32_t n) {
    kiln_sm90a_mbarrier_wait(barriers + n % COUNT * 8, n / COUNT % 2);
}
template <uint32_t COUNT> KILN_INLINE void wait_empty(uint32_t barriers, uint32_t n) {
    if (n >= COUNT) kiln_sm90a_mbarrier_wait(barriers + n % COUNT * 8, n / COUNT % 2 ^ 1);
}
template <uint32_t COUNT> KILN_INLINE void release(uint32_t barriers, uint32_t n) {
    __syncwarp(); /* all lanes have read */
    if (kiln_thread() % LANES == 0) kiln_sm90a_mbarrier_arrive(barriers + n % COUNT * 8);
}

/* ---- The producer ---- */

/* The scale of this thread's key of the n-th tile. */
KILN_INLINE float load_scale(const kiln_attention_codes_args &args, const kiln_sequence &s, uint32_t kv_head,
                             const key_tiles &tiles, uint32_t n) {
    const float *scales = args.k_scales + kv_head * (uint64_t)args.k_scale_rows;
    uint32_t key = tile_key(tiles, n) + kiln_thread();
    return key < tiles.end ? scales[kiln_scale_at(args.k_index, s.kv_first + (uint64_t)key)] : 0.0f;
}

/* Copies the n-th tile of keys and of values, and this thread's scale. */
template <uint32_t DIM>
KILN_INLINE void copy_tile(const kiln_tensor_map *maps, uint32_t kv_head, uint32_t row, uint32_t n, float scale,
                           uint32_t shared, char *memory) {
    typedef layout<DIM> at;
    uint32_t stage = n % STAGES, full = shared + at::KEYS_FULL + stage * 8,
             values = shared + at::VALUES_FULL + stage * 8;
    wait_empty<STAGES>(shared + at::KEYS_EMPTY, n);
    *(float *)(memory + at::SCALES + (stage * TILE_KEYS + kiln_thread()) * (uint32_t)sizeof(float)) = scale;
    if (kiln_thread()) {
        kiln_sm90a_mbarrier_arrive(full);
        return;
    }
    kiln_sm90a_mbarrier_arrive_expect_tx(full, TILE_BYTES);
    kiln_sm90a_copy_3d(shared + at::KEYS + stage * TILE_BYTES, maps, full, 0, (int32_t)kv_head, (int32_t)row);
    kiln_sm90a_mbarrier_arrive_expect_tx(values, TILE_BYTES);
    kiln_sm90a_copy_3d(shared + at::VALUES + stage * TILE_BYTES, maps + 1, values, 0, (int32_t)kv_head, (int32_t)row);
}

/* Transposes a tile of values of which so many keys are there. A warp has 32 keys, 16 channels at a time. */
template <uint32_t DIM> KILN_INLINE void transpose(uint32_t from, uint32_t to, uint32_t keys) {
    uint32_t warp = kiln_thread() / LANES, lane = kiln_thread() % LANES, present[4];
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t key = warp * LANES + 8 * i + lane % 4 * 2;
        present[i] = (key < keys ? 0xffffu : 0) | (key + 1 < keys ? 0xffff0000u : 0);
    }
    from += (warp * LANES + lane) * SPAN;
    to += swizzled(lane % 16, 2 * warp + lane / 16);
    KILN_UNROLL
    for (uint32_t n = 0; n < DIM / 16; n++, to += 2 * ATOM) {
        uint32_t pairs[4], words[4];
        kiln_sm80_ldmatrix_x4_trans(pairs, from + (n ^ lane % 8) * CODES);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            pairs[i] &= present[i];
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            words[i] = __byte_perm(pairs[i / 2 * 2], pairs[i / 2 * 2 + 1], i % 2 ? 0x7531 : 0x6420);
        kiln_sm90a_stmatrix_x4(to, words);
    }
}

template <uint32_t DIM>
KILN_INLINE void produce(const kiln_attention_codes_args &args, const kiln_tensor_map *maps, const kiln_sequence &s,
                         uint32_t kv_head, const key_tiles &tiles, uint32_t shared, char *memory) {
    typedef layout<DIM> at;
    const uint32_t thread = kiln_thread(), ahead = STAGES - 1;
    *(code_vector *)(memory + at::TRANSPOSED + thread / 64 * at::TRANSPOSED_BYTES + DIM * SPAN + thread % 64 * CODES) =
        code_vector{{GREATEST, GREATEST, GREATEST, GREATEST}};
    KILN_LOOP
    for (uint32_t n = 0; n < tiles.count && n < ahead; n++)
        copy_tile<DIM>(maps, kv_head, s.kv_first + tile_key(tiles, n), n, load_scale(args, s, kv_head, tiles, n),
                       shared, memory);
    KILN_LOOP
    for (uint32_t n = 0; n < tiles.count; n++) {
        uint32_t next = n + ahead;
        float scale = next < tiles.count ? load_scale(args, s, kv_head, tiles, next) : 0.0f;
        wait_full<STAGES>(shared + at::VALUES_FULL, n);
        wait_empty<TRANSPOSED_STAGES>(shared + at::TRANSPOSED_EMPTY, n);
        transpose<DIM>(shared + at::VALUES + n % STAGES * TILE_BYTES,
                       shared + at::TRANSPOSED + n % TRANSPOSED_STAGES * at::TRANSPOSED_BYTES,
                       n ? (uint32_t)TILE_KEYS : tiles.end - tile_key(tiles, 0));
        kiln_sm90a_fence_proxy_async();
        kiln_sm90a_mbarrier_arrive(shared + at::TRANSPOSED_FULL + n % TRANSPOSED_STAGES * 8);
        kiln_sm90a_barrier_sync(OF_PRODUCER, WARPGROUP); /* all have read the tile before the one that is overwritten */
        if (next < tiles.count)
            copy_tile<DIM>(maps, kv_head, s.kv_first + tile_key(tiles, next), next, scale, shared, memory);
    }
}

/* ---- A consumer ---- */

/* A consumer's queries. */
template <uint32_t DIM>
KILN_INLINE void copy_group_queries(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head,
                                    uint32_t row, uint32_t end, uint32_t shared) {
    enum : uint32_t { VECTORS = DIM / CODES };
    KILN_LOOP
    for (uint32_t i = kiln_thread() % WARPGROUP; i < GROUP_ROWS * VECTORS; i += WARPGROUP) {
        uint32_t place = i / VECTORS, d = i % VECTORS * CODES, number = row + place;
        row_place at = row_place_of(args, s, kv_head, number < end ? number : end - 1);
        const uint8_t *q = (const uint8_t *)args.q + at.token * (uint64_t)args.q_stride + at.head * args.head_dim + d;
        bool present = d < args.head_dim;
        kiln_sm80_cp_async(shared + swizzled(place, d / CODES), present ? q : args.q, present ? CODES : 0);
    }
    kiln_sm80_cp_async_commit();
    kiln_sm80_cp_async_wait<0>();
    kiln_sm90a_fence_proxy_async();
}

template <uint32_t DIM> struct tile_state {
    rows_of_warp<DIM> rows;
    typename unit::sums products[TILE_KEYS / 8][4]; /* of queries and keys */
    float values[DIM / 8 + 1][4];                   /* products of weights and values, and with GREATEST */
    uint32_t weights[TILE_KEYS / 32][4];
    float keep[2]; /* the factor of what the rows have had before the tile of the weights */
    bool summed;   /* sums of weights before they are rounded are wanted */
};

template <bool VALUE> struct is_general {
    enum : bool { value = VALUE };
};

/* Begins products = queries keys^T. */
template <uint32_t DIM>
KILN_INLINE void begin_products(typename unit::sums (*products)[4], uint32_t queries, uint32_t keys) {
    uint64_t a = kiln_sm90a_swizzled_128(queries, 16, ATOM), b = kiln_sm90a_swizzled_128(keys, 16, ATOM);
    KILN_UNROLL
    for (uint32_t step = 0; step < DIM / 32; step++)
        unit::multiply(products[0], a + 2 * step, b + 2 * step, step > 0);
    kiln_sm90a_wgmma_commit();
}

/* Begins products = weights values. */
template <uint32_t DIM>
KILN_INLINE void begin_values(float (*products)[4], const uint32_t (*weights)[4], uint32_t values) {
    uint64_t b = kiln_sm90a_swizzled_128(values, 16, ATOM);
    KILN_UNROLL
    for (uint32_t step = 0; step < TILE_KEYS / 32; step++) {
        if (DIM == 64) kiln_sm90a_wgmma_e4m3_n72(products[0], weights[step], b + 2 * step, step > 0);
        if (DIM == 96) kiln_sm90a_wgmma_e4m3_n104(products[0], weights[step], b + 2 * step, step > 0);
        if (DIM == 128) kiln_sm90a_wgmma_e4m3_n136(products[0], weights[step], b + 2 * step, step > 0);
    }
    kiln_sm90a_wgmma_commit();
}

/* Waits for this consumer's turn with the matrix units, and gives it to the other. */
KILN_INLINE void take_turn(uint32_t group) {
    kiln_sm90a_barrier_sync(OF_TURN + group, CONSUMERS * WARPGROUP);
}
KILN_INLINE void pass_turn(uint32_t group) {
    kiln_sm90a_barrier_arrive(OF_TURN + 1 - group, CONSUMERS * WARPGROUP);
}

/* Takes the products with a tile's values over. */
template <uint32_t DIM> KILN_INLINE void add_values(tile_state<DIM> *t) {
    KILN_UNROLL
    for (uint32_t i = 0; i < DIM / 2; i++) {
        float *result = &t->rows.result[i / 8][i / 4 % 2][i % 4];
        *result = KILN_FMA(*result, t->keep[i / 2 % 2], t->values[i / 4][i % 4]);
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++)
        t->rows.rounded[r] = KILN_FMA(t->rows.rounded[r], t->keep[r], t->values[DIM / 8][2 * r]);
}

/* The greatest of a row's products with this lane's keys from one half of the tile. */
KILN_INLINE unit::sums greatest(const unit::sums (*products)[4], uint32_t r) {
    unit::sums max = products[0][2 * r];
    KILN_UNROLL
    for (uint32_t n = 0; n < SHARED_SCALE_KEYS / 8; n++)
        max = unit::greater(max, unit::greater(products[n][2 * r], products[n][2 * r + 1]));
    return max;
}

/* Products become weights. `scales`: of the tile's keys; `shared`: where those of each half are one to a lane. */
template <uint32_t DIM, bool GENERAL>
KILN_INLINE void weigh(tile_state<DIM> *t, const float *scales, bool shared, uint32_t key) {
    rows_of_warp<DIM> *rows = &t->rows;
    const uint32_t lane = kiln_thread() % LANES;
    float scores[TILE_KEYS / 8][4], max[2], factor[2][2];
    if (!GENERAL && shared) {
        const float scale[2] = {scales[lane % 4 * 2], scales[SHARED_SCALE_KEYS + lane % 4 * 2]};
        KILN_UNROLL
        for (uint32_t r = 0; r < 2; r++) {
            max[r] = fmaxf((float)greatest(t->products, r) * scale[0],
                           (float)greatest(t->products + SHARED_SCALE_KEYS / 8, r) * scale[1]);
            factor[r][0] = rows->factor[r] * scale[0];
            factor[r][1] = rows->factor[r] * scale[1];
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < TILE_KEYS / 2; i++)
            scores[i / 4][i % 4] = (float)t->products[i / 4][i % 4];
    } else {
        KILN_UNROLL
        for (uint32_t n = 0; n < TILE_KEYS / 8; n++) {
            float2 scale = *(const float2 *)(scales + 8 * n + lane % 4 * 2);
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                scores[n][i] = (float)t->products[n][i] * (i % 2 ? scale.y : scale.x);
        }
        if (GENERAL) {
            KILN_UNROLL
            for (uint32_t i = 0; i < TILE_KEYS / 2; i++) {
                kiln_window window = rows->window[i / 2 % 2];
                uint32_t at = key + i / 4 * 8 + lane % 4 * 2 + i % 2;
                if (at - window.begin >= window.end - window.begin) scores[i / 4][i % 4] = -KILN_INFINITY;
            }
        }
        KILN_UNROLL
        for (uint32_t r = 0; r < 2; r++) {
            max[r] = scores[0][2 * r];
            KILN_UNROLL
            for (uint32_t n = 0; n < TILE_KEYS / 8; n++)
                max[r] = fmaxf(max[r], fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
            factor[r][0] = factor[r][1] = rows->factor[r];
        }
    }
    float less[2];
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        max[r] = fmaxf(max[r], kiln_shuffle_xor(max[r], 1));
        max[r] = fmaxf(max[r], kiln_shuffle_xor(max[r], 2));
        float origin = fmaxf(rows->origin[r], ceilf(max[r] * rows->factor[r]));
        float base = origin == -KILN_INFINITY ? 0.0f : origin;
        t->keep[r] = kiln_fast_exp2(rows->origin[r] - base);
        less[r] = WEIGHT_LOG2 - base;
        rows->origin[r] = origin;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILE_KEYS / 2; i++) {
        float at = factor[i / 2 % 2][i / (SHARED_SCALE_KEYS / 2)];
        scores[i / 4][i % 4] = kiln_fast_exp2(KILN_FMA(scores[i / 4][i % 4], at, less[i / 2 % 2]));
    }
    if (t->summed) {
        KILN_UNROLL
        for (uint32_t r = 0; r < 2; r++)
            rows->sum[r] *= t->keep[r];
        KILN_UNROLL
        for (uint32_t i = 0; i < TILE_KEYS / 2; i++)
            rows->sum[i / 2 % 2] += scores[i / 4][i % 4];
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILE_KEYS / 8; i++) { /* two eights of keys and one of the rows */
        uint32_t r = i % 2, n = i / 2 * 2;
        const float four[4] = {scores[n][2 * r], scores[n][2 * r + 1], scores[n + 1][2 * r], scores[n + 1][2 * r + 1]};
        t->weights[i / 4][i % 4] = kiln_sm89_cvt_e4m3x4_f32(four);
    }
}

/* By how much a row's scores are greater than those of keys less their mean: from what of the query each of the four
 * lanes of a row has. */
KILN_INLINE float score_of_means(const kiln_attention_codes_args &args, uint64_t channels, const uint8_t *queries,
                                 uint32_t place, float factor) {
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t d = kiln_thread() % 4; d < args.plain.head_dim; d += 4)
        sum = KILN_FMA(code_number(queries[swizzled(place, d / CODES) + d % CODES]), args.k_means[channels + d], sum);
    return quad_sum(sum) * factor * KILN_WEIGHT_LN_2;
}

/* Writes a warp's rows, the first of which is `row`. */
template <uint32_t DIM>
KILN_INLINE void write_rows(const kiln_attention_codes_args &args, const kiln_sequence &s,
                            const kiln_attention_work &work, const tile_state<DIM> &t, uint32_t row, uint32_t end,
                            const uint8_t *queries) {
    const kiln_attention_args &plain = args.plain;
    const uint32_t place = kiln_thread() % WARPGROUP / LANES * WARP_ROWS + kiln_thread() % LANES / 4;
    const uint64_t channels = ((uint64_t)work.batch * plain.kv_heads + work.kv_head) * plain.head_dim;
    row += kiln_thread() % LANES / 4;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float sum = (t.summed ? quad_sum(t.rows.sum[r]) : t.rows.rounded[r]) * 0x1p-8f, of_means = 0.0f;
        if (args.k_means && plain.lse)
            of_means = score_of_means(args, channels, queries, place + 8 * r, t.rows.factor[r]);
        if (row + 8 * r < end)
            write_row(args, work, t.rows, r, row_place_of(plain, s, work.kv_head, row + 8 * r), sum, of_means,
                      channels);
    }
}

template <uint32_t DIM>
KILN_INLINE void consume(const kiln_attention_codes_args &args, const kiln_sequence &s, const kiln_attention_work &work,
                         const key_tiles &tiles, uint32_t end, uint32_t shared, const char *memory) {
    typedef layout<DIM> at;
    const kiln_attention_args &plain = args.plain;
    uint32_t group = uniform(kiln_thread() / WARPGROUP) - 1;
    uint32_t group_row = work.row + group * GROUP_ROWS, row = group_row + kiln_thread() % WARPGROUP / LANES * WARP_ROWS;
    uint32_t queries = shared + at::QUERIES + group * QUERY_BYTES;
    copy_group_queries<DIM>(plain, s, work.kv_head, group_row, end, queries);
    tile_state<DIM> t;
    start_rows(args, s, work, row, end, &t.rows);
    t.summed = plain.lse || plain.partials;
    bool scales_shared = args.k_index.high && (s.kv_first + tiles.key) % SHARED_SCALE_KEYS == 0;

    /* Of these tiles all rows see all keys: from low on, before high. */
    uint32_t first = group_row < end ? group_row : end - 1, last = min(group_row + GROUP_ROWS, end) - 1;
    kiln_window first_window = kiln_window_of(&plain, &s, first / plain.group);
    kiln_window last_window = kiln_window_of(&plain, &s, last / plain.group);
    uint32_t seen_end = min(first_window.end, tiles.end);
    uint32_t low = last_window.begin > tiles.key ? (last_window.begin - tiles.key + TILE_KEYS - 1) / TILE_KEYS : 0;
    uint32_t high = seen_end > tiles.key ? (seen_end - tiles.key) / TILE_KEYS : 0;
    high = uniform(high);
    low = uniform(low);

    kiln_sm90a_barrier_sync(OF_CONSUMER + group, WARPGROUP);
    if (tiles.count) {
        auto scales = [&](uint32_t n) { return (const float *)(memory + at::SCALES) + n % STAGES * TILE_KEYS; };
        auto keys = [&](uint32_t n) { return shared + at::KEYS + n % STAGES * TILE_BYTES; };
        auto values = [&](uint32_t n) {
            return shared + at::TRANSPOSED + n % TRANSPOSED_STAGES * at::TRANSPOSED_BYTES;
        };
        if (group == 1) pass_turn(group); /* the first is the other's */
        wait_full<STAGES>(shared + at::KEYS_FULL, 0);
        take_turn(group);
        kiln_sm90a_wgmma_fence();
        begin_products<DIM>(t.products, queries, keys(0));
        kiln_sm90a_wgmma_wait<0>();
        kiln_sm90a_wgmma_hold<TILE_KEYS / 2>(t.products[0]);
        pass_turn(group);
        uint32_t next = tiles.count - 1;
        weigh<DIM, true>(&t, scales(0), false, tiles.key + next * TILE_KEYS);
        release<STAGES>(shared + at::KEYS_EMPTY, 0);

        auto step = [&](auto general) {
            next--;
            uint32_t n = tiles.count - 1 - next;
            wait_full<STAGES>(shared + at::KEYS_FULL, n);
            wait_full<TRANSPOSED_STAGES>(shared + at::TRANSPOSED_FULL, n - 1);
            take_turn(group);
            kiln_sm90a_wgmma_fence();
            begin_products<DIM>(t.products, queries, keys(n));
            begin_values<DIM>(t.values, t.weights, values(n - 1));
            kiln_sm90a_wgmma_wait<1>();
            pass_turn(group);
            kiln_sm90a_wgmma_wait<0>();
            kiln_sm90a_wgmma_hold<TILE_KEYS / 2>(t.products[0]);
            kiln_sm90a_wgmma_hold<DIM / 2 + 4>(t.values[0]);
            release<TRANSPOSED_STAGES>(shared + at::TRANSPOSED_EMPTY, n - 1);
            add_values(&t);
            weigh<DIM, decltype(general)::value>(&t, scales(n), scales_shared, tiles.key + next * TILE_KEYS);
            release<STAGES>(shared + at::KEYS_EMPTY, n);
        };
        for (uint32_t stop = high;; stop = 0) {
            KILN_LOOP
            while (next > stop)
                step(is_general<true>{});
            if (!next) break;
            KILN_LOOP
            while (next > low)
                step(is_general<false>{});
        }
        uint32_t n = tiles.count - 1;
        wait_full<TRANSPOSED_STAGES>(shared + at::TRANSPOSED_FULL, n);
        take_turn(group);
        kiln_sm90a_wgmma_fence();
        begin_values<DIM>(t.values, t.weights, values(n));
        kiln_sm90a_wgmma_wait<0>();
        kiln_sm90a_wgmma_hold<DIM / 2 + 4>(t.values[0]);
        if (group == 0) pass_turn(group);
        add_values(&t);
        t.rows.rounded[0] *= 1.0f / 448.0f;
        t.rows.rounded[1] *= 1.0f / 448.0f;
    }
    if (row < end) write_rows(args, s, work, t, row, end, (const uint8_t *)memory + at::QUERIES + group * QUERY_BYTES);
}

template <uint32_t DIM> KILN_INLINE void attend_tiles(const kiln_attention_codes_mapped_args &mapped) {
    typedef layout<DIM> at;
    extern __shared__ atom atoms[];
    uint32_t shared = kiln_sm90a_shared(atoms);
    const kiln_attention_codes_args &args = mapped.codes;
    const kiln_attention_args &plain = args.plain;
    kiln_attention_work work = kiln_attention_work_of(&plain, 0, (uint32_t)kiln_block());
    work.row = (plain.row_tiles - 1 - kiln_tile()) * TILE_ROWS; /* the last rows first: with causal they see most */
    if (work.batch >= plain.batch) return;                      /* the whole block */
    kiln_sequence s = kiln_sequence_of(&plain, work.batch);
    uint32_t end = s.seqlen_q * plain.group; /* of the rows */
    if (work.row >= end) return;             /* the whole block */
    uint32_t share = work.key;
    kiln_attention_trim(&plain, &s, work.row + TILE_ROWS < end ? work.row + TILE_ROWS : end, &work);
    /* Tiles begin where keys begin to share scales, unless the share begins behind it. */
    key_tiles tiles = {max(share, work.key / SHARED_SCALE_KEYS * SHARED_SCALE_KEYS), work.key_end, 0};
    if (tiles.end > work.key) tiles.count = uniform((tiles.end - tiles.key + TILE_KEYS - 1) / TILE_KEYS);

    if (kiln_thread() == 0) {
        KILN_UNROLL
        for (uint32_t i = 0; i < STAGES; i++) {
            kiln_sm90a_mbarrier_init(shared + at::KEYS_FULL + i * 8, WARPGROUP);
            kiln_sm90a_mbarrier_init(shared + at::KEYS_EMPTY + i * 8, CONSUMER_WARPS);
            kiln_sm90a_mbarrier_init(shared + at::VALUES_FULL + i * 8, 1);
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < TRANSPOSED_STAGES; i++) {
            kiln_sm90a_mbarrier_init(shared + at::TRANSPOSED_FULL + i * 8, WARPGROUP);
            kiln_sm90a_mbarrier_init(shared + at::TRANSPOSED_EMPTY + i * 8, CONSUMER_WARPS);
        }
        kiln_sm90a_fence_mbarrier_init();
        kiln_sm90a_prefetch_tensormap(mapped.maps);
        kiln_sm90a_prefetch_tensormap(mapped.maps + 1);
    }
    kiln_barrier();
    if (uniform(kiln_thread() / WARPGROUP) == 0) {
        kiln_sm90a_setmaxnreg_dec<PRODUCER_REGISTERS>();
        produce<DIM>(args, mapped.maps, s, work.kv_head, tiles, shared, (char *)atoms);
    } else {
        kiln_sm90a_setmaxnreg_inc<CONSUMER_REGISTERS>();
        consume<DIM>(args, s, work, tiles, end, shared, (const char *)atoms);
    }
}

#define CODES_PASTE(kernel, part)                                 \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS, 1) \
        kiln_##kernel##_##part(const __grid_constant__ kiln_attention_codes_mapped_args args)
#define CODES_OF_PART(kernel, part) CODES_PASTE(kernel, part)

/* Head of an entry of attend_tiles. */
#define CODES_ENTRY(kernel) CODES_OF_PART(kernel, KILN_PART)

#endif
