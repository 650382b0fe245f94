/* Attention on codes of 8 bits for sm_89 and later: the device source of mha_int8_x_fp8_fwd and mha_fp8_fwd by matrix
 * instructions, beside those for few rows (attention_codes_decode.h), and the portable ones (attention_codes_gpu.h) for
 * heads that are not on 16 bytes.
 *
 * A block does 128 rows, 16 by a warp, over tiles of 64 keys. cp.async fetches the next tile of k, v and k's scales
 * while one is at work: one barrier a tile. The rows with the most keys to see, the last, go first.
 *
 * Floor: 4 * rows * keys * head_dim operations. Not measured; docs/kernel-report.md has the instructions counted.
 * Includers define what attention_codes_gpu.h asks for, and unit: a product of q and k. Test:
 * build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_CODES_SM89_H
#define KILN_KERNELS_COMMON_ATTENTION_CODES_SM89_H

#include "kernels/common/attention_codes_mma.h"
#include "kernels/common/tuned.h"

enum : uint32_t { TILE_ROWS = WARPS * WARP_ROWS, TILE_KEYS = 64 };

/* Shared memory, in bytes: two tiles of keys, then the queries. */
template <uint32_t DIM> struct layout {
    typedef tile<DIM, TILE_KEYS> keys;
    enum : uint32_t { QUERIES = 2 * keys::BYTES, BYTES = QUERIES + TILE_ROWS * keys::PITCH };
};

/* A fragment of 16 rows and 32 codes as the first factor: the queries. */
template <uint32_t DIM> KILN_INLINE void load_queries(uint32_t *fragment, uint32_t shared, uint32_t step) {
    uint32_t lane = kiln_thread() % LANES;
    kiln_sm80_ldmatrix_x4(fragment, vector_at<DIM>(shared, lane % 16, 2 * step + lane / 16));
}

template <uint32_t DIM>
KILN_INLINE void copy_queries(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head, uint32_t row,
                              uint32_t end, uint32_t shared) {
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < TILE_ROWS * (DIM / CODES); i += KILN_BLOCK) {
        uint32_t place = i / (DIM / CODES), d = i % (DIM / CODES) * CODES, number = row + place;
        number = number < end ? number : end - 1;
        const uint8_t *q = (const uint8_t *)args.q + (s.q_first + number / args.group) * (uint64_t)args.q_stride;
        q += (kv_head * args.group + number % args.group) * args.head_dim + d;
        bool present = d < args.head_dim;
        kiln_sm80_cp_async(vector_at<DIM>(shared, place, d / CODES), present ? q : args.q, present ? CODES : 0);
    }
    kiln_sm80_cp_async_commit();
}

/* By how much a row's scores are greater than those of keys less their mean: from what of the query each of the four
 * lanes of a row has. */
template <uint32_t DIM>
KILN_INLINE float score_of_means(const kiln_attention_codes_args &args, uint64_t channels, uint32_t query_shared,
                                 const char *memory, uint32_t shared, uint32_t place, float factor) {
    const uint8_t *query = (const uint8_t *)memory + (query_shared - shared) + place * (DIM + CODES);
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t d = kiln_thread() % 4; d < args.plain.head_dim; d += 4)
        sum = KILN_FMA(code_number(query[d]), args.k_means[channels + d], sum);
    return quad_sum(sum) * factor * KILN_WEIGHT_LN_2;
}

template <uint32_t DIM> KILN_INLINE void attend_tiles(const kiln_attention_codes_args &args) {
    typedef tile<DIM, TILE_KEYS> stage;
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    const kiln_attention_args &plain = args.plain;
    uint32_t shared = kiln_sm80_shared(memory), warp = kiln_thread() / LANES, lane = kiln_thread() % LANES;
    kiln_attention_work work = kiln_attention_work_of(&plain, 0, (uint32_t)kiln_block());
    work.row = (plain.row_tiles - 1 - kiln_tile()) * TILE_ROWS; /* the last rows first: with causal they see most */
    if (work.batch >= plain.batch) return;                      /* the whole block */
    kiln_sequence s = kiln_sequence_of(&plain, work.batch);
    uint32_t end = s.seqlen_q * plain.group; /* of the rows */
    if (work.row >= end) return;             /* the whole block */
    kiln_attention_trim(&plain, &s, work.row + TILE_ROWS < end ? work.row + TILE_ROWS : end, &work);

    uint32_t queries_shared = shared + layout<DIM>::QUERIES;
    copy_keys<DIM, TILE_KEYS, KILN_BLOCK>(args, s, work.kv_head, work.key, work.key_end, shared);
    copy_queries<DIM>(plain, s, work.kv_head, work.row, end, queries_shared);
    queries_shared += warp * WARP_ROWS * stage::PITCH;
    kiln_sm80_cp_async_wait<0>();
    kiln_barrier();
    uint32_t queries[DIM / 32][4], row = work.row + warp * WARP_ROWS;
    KILN_UNROLL
    for (uint32_t step = 0; step < DIM / 32; step++)
        load_queries<DIM>(queries[step], queries_shared, step);
    rows_of_warp<DIM> rows;
    start_rows(args, s, work, row, end, &rows);
    KILN_LOOP
    for (uint32_t key = work.key, use = 0; key < work.key_end; key += TILE_KEYS, use ^= 1) {
        kiln_sm80_cp_async_wait<0>();
        kiln_barrier();
        copy_keys<DIM, TILE_KEYS, KILN_BLOCK>(args, s, work.kv_head, key + TILE_KEYS, work.key_end,
                                              shared + (use ^ 1) * stage::BYTES);
        const char *at = (const char *)memory + use * stage::BYTES;
        if (row < end)
            add_keys<DIM, TILE_KEYS>(&rows, queries, shared + use * stage::BYTES, (const float *)(at + stage::SCALES),
                                     key);
    }
    kiln_sm80_cp_async_wait<0>();
    if (row >= end) return;
    uint64_t channels = ((uint64_t)work.batch * plain.kv_heads + work.kv_head) * plain.head_dim;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float sum = quad_sum(rows.sum[r]) * 0x1p-8f, of_means = 0.0f;
        if (args.k_means && plain.lse)
            of_means = score_of_means<DIM>(args, channels, queries_shared, (const char *)memory, shared,
                                           lane / 4 + 8 * r, rows.factor[r]);
        uint32_t number = row + lane / 4 + 8 * r;
        if (number < end)
            write_row(args, work, rows, r, row_place_of(plain, s, work.kv_head, number), sum, of_means, channels);
    }
}

#endif
