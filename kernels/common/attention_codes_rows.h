/* Attention on codes of 8 bits by matrix instructions: what a lane has of its rows, from their start to their end.
 * attention_codes_sm89.h and attention_codes_sm90a.h have what is between. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_CODES_ROWS_H
#define KILN_KERNELS_COMMON_ATTENTION_CODES_ROWS_H

#include "kernels/arch/sm89_codes.h"
#include "kernels/common/attention_codes_gpu.h"
#include "kernels/common/special.h"
#include "kernels/common/values.h"

enum : uint32_t {
    LANES = 32,
    WARP_ROWS = 16,
    ONES = 0x38383838 /* E4M3 */
};

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

/* Writes one of a lane's two rows: four channels of every sixteen. */
template <uint32_t DIM>
KILN_INLINE void write_row(const kiln_attention_codes_args &args, const kiln_attention_work &work,
                           const rows_of_warp<DIM> &rows, uint32_t r, const row_place &at, float sum, float of_means,
                           uint64_t channels) {
    const kiln_attention_args &plain = args.plain;
    const float rounded = rows.rounded[r] * 0x1p-8f, factor = sum == 0.0f ? 0.0f : kiln_reciprocal(rounded) * 0x1p-8f;
    const uint64_t place = kiln_partial_row(&plain, work.split, at.token, at.head);
    const float origin = rows.origin[r] * KILN_WEIGHT_LN_2 + of_means;
    kiln_element *out = (kiln_element *)plain.out + at.token * (uint64_t)plain.out_stride;
    KILN_UNROLL
    for (uint32_t n = 0; n < DIM / 16; n++) {
        uint32_t d = 16 * n + kiln_thread() % 4 * 4;
        if (16 * n >= plain.head_dim) continue;
        float values[4];
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            float value = rows.result[n][i % 2][2 * r + i / 2] * factor * args.v_scales[channels + d + i];
            if (args.v_means && sum != 0.0f) value += args.v_means[channels + d + i];
            values[i] = value;
        }
        if (plain.partials)
            *(float4 *)(plain.partials + place * plain.head_dim + d) =
                make_float4(values[0] * rounded, values[1] * rounded, values[2] * rounded, values[3] * rounded);
        else
            *(uint2 *)(out + at.head * plain.head_dim + d) = make_uint2(kiln_pair_of(values), kiln_pair_of(values + 2));
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

#endif
