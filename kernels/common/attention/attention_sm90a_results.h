/* Attention for sm_90a (attention_sm90a.h): how the warps of consumers write results.
 *
 * Where shared memory has room for them, and keys are contiguous, a warp's rows go through a place of its own there, so
 * that whole rows go out, and each lane looks for one row's place; else four lanes exchange what they have of a row. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_RESULTS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_RESULTS_H

#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/attention/attention_sm90a_copy.h"
#include "kernels/common/attention/attention_sm90a_weights.h"

/* What is written of a tile of rows: its place, and of a lane's rows the maximum and the lane's sum. */
struct written_rows {
    const row_tile *tile;
    float max[2], sum[2];
};

template <uint32_t DIM> KILN_INLINE written_rows rows_to_write(const row_tile *tile, const rows_of_warp<DIM> &rows) {
    return {tile, {rows.max[0], rows.max[1]}, {rows.sum[0], rows.sum[1]}};
}

/* A row's first element in out. */
KILN_INLINE uint64_t result_at(const kiln_attention_args &args, const row_place &at) {
    return at.token * (uint64_t)args.out_stride + at.head * args.head_dim;
}

/* The sums of a lane's rows, with all lanes' keys; writes them and the maxima where they are wanted. */
template <bool EXTENDED>
KILN_INLINE void write_sums(const kiln_attention_args &args, const written_rows &rows, float *sums) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++)
        sums[r] = quad_sum(rows.sum[r]);
    if (!args.lse && !args.partials) return;
    const float unit = scale_of_tile<EXTENDED>(args, rows.tile).unit;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const uint32_t row = lane_row_of(rows.tile) + 8 * r;
        if (row < rows.tile->end && kiln_thread() % 4 == 0)
            write_scales(args, row_place_of(args, rows.tile->s, rows.tile->work.kv_head, row), rows.tile->work.split,
                         rows.max[r] * unit, sums[r]);
    }
}

/* Writes a split's share of a warp's rows. */
template <uint32_t DIM>
KILN_INLINE void write_partial_rows(const kiln_attention_args &args, const row_tile *tile, float v_scale,
                                    float (*result)[4]) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const uint32_t row = lane_row_of(tile) + 8 * r, part = kiln_thread() % 4;
        const bool has = row < tile->end;
        const row_place at = row_place_of(args, tile->s, tile->work.kv_head, min(row, tile->end - 1));
        float *partial = args.partials + kiln_partial_row(&args, tile->work.split, at.token, at.head) * args.head_dim;
        KILN_UNROLL
        for (uint32_t n = 0; n < DIM / 8; n++)
            if (has && 8 * n < args.head_dim)
                *(float2 *)(partial + 8 * n + part * 2) =
                    make_float2(result[n][2 * r] * v_scale, result[n][2 * r + 1] * v_scale);
    }
}

/* Writes a warp's rows, each times a factor: four lanes exchange what they have of a row, so that vectors go out. */
template <uint32_t DIM>
KILN_INLINE void write_by_quads(const kiln_attention_args &args, const row_tile *tile, const float *factors,
                                float (*result)[4]) {
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const uint32_t row = lane_row_of(tile) + 8 * r, part = kiln_thread() % 4;
        const row_place at = row_place_of(args, tile->s, tile->work.kv_head, min(row, tile->end - 1));
        kiln_element *out = (kiln_element *)args.out + result_at(args, at);
        KILN_UNROLL
        for (uint32_t n = 0; n < DIM / 8; n += 4) {
            kiln_vector vector;
            KILN_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                vector.words[i] = pack(result[n + i][2 * r] * factors[r], result[n + i][2 * r + 1] * factors[r]);
            exchange_quad(vector.words);
            uint32_t d = (n + part) * 8;
            if (row < tile->end && d < args.head_dim) kiln_vector_store(out + d, vector);
        }
    }
}

/* The same through the warp's place in shared memory. */
template <uint32_t DIM>
KILN_INLINE void write_by_rows(const kiln_attention_args &args, const row_tile *tile, const float *factors,
                               float (*result)[4], char *memory) {
    enum : uint32_t { VECTORS = DIM / KILN_VECTOR, AT_ONCE = LANES / VECTORS, PARTS = WARP_ROWS / AT_ONCE };
    const uint32_t lane = kiln_thread() % LANES, place = kiln_sm90a_shared(memory);
    const uint32_t first = warp_row_of(tile), end = tile->end;
    const uint64_t own = result_at(args, place_of_row(args, *tile, first + lane % WARP_ROWS));
    KILN_UNROLL
    for (uint32_t n = 0; n < DIM / 8; n += 2) {
        uint32_t words[4];
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const float *pair = &result[n + i / 2][i % 2 * 2];
            words[i] = pack(pair[0] * factors[i % 2], pair[1] * factors[i % 2]);
        }
        kiln_sm90a_stmatrix_x4(place + swizzled<WARP_ROWS>(lane % WARP_ROWS, n + lane / WARP_ROWS), words);
    }
    __syncwarp();
    kiln_vector vectors[PARTS];
    KILN_UNROLL
    for (uint32_t i = 0; i < PARTS; i++)
        vectors[i] = *(const kiln_vector *)(memory + swizzled<WARP_ROWS>(i * AT_ONCE + lane / VECTORS, lane % VECTORS));
    KILN_UNROLL
    for (uint32_t i = 0; i < PARTS; i++) {
        const uint32_t row = i * AT_ONCE + lane / VECTORS, d = lane % VECTORS * KILN_VECTOR;
        kiln_element *to = (kiln_element *)args.out + __shfl_sync(0xffffffffu, own, (int)row) + d;
        if (first + row < end && d < args.head_dim) kiln_vector_store(to, vectors[i]);
    }
}

/* Writes a warp's rows. memory: the block's. Beside a mask there are no registers to write by rows. */
template <uint32_t DIM, uint32_t KEYS, bool MASKED>
KILN_INLINE void write_rows(const kiln_attention_args &args, const written_rows &rows, char *memory,
                            float (*result)[4]) {
    typedef layout<DIM, KEYS> at;
    const float v_scale = kiln_cache_scale(&args, args.v_scale, rows.tile->work.kv_head);
    float sums[2], factors[2];
    write_sums<at::EXTENDED>(args, rows, sums);
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++)
        factors[r] = sums[r] == 0.0f ? 0.0f : v_scale * kiln_reciprocal(sums[r]);
    if (args.partials)
        write_partial_rows<DIM>(args, rows.tile, v_scale, result);
    else if constexpr (at::RESULTS_SHARED && !MASKED)
        write_by_rows<DIM>(args, rows.tile, factors, result,
                           memory + at::RESULTS + (kiln_thread() - WARPGROUP) / LANES * at::RESULT_BYTES);
    else
        write_by_quads<DIM>(args, rows.tile, factors, result);
    __syncwarp(); /* else ptxas takes what follows for divergent, and lets all products wait for each other */
}

#endif
