/* Attention on codes of 8 bits for up to 16 rows, as when tokens are generated, by mma.sync, sm_89 and later: the
 * device source of mha_int8_x_fp8_fwd and mha_fp8_fwd for few rows.
 *
 * The 8 warps of a block have the same 16 rows and share their keys, 32 at a time. Each has a ring of tiles of its own,
 * filled by cp.async, as many as shared memory has room for (up to three), and waits for no other warp before its keys
 * are done; then they join what they have in shared memory, by powers of two, since origins are whole numbers. Blocks
 * share the keys where there are fewer than the device has multiprocessors, and a second launch joins them.
 *
 * Floor: one read of k and v at memory bandwidth. Not measured; mha's kernel of this structure reads at 94 to 97 % of
 * an H100's bandwidth as a prototype. Includers define what attention_codes_mma.h asks for. Test:
 * build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_CODES_DECODE_H
#define KILN_KERNELS_COMMON_ATTENTION_CODES_DECODE_H

#include "kernels/common/attention_codes_mma.h"
#include "kernels/common/tuned.h"

/* A stage in shared memory, a tile of each warp; then, in its place, the warps' results. */
template <uint32_t DIM> struct decoding {
    enum : uint32_t {
        KEYS = 32, /* of a tile */
        TILE_BYTES = tile<DIM, KEYS>::BYTES,
        STAGE_BYTES = WARPS * TILE_BYTES,
        STRIDE = WARPS * KEYS,
        RESULTS = DIM + 16 /* floats of a row: no bank is met twice */
    };
    static_assert((uint32_t)STAGE_BYTES >= WARPS * WARP_ROWS * RESULTS * sizeof(float), "which take a stage's place");
};

/* The sums and the origins of the rows of all warps, and by how much their scores are greater than those of keys less
 * their mean. */
struct decode_sums {
    float origins[WARPS][WARP_ROWS], sums[WARPS][WARP_ROWS], rounded[WARPS][WARP_ROWS], of_means[WARP_ROWS];
};

/* A row's query. */
KILN_INLINE const uint8_t *query_of(const kiln_attention_args &args, const row_place &at) {
    return (const uint8_t *)args.q + at.token * (uint64_t)args.q_stride + at.head * args.head_dim;
}

/* Where a lane's rows stand; those beyond the last have the last's. */
KILN_INLINE row_place own_place(const kiln_attention_args &args, const kiln_sequence &s,
                                const kiln_attention_work &work, uint32_t end, uint32_t r) {
    uint32_t number = work.row + kiln_thread() % LANES / 4 + 8 * r;
    return row_place_of(args, s, work.kv_head, number < end ? number : end - 1);
}

/* The queries as fragments, from memory: all warps have the same. */
template <uint32_t DIM>
KILN_INLINE void read_queries(const kiln_attention_args &args, const row_place *at, uint32_t (*queries)[4]) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const uint8_t *q = query_of(args, at[r]) + kiln_thread() % 4 * 4;
        KILN_UNROLL
        for (uint32_t i = 0; i < DIM / 16; i++)
            queries[i / 2][i % 2 * 2 + r] = 16 * i < args.head_dim ? *(const uint32_t *)(q + 16 * i) : 0;
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
                           const kiln_attention_work &work, const uint32_t (*queries)[4], rows_of_warp<DIM> *rows,
                           uint32_t shared, const char *memory) {
    typedef decoding<DIM> block;
    uint32_t stage = 0, limit = args.plain.stages * block::STAGE_BYTES, ahead = args.plain.stages, copied = work.key;
    KILN_LOOP
    for (uint32_t key = work.key; key < work.key_end;) {
        if (ahead) {
            ahead--;
        } else {
            wait_keys(args.plain.stages);
            add_keys<DIM, block::KEYS>(rows, queries, shared + stage,
                                       (const float *)(memory + stage + tile<DIM, block::KEYS>::SCALES), key);
            __syncwarp();
            key += block::STRIDE;
        }
        copy_keys<DIM, block::KEYS, LANES>(args, s, work.kv_head, copied, work.key_end, shared + stage);
        copied += block::STRIDE;
        stage = stage + block::STAGE_BYTES == limit ? 0 : stage + block::STAGE_BYTES;
    }
    kiln_sm80_cp_async_wait<0>();
}

