/* Attention for up to 16 rows, as when tokens are generated, f16 and bf16, by mma.sync, sm_80 and later: the device
 * source of mha's and mha_paged's kernels for few rows. Heads that share keys are rows of the same product.
 *
 * The 8 warps of a block (4 where a head has 256 elements) share its keys, 16 at a time in turn, 32 of codes. Each has
 * a ring of up to 3 tiles of its own (attention_sm80_ring.h), so that nothing waits for another warp until the end,
 * where they add up their results in shared memory. Where there are fewer blocks than multiprocessors, several share a
 * sequence's keys, by its own length, since the longest that the caller names may be much longer; a second launch joins
 * their results.
 *
 * Floor: one read of k and v. Measured on an H200 (driver 580.159.04, 2026-11-26, 32 heads and 8 of keys, head_dim 128,
 * bf16, CUDA graphs, nothing in L2 beforehand; reads of as many bytes as one likes come at 4506 GB/s): 64 x 4096 keys
 * 261 us (4117 GB/s; cuDNN 249), 16 x 8192 132 us (125), 1 x 32768 41 us (39), and 64 x 4096 of E4M3 147 us. What
 * follows is of prototypes, as nvcc 13 compiles them: 254, 127 and 40 us, of which the second launch takes 3. With more
 * shares than there are multiprocessors for all were slower: 46 us of 1 x 32768 with 32. Copies of 64 bytes of eight
 * keys by an instruction: 311 and 153 us. Two blocks of 4 warps for each multiprocessor: 257 and 131 us. cp.async.bulk
 * of a key by an instruction reached the same where keys are contiguous, but it takes 7.6 ns a row: with codes, and
 * with blocks of a cache, it was slower. Codes of E4M3 took 154 us with sm_90's conversion, 247 with that of sm_80.
 * Includers define what attention_gpu.h asks for. Test: build/tests/ops/mha_test. Bench: build/kiln bench mha_paged */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM80_DECODE_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM80_DECODE_H

#include "kernels/common/attention/attention_decode.h"
#include "kernels/common/attention/attention_sm80_ring.h"

/* What the warps of a block share besides tiles and results. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES> struct decode_shared {
    float maxima[KEY_WARPS][WARP_ROWS], sums[KEY_WARPS][WARP_ROWS]; /* of the rows */
    float2 joined[WARP_ROWS];                                       /* the maximum and the sum of all warps */
};

/* The queries as fragments, from memory: all warps have the same. */
template <uint32_t DIM, bool CODES>
KILN_INLINE void read_queries(const kiln_attention_args &args, const rows_of_warp<DIM> &rows, uint32_t (*queries)[4]) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const kiln_element *q = (const kiln_element *)args.q + rows.at[r].token * (uint64_t)args.q_stride;
        q += rows.at[r].head * args.head_dim + kiln_thread() % 4 * (CODES ? 4 : 2);
        KILN_UNROLL
        for (uint32_t i = 0; !CODES && i < DIM / 8; i++)
            queries[i / 2][i % 2 * 2 + r] = 8 * i < args.head_dim ? *(const uint32_t *)(q + 8 * i) : 0;
        KILN_UNROLL
        for (uint32_t i = 0; CODES && i < DIM / 16; i++)
            query_for_codes(&queries[i][r], &queries[i][2 + r],
                            16 * i < args.head_dim ? *(const uint2 *)(q + 16 * i) : make_uint2(0, 0));
    }
}

/* Queries of bf16 become f16 beside codes that do. Each row is multiplied by a power of two whereby its largest element
 * is near the greatest of f16: what becomes too small for f16 is nothing beside that one. */
template <uint32_t DIM> KILN_INLINE void scale_queries(rows_of_warp<DIM> *rows, uint32_t (*queries)[4]) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        rows->unit[r] = 1.0f;
#ifdef KILN_PART_bf16
        float most = 0.0f, values[2];
        KILN_UNROLL
        for (uint32_t i = 0; i < DIM / 8; i++) {
            kiln_ptx_f32_of_bf16x2(values, queries[i / 2][i % 2 * 2 + r]);
            most = fmaxf(most, fmaxf(fabsf(values[0]), fabsf(values[1])));
        }
        most = fmaxf(most, kiln_shuffle_xor(most, 1));
        most = fmaxf(most, kiln_shuffle_xor(most, 2));
        uint32_t exponent = min(max(kiln_bits(most) >> 23, 15u), 254u); /* 127 more than it is */
        float scale = kiln_float((268 - exponent) << 23);               /* the largest comes to 2^14 or more */
        rows->unit[r] = kiln_float((exponent - 14) << 23);
        KILN_UNROLL
        for (uint32_t i = 0; i < DIM / 8; i++) {
            uint32_t *pair = &queries[i / 2][i % 2 * 2 + r];
            kiln_ptx_f32_of_bf16x2(values, *pair);
            values[0] *= scale;
            values[1] *= scale;
            *pair = kiln_ptx_cvt_rn_f16x2_f32(values);
        }
