/* Attention on codes of 8 bits by matrix instructions: what a lane has of its rows, from their start to their end.
 * attention_codes_mma.h and attention_codes_sm90a.h have what is between. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_ROWS_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_ROWS_H

#include "kernels/common/attention/attention_codes_gpu.h"
#include "kernels/common/math/special.h"
#include "kernels/common/values.h"

enum : uint32_t { LANES = 32, WARPS = KILN_BLOCK / LANES, WARP_ROWS = 16 };

#define WEIGHT_LOG2 8.0f /* of what weights are multiplied with before they are rounded */

/* What a warp has of its 16 rows. A lane has 2 of them, lane / 4 and 8 more, and of each 4 neighbouring channels of
 * every 16: those of even number in sums[..][0], the others in sums[..][1]. */
template <uint32_t DIM> struct rows_of_warp {
    kiln_window window[2];
    float factor[2];              /* of scores, times log2 e */
    float origin[2];              /* m of attention_codes.h; -inf before the first key */
    float sum[2], rounded[2];     /* of weights, by this lane's keys, and of their codes by all, times 2^8 */
    float result[DIM / 16][2][4]; /* times 2^8 */
};

/* Where a row stands in q and out, and among partial results. */
struct row_place {
    uint32_t token, head;
};

KILN_INLINE row_place row_place_of(const kiln_attention_args &args, const kiln_sequence &s, uint32_t kv_head,
                                   uint32_t row) {
    return {s.q_first + row / args.group, kv_head * args.group + row % args.group};
}

/* A warp's rows before the first key. Of what they see the block has the keys before work.key_end. */
template <uint32_t DIM>
KILN_INLINE void start_rows(const kiln_attention_codes_args &args, const kiln_sequence &s,
                            const kiln_attention_work &work, uint32_t row, uint32_t end, rows_of_warp<DIM> *rows) {
    const kiln_attention_args &plain = args.plain;
    KILN_UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t number = row + kiln_thread() % LANES / 4 + 8 * r, own = number < end ? number : end - 1;
        row_place at = row_place_of(plain, s, work.kv_head, own);
        kiln_window window = kiln_window_of(&plain, &s, own / plain.group);
        window.end = min(window.end, max(work.key_end, window.begin));
        rows->window[r] = window;
        float scale = args.q_scales[at.head * (uint64_t)args.q_scale_rows + kiln_scale_at(args.q_index, at.token)];
        rows->factor[r] = scale * (plain.scale * KILN_LOG2_E);
        rows->origin[r] = -KILN_INFINITY;
        rows->sum[r] = rows->rounded[r] = 0.0f;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < DIM / 2; i++)
        rows->result[i / 8][i / 4 % 2][i % 4] = 0.0f;
}

KILN_INLINE float quad_sum(float value) {
    value += kiln_shuffle_xor(value, 1);
    return value + kiln_shuffle_xor(value, 2);
}

/* Sums of a row: of its weights, and of them as codes; and the factor of results that are times 2^8, 0 of a row that
 * saw no key. */
struct row_sums {
    float sum, rounded, factor;
};

KILN_INLINE row_sums row_sums_of(float sum, float rounded) {
    return {sum, rounded, sum == 0.0f ? 0.0f : kiln_reciprocal(rounded) * 0x1p-8f};
}

/* Where a row's channels go: to out, or where blocks share its keys, to the partial results. Both, and a row's factor,
 * are known before the first channel is written: what stands behind a branch nvcc computes anew behind each. */
struct row_target {
    float *partials;
    kiln_element *out;
};

KILN_INLINE row_target row_target_of(const kiln_attention_args &args, uint32_t split, const row_place &at) {
    return {args.partials + kiln_partial_row(&args, split, at.token, at.head) * args.head_dim,
            (kiln_element *)args.out + at.token * (uint64_t)args.out_stride + at.head * args.head_dim};
}

/* Writes four channels of a row, from sums that are times 2^8: divided by the sum of the weights' codes, with v's
 * scales and means; or where blocks share its keys, the same times that sum. */
KILN_INLINE void write_channels(const kiln_attention_codes_args &args, const row_target &to, const row_sums &sums,
                                uint64_t channels, uint32_t d, const float *result) {
    float values[4];
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        values[i] = result[i] * sums.factor * args.v_scales[channels + d + i];
        if (args.v_means && sums.sum != 0.0f) values[i] += args.v_means[channels + d + i];
    }
    if (args.plain.partials)
        *(float4 *)(to.partials + d) = make_float4(values[0] * sums.rounded, values[1] * sums.rounded,
                                                   values[2] * sums.rounded, values[3] * sums.rounded);
    else
        *(uint2 *)(to.out + d) = make_uint2(kiln_pair_of(values), kiln_pair_of(values + 2));
}

/* Writes a row's lse, or where blocks share its keys, what attention_codes.h says; origin: as a natural logarithm. */
KILN_INLINE void write_sums(const kiln_attention_args &args, uint32_t split, const row_place &at, const row_sums &sums,
                            float origin) {
    if (args.partials) {
        const uint64_t place = kiln_partial_row(&args, split, at.token, at.head);
        kiln_partial_scales(&args)[2 * place] = origin;
        kiln_partial_scales(&args)[2 * place + 1] = sums.rounded;
        kiln_partial_sums(&args)[place] = sums.sum;
    } else if (args.lse) {
        args.lse[at.head * (uint64_t)args.tokens + at.token] =
            sums.sum == 0.0f ? -KILN_INFINITY : origin + kiln_log(sums.sum);
    }
}

/* The four channels that a lane has of one of its rows, among 16. */
KILN_INLINE void own_channels(const float (*result)[4], uint32_t r, float *values) {
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        values[i] = result[i % 2][2 * r + i / 2];
}

/* Writes one of a lane's two rows: four channels of every sixteen. */
template <uint32_t DIM>
KILN_INLINE void write_row(const kiln_attention_codes_args &args, const kiln_attention_work &work,
                           const rows_of_warp<DIM> &rows, uint32_t r, const row_place &at, float sum, float of_means,
                           uint64_t channels) {
    const row_sums sums = row_sums_of(sum, rows.rounded[r] * 0x1p-8f);
    const row_target to = row_target_of(args.plain, work.split, at);
    KILN_UNROLL
    for (uint32_t n = 0; n < DIM / 16; n++) {
        if (16 * n >= args.plain.head_dim) continue;
        float values[4];
        own_channels(rows.result[n], r, values);
        write_channels(args, to, sums, channels, 16 * n + kiln_thread() % 4 * 4, values);
    }
    if (kiln_thread() % 4 == 0)
        write_sums(args.plain, work.split, at, sums, rows.origin[r] * KILN_WEIGHT_LN_2 + of_means);
}

#endif
