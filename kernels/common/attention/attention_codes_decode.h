/* Attention on codes of 8 bits for up to 16 rows, as when tokens are generated, by mma.sync, sm_80 and later: the
 * device source of mha_int8_x_fp8_fwd and mha_fp8_fwd for few rows.
 *
 * The 8 warps of a block (4 where heads have more than 128 elements) have the same 16 rows and share their keys, 32 at
 * a time. Each has a ring of tiles of its own, filled by cp.async, as many as shared memory has room for (up to three),
 * and waits for no other warp before its keys are done; then they join what they have in shared memory, by powers of
 * two, since origins are whole numbers. Blocks share the keys where there are fewer than the device has
 * multiprocessors, and a second launch joins them.
 *
 * Floor: one read of k and v at memory bandwidth. Not measured; mha's kernel of this structure reads at 94 to 97 % of
 * an H100's bandwidth as a prototype. Includers define what attention_codes_mma.h asks for, and tile: of codes, with
 * what a product of weights and values is. Test: build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_DECODE_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_DECODE_H

#include "kernels/common/attention/attention_codes_mma.h"
#include "kernels/common/tuned.h"

/* A stage in shared memory, a tile of each warp that has keys; then, in its place, the warps' results. */
template <uint32_t DIM> struct decoding {
    typedef tile<DIM, 32> keys;
    enum : uint32_t {
        KEY_WARPS = DIM > HELD_DIM ? WARPS / 2 : WARPS,
        STAGE_BYTES = KEY_WARPS * keys::BYTES,
        STRIDE = KEY_WARPS * keys::KEYS,
        RESULTS = DIM + 16 /* floats of a row: no bank is met twice */
    };
    static_assert((uint32_t)STAGE_BYTES >= KEY_WARPS * WARP_ROWS * RESULTS * sizeof(float),
                  "which take a stage's place");
};

/* What the warps of a block share beside their results: the sums and the origins of all warps' rows, by how much the
 * rows' scores are greater than those of keys less their mean, and the queries of longer heads. */
template <uint32_t DIM> struct decode_sums {
    float origins[WARPS][WARP_ROWS], sums[WARPS][WARP_ROWS], rounded[WARPS][WARP_ROWS], of_means[WARP_ROWS];
    kiln_vector queries[DIM > HELD_DIM ? WARP_ROWS *(DIM / CODES + 1) : 1];
};

/* Where a lane's rows stand; those beyond the last have the last's. */
KILN_INLINE row_place own_place(const kiln_attention_args &args, const kiln_sequence &s,
                                const kiln_attention_work &work, uint32_t end, uint32_t r) {
    uint32_t number = work.row + kiln_thread() % LANES / 4 + 8 * r;
    return row_place_of(args, s, work.kv_head, number < end ? number : end - 1);
}

/* The queries, from memory: all warps have the same. */
template <uint32_t DIM>
KILN_INLINE void read_queries(const kiln_attention_args &args, const row_place *at, queries_of_warp<DIM> *queries) {
    const uint32_t own = kiln_thread() % 4 * 4;
    const uint8_t *q[2] = {query_of(args, at[0]) + own, query_of(args, at[1]) + own};
    KILN_UNROLL
    for (uint32_t step = 0; step < DIM / 32; step++) {
        uint32_t words[4];
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t d = 32 * step + i / 2 * 16;
            words[i] = d < args.head_dim ? *(const uint32_t *)(q[i % 2] + d) : 0;
        }
        unit::queries_of(queries->held[step], words);
    }
}

/* Waits for the oldest of `stages` tiles. */
KILN_INLINE void wait_keys(uint32_t stages) {
    if (stages == 1)
        kiln_sm80_cp_async_wait<0>();
    else if (stages == 2)
        kiln_sm80_cp_async_wait<1>();
    else
        kiln_sm80_cp_async_wait<2>();
    __syncwarp();
}

/* A warp's tiles, from work.key on. The ring is filled first; then each tile gives its place to the one that is copied
 * next. */
template <uint32_t DIM>
KILN_INLINE void add_tiles(const kiln_attention_codes_args &args, const kiln_sequence &s,
                           const kiln_attention_work &work, const queries_of_warp<DIM> &queries,
                           rows_of_warp<DIM> *rows, uint32_t shared, const char *memory) {
    typedef decoding<DIM> block;
    typedef typename block::keys keys;
    uint32_t stage = 0, limit = args.plain.stages * block::STAGE_BYTES, ahead = args.plain.stages, copied = work.key;
    KILN_LOOP
    for (uint32_t key = work.key; key < work.key_end;) {
        if (ahead) {
            ahead--;
        } else {
            wait_keys(args.plain.stages);
            add_keys<keys>(rows, queries, shared + stage, (const float *)(memory + stage + keys::SCALES), key);
            __syncwarp();
            key += block::STRIDE;
        }
        copy_keys<keys, LANES>(args, s, work.kv_head, copied, work.key_end, shared + stage);
        copied += block::STRIDE;
        stage = stage + block::STAGE_BYTES == limit ? 0 : stage + block::STAGE_BYTES;
    }
    kiln_sm80_cp_async_wait<0>();
}