#endif
    }
}

/* A warp's tiles. The ring is filled first; then each tile gives its place to the one that is copied next. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES>
KILN_INLINE void add_tiles(const kiln_attention_args &args, const decode_work &d, const score_scale &scale,
                           rows_of_warp<DIM> *rows, uint32_t shared) {
    typedef decoding<DIM, KEY_WARPS, CODES> share;
    const uint32_t warp = kiln_thread() / LANES;
    kiln_attention_work work = d.work;
    work.key += warp * share::KEYS;
    tile_ring<DIM, KEY_WARPS, CODES> ring(args, d.s, work, shared + warp * share::WARP_BYTES);
    KILN_LOOP
    for (uint32_t i = 0; i < args.stages; i++)
        ring.copy();
    int32_t tree = masked_from(args, d.s);
    uint32_t queries[DIM / 16][4];
    read_queries<DIM, CODES>(args, *rows, queries);
    if (CODES && CODES_ARE_F16) scale_queries<DIM>(rows, queries);
    KILN_LOOP
    for (uint32_t key = work.key; key < work.key_end; key += share::STRIDE) {
        uint32_t tile = ring.wait();
        add_keys<DIM, share::KEYS, false, CODES>(args, scale, tree, rows, queries, 0, tile, tile + share::TILE_BYTES,
                                                 key);
        __syncwarp();
        ring.copy();
    }
}

/* Puts a warp's results into shared memory, scaled to the maximum of all warps. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES>
KILN_INLINE void share_results(const rows_of_warp<DIM> &rows, float factor, float *results,
                               decode_shared<DIM, KEY_WARPS, CODES> *block) {
    uint32_t warp = kiln_thread() / LANES, lane = kiln_thread() % LANES;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t place = lane / 4 + 8 * r;
        float max = block->maxima[0][place], sum = quad_sum(rows.sum[r]);
        KILN_UNROLL
        for (uint32_t w = 1; w < KEY_WARPS; w++)
            max = fmaxf(max, block->maxima[w][place]);
        float keep = rows.max[r] == -KILN_INFINITY ? 0.0f : kiln_fast_exp2((rows.max[r] - max) * factor);
        if (CODES && CODES_ARE_F16) keep *= kiln_float((127 - CODES_WEIGHT_LOG2) << 23);
        if (lane % 4 == 0) block->sums[warp][place] = sum * keep;
        if (!rows.has[r]) continue;
        float *to = results + (warp * WARP_ROWS + place) * decoding<DIM, KEY_WARPS, CODES>::SUMS;
        to += lane % 4 * (CODES ? 4 : 2);
        KILN_UNROLL
        for (uint32_t n = 0; !CODES && n < DIM / 8; n++)
            *(float2 *)(to + 8 * n) = make_float2(rows.result[n][2 * r] * keep, rows.result[n][2 * r + 1] * keep);
        KILN_UNROLL
        for (uint32_t n = 0; CODES && n < DIM / 8; n += 2) {
            const float *even = rows.result[n] + 2 * r, *odd = rows.result[n + 1] + 2 * r;
            *(float4 *)(to + 8 * n) = make_float4(even[0] * keep, odd[0] * keep, even[1] * keep, odd[1] * keep);
        }
    }
}

/* Four elements of a row, and its maximum and sum. */
struct decoded {
    float max, sum, values[4];
};