/* Puts a warp's results into shared memory, scaled to the greatest origin of all warps. */
template <uint32_t DIM>
KILN_INLINE void share_results(const rows_of_warp<DIM> &rows, decode_sums *sums, float *results) {
    uint32_t warp = kiln_thread() / LANES, lane = kiln_thread() % LANES;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t place = lane / 4 + 8 * r;
        float origin = sums->origins[0][place], sum = quad_sum(rows.sum[r]);
        KILN_UNROLL
        for (uint32_t w = 1; w < WARPS; w++)
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
                               const kiln_attention_work &work, const decode_sums &sums, const float *results,
                               uint32_t place, uint32_t d) {
    float origin = -KILN_INFINITY, result[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    row_sums all = {0.0f, 0.0f};
    KILN_LOOP
    for (uint32_t w = 0; w < WARPS; w++) {
        float4 share = *(const float4 *)(results + (w * WARP_ROWS + place) * decoding<DIM>::RESULTS + d);
        origin = fmaxf(origin, sums.origins[w][place]);
        all.sum += sums.sums[w][place];
        all.rounded += sums.rounded[w][place];
        result[0] += share.x;
        result[1] += share.y;
        result[2] += share.z;
        result[3] += share.w;
    }
    all.sum *= 0x1p-8f;
    all.rounded *= 0x1p-8f;
    uint64_t channels = ((uint64_t)work.batch * args.plain.kv_heads + work.kv_head) * args.plain.head_dim;
    row_place at = row_place_of(args.plain, s, work.kv_head, work.row + place);
    write_channels(args, work.split, at, all, channels, d, result);
    if (d == 0) write_sums(args.plain, work.split, at, all, origin * KILN_WEIGHT_LN_2 + sums.of_means[place]);
}

/* By how much a row's scores are greater than those of keys less their mean; the four lanes of a row add it up. */
KILN_INLINE float quad_score_of_means(const kiln_attention_codes_args &args, uint64_t channels, const uint8_t *query,
                                      float factor) {
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t d = kiln_thread() % 4; d < args.plain.head_dim; d += 4)
        sum = KILN_FMA(code_number(query[d]), args.k_means[channels + d], sum);
    return quad_sum(sum) * factor * KILN_WEIGHT_LN_2;
}

template <uint32_t DIM> KILN_INLINE void decode(const kiln_attention_codes_args &args, decode_sums *sums) {
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
    work.key += warp * block::KEYS;

    const row_place at[2] = {own_place(plain, s, work, end, 0), own_place(plain, s, work, end, 1)};
    uint32_t queries[DIM / 32][4];
    read_queries<DIM>(plain, at, queries);
    rows_of_warp<DIM> rows;
    start_rows(args, s, work, work.row, end, &rows);
    add_tiles<DIM>(args, s, work, queries, &rows, kiln_sm80_shared(memory) + warp * block::TILE_BYTES,
                   (const char *)memory + warp * block::TILE_BYTES);
    uint64_t channels = ((uint64_t)work.batch * plain.kv_heads + work.kv_head) * plain.head_dim;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        float of_means = 0.0f;
        if (warp == 0 && args.k_means && plain.lse)
            of_means = quad_score_of_means(args, channels, query_of(plain, at[r]), rows.factor[r]);
        if (lane % 4 == 0) sums->origins[warp][lane / 4 + 8 * r] = rows.origin[r];
        if (lane % 4 == 0 && warp == 0) sums->of_means[lane / 4 + 8 * r] = of_means;
    }
    kiln_barrier();
    float *results = (float *)memory;
    share_results<DIM>(rows, sums, results);
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < WARP_ROWS * DIM / 4; i += KILN_BLOCK) {
        uint32_t place = i / (DIM / 4), d = i % (DIM / 4) * 4;
        if (work.row + place < end && d < plain.head_dim) write_results<DIM>(args, s, work, *sums, results, place, d);
    }
}

#endif