/* Puts a warp's results into shared memory, scaled to the greatest origin of all warps. */
template <uint32_t DIM>
KILN_INLINE void share_results(const rows_of_warp<DIM> &rows, decode_sums<DIM> *sums, float *results) {
    uint32_t warp = kiln_thread() / LANES, lane = kiln_thread() % LANES;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t place = lane / 4 + 8 * r;
        float origin = sums->origins[0][place], sum = quad_sum(rows.sum[r]);
        KILN_UNROLL
        for (uint32_t w = 1; w < decoding<DIM>::KEY_WARPS; w++)
            origin = fmaxf(origin, sums->origins[w][place]);
        float keep = rows.origin[r] == -KILN_INFINITY ? 0.0f : kiln_fast_exp2(rows.origin[r] - origin);
        if (lane % 4 == 0) {
            sums->sums[warp][place] = sum * keep;
            sums->rounded[warp][place] = rows.rounded[r] * keep;
        }
        float *to = results + (warp * WARP_ROWS + place) * decoding<DIM>::RESULTS + lane % 4 * 4;
        KILN_UNROLL
        for (uint32_t n = 0; n < DIM / 16; n++) {
            float values[4];
            own_channels(rows.result[n], r, values);
            *(float4 *)(to + 16 * n) =
                make_float4(values[0] * keep, values[1] * keep, values[2] * keep, values[3] * keep);
        }
    }
}

/* Adds up the warps' results and writes four channels of a row. */
template <uint32_t DIM>
KILN_INLINE void write_results(const kiln_attention_codes_args &args, const kiln_sequence &s,
                               const kiln_attention_work &work, const decode_sums<DIM> &sums, const float *results,
                               uint32_t place, uint32_t d) {
    float origin = -KILN_INFINITY, result[4] = {0.0f, 0.0f, 0.0f, 0.0f}, sum = 0.0f, rounded = 0.0f;
    KILN_LOOP
    for (uint32_t w = 0; w < decoding<DIM>::KEY_WARPS; w++) {
        float4 share = *(const float4 *)(results + (w * WARP_ROWS + place) * decoding<DIM>::RESULTS + d);
        origin = fmaxf(origin, sums.origins[w][place]);
        sum += sums.sums[w][place];
        rounded += sums.rounded[w][place];
        result[0] += share.x;
        result[1] += share.y;
        result[2] += share.z;
        result[3] += share.w;
    }
    const row_sums all = row_sums_of(sum * 0x1p-8f, rounded * 0x1p-8f);
    uint64_t channels = ((uint64_t)work.batch * args.plain.kv_heads + work.kv_head) * args.plain.head_dim;
    row_place at = row_place_of(args.plain, s, work.kv_head, work.row + place);
    write_channels(args, row_target_of(args.plain, work.split, at), all, channels, d, result);
    if (d == 0) write_sums(args.plain, work.split, at, all, origin * KILN_WEIGHT_LN_2 + sums.of_means[place]);
}

template <uint32_t DIM> KILN_INLINE void decode(const kiln_attention_codes_args &args, decode_sums<DIM> *sums) {
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    typedef decoding<DIM> block;
    const kiln_attention_args &plain = args.plain;
    uint32_t warp = kiln_thread() / LANES, lane = kiln_thread() % LANES;
    kiln_attention_work work = kiln_attention_work_of(&plain, 0, (uint32_t)kiln_block());
    if (work.batch >= plain.batch) return; /* the whole block */
    kiln_sequence s = kiln_sequence_of(&plain, work.batch);
    work.row = kiln_tile() * WARP_ROWS;
    uint32_t end = s.seqlen_q * plain.group; /* of the rows */
    if (work.row >= end) return;             /* the whole block */
    if (end > work.row + WARP_ROWS) end = work.row + WARP_ROWS;
    kiln_attention_trim(&plain, &s, end, &work);
    work.key += warp * block::keys::KEYS;

    const row_place at[2] = {own_place(plain, s, work, end, 0), own_place(plain, s, work, end, 1)};
    queries_of_warp<DIM> queries;
    queries.shared = kiln_sm80_shared(sums->queries);
    queries.head_dim = plain.head_dim;
    if (DIM <= HELD_DIM) {
        read_queries<DIM>(plain, at, &queries);
    } else {
        copy_queries<DIM, WARP_ROWS>(plain, s, work.kv_head, work.row, end, queries.shared);
        kiln_sm80_cp_async_wait<0>();
        kiln_barrier();
    }
    rows_of_warp<DIM> rows;
    start_rows(args, s, work, work.row, end, &rows);
    if (warp < block::KEY_WARPS)
        add_tiles<DIM>(args, s, work, queries, &rows, kiln_sm80_shared(memory) + warp * block::keys::BYTES,
                       (const char *)memory + warp * block::keys::BYTES);
    uint64_t channels = ((uint64_t)work.batch * plain.kv_heads + work.kv_head) * plain.head_dim;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float of_means = 0.0f;
        if (warp == 0 && args.k_means && plain.lse)
            of_means = score_of_means(args, channels, query_of(plain, at[r]), rows.factor[r]);
        if (lane % 4 == 0) sums->origins[warp][lane / 4 + 8 * r] = rows.origin[r];
        if (lane % 4 == 0 && warp == 0) sums->of_means[lane / 4 + 8 * r] = of_means;
    }
    kiln_barrier();
    float *results = (float *)memory;
    if (warp < block::KEY_WARPS) share_results<DIM>(rows, sums, results);
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < WARP_ROWS * DIM / 4; i += KILN_BLOCK) {
        uint32_t place = i / (DIM / 4), d = i % (DIM / 4) * 4;
        if (work.row + place < end && d < plain.head_dim) write_results<DIM>(args, s, work, *sums, results, place, d);
    }
}

#endif