/* All warps' results together. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES>
KILN_INLINE decoded add_results(const decode_shared<DIM, KEY_WARPS, CODES> &block, const float *results, float unit,
                                float v_scale, uint32_t place, uint32_t d) {
    decoded all = {-KILN_INFINITY, 0.0f, {0.0f, 0.0f, 0.0f, 0.0f}};
    KILN_UNROLL
    for (uint32_t w = 0; w < KEY_WARPS; w++) {
        quad share = *(const quad *)(results + (w * WARP_ROWS + place) * decoding<DIM, KEY_WARPS, CODES>::SUMS + d);
        all.max = fmaxf(all.max, block.maxima[w][place]);
        all.sum += block.sums[w][place];
        KILN_UNROLL
        for (uint32_t j = 0; j < 4; j++)
            all.values[j] += share.values[j];
    }
    KILN_UNROLL
    for (uint32_t j = 0; j < 4; j++)
        all.values[j] *= v_scale;
    all.max *= unit;
    return all;
}

/* Writes them, or a block's share of them. */
KILN_INLINE void write_results(const kiln_attention_args &args, const row_place &at, uint32_t split, const decoded &all,
                               uint32_t d) {
    const float *values = all.values;
    if (args.partials) {
        uint64_t to = kiln_partial_row(&args, split, at.token, at.head) * args.head_dim + d;
        *(float4 *)(args.partials + to) = make_float4(values[0], values[1], values[2], values[3]);
    } else {
        kiln_element *out = (kiln_element *)args.out + at.token * (uint64_t)args.out_stride;
        float inverse = all.sum == 0.0f ? 0.0f : kiln_reciprocal(all.sum);
        *(uint2 *)(out + at.head * args.head_dim + d) =
            make_uint2(pack(values[0] * inverse, values[1] * inverse), pack(values[2] * inverse, values[3] * inverse));
    }
    if (d == 0) write_scales(args, at, split, all.max, all.sum);
}

/* Calls body(place, d) for every fourth element d of the block's rows, a thread each: the `first` of `threads`. */
template <uint32_t DIM, class body_type>
KILN_INLINE void each_quad(const kiln_attention_args &args, const decode_work &d, uint32_t first, uint32_t threads,
                           body_type body) {
    KILN_LOOP
    for (uint32_t i = first; i < d.rows * (DIM / 4); i += threads)
        if (i % (DIM / 4) * 4 < args.head_dim) body(i / (DIM / 4), i % (DIM / 4) * 4);
}

/* What a block has of its rows, in shared memory: `finish(scale, results)` then takes it from there. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES, class finish_type>
KILN_INLINE void decode_with(const kiln_attention_args &args, const decode_work &d,
                             decode_shared<DIM, KEY_WARPS, CODES> *block, finish_type finish) {
    KILN_DYNAMIC_SHARED(kiln_vector, memory);
    uint32_t warp = kiln_thread() / LANES, lane = kiln_thread() % LANES;
    score_scale scale = score_scale_of(args, d.work.kv_head);
    rows_of_warp<DIM> rows;
    start_rows(args, d.s, d.work, d.work.row, d.work.row + d.rows, &rows);
    add_tiles<DIM, KEY_WARPS, CODES>(args, d, scale, &rows, kiln_sm80_shared(memory));
    if (lane % 4 == 0) {
        block->maxima[warp][lane / 4] = rows.max[0];
        block->maxima[warp][lane / 4 + 8] = rows.max[1];
    }
    kiln_barrier();
    share_results(rows, scale.factor, (float *)memory, block);
    kiln_barrier();
    finish(scale.unit, (float *)memory);
}

/* Writes what the warps of a block have of its rows. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES>
KILN_INLINE void write_block(const kiln_attention_args &args, const decode_work &d, float unit, const float *results,
                             const decode_shared<DIM, KEY_WARPS, CODES> &block) {
    float v_scale = kiln_cache_scale(&args, args.v_scale, d.work.kv_head);
    each_quad<DIM>(args, d, kiln_thread(), KEY_WARPS * LANES, [&](uint32_t place, uint32_t i) {
        row_place at = row_place_of(args, d.s, d.work.kv_head, d.work.row + place);
        write_results(args, at, d.work.split, add_results(block, results, unit, v_scale, place, i), i);
    });
}

template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES>
KILN_INLINE void decode(const kiln_attention_args &args, decode_shared<DIM, KEY_WARPS, CODES> *block) {
    const decode_work d = decode_work_of(args);
    if (!d.rows) return; /* the whole block */
    decode_with(args, d, block, [&](float unit, const float *results) { write_block(args, d, unit, results, *block); });
}

#define DECODE_PASTE(kernel, part, warps)                       \
    extern "C" __global__ void __launch_bounds__((warps)*LANES) \
        kiln_##kernel##_##part(const __grid_constant__ kiln_attention_args args)
#define DECODE_OF_PART(kernel, part, warps) DECODE_PASTE(kernel, part, warps)

/* Head of an entry of decode. */
#define DECODE_ENTRY(kernel, warps) DECODE_OF_PART(kernel, KILN_PART, warps)

#endif
