/* The kernel of rmsnorm_fp8 and rmsnorm_int8 on devices. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_ROWS_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_ROWS_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/math/root.h"
#include "kernels/common/quantize/codes_rows_gpu.h"
#include "kernels/common/quantize/rmsnorm_codes_row.h"

/* x, or x + residual, for a whole eight. */
KILN_INLINE void kiln_rmsnorm_eight(const kiln_rmsnorm_codes_row *r, float *sums, uint32_t col) {
    float addends[KILN_EIGHT];
    kiln_eight_read(sums, r->x + col);
    if (!r->args->residual) return;
    kiln_eight_read(addends, r->residual + col);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        sums[i] += addends[i];
}

/* Turns an eight of sums into results. */
KILN_INLINE void kiln_rmsnorm_eight_weigh(const kiln_rmsnorm_codes_row *r, float *values, float scale, uint32_t col) {
    float weights[KILN_EIGHT];
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        values[i] *= scale;
    if (!r->args->weight) return;
    kiln_eight_read(weights, r->weight + col);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        values[i] *= weights[i];
}

/* The sum over the threads that share a row, in the order of kiln_reduce: half a subgroup, one, or the block. */
KILN_INLINE float kiln_rmsnorm_row_sum(float sum, uint32_t lanes_log2, float exchange[KILN_SUBGROUPS]) {
    KILN_UNROLL
    for (uint32_t i = 0; i + 1 < KILN_SUBGROUP_LOG2; i++)
        sum += kiln_of_other_half(sum, i);
    if (lanes_log2 < KILN_SUBGROUP_LOG2) return sum;
    sum += kiln_of_other_half(sum, KILN_SUBGROUP_LOG2 - 1);
    if (lanes_log2 == KILN_SUBGROUP_LOG2) return sum;
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = sum;
    kiln_barrier();
    sum = exchange[0];
    KILN_UNROLL
    for (int i = 1; i < KILN_SUBGROUPS; i++)
        sum += exchange[i];
    return sum;
}

/* A block's rows: the squares of each; its greatest magnitude, if that determines a scale; its codes. The sums, and
 * then the results, of whole eights are kept in shared memory between these passes; those for which there is no room
 * are computed again. An input that sum replaces is read for the last time before the same thread writes sum. */
KILN_INLINE void kiln_rmsnorm_codes_rows(const kiln_rmsnorm_codes_args *args, kiln_codes_kept *kept, float *exchange,
                                         kiln_codes_format format) {
    const kiln_codes_args *out = &args->out;
    const kiln_codes_place p = kiln_codes_place_of(out);
    if (p.beyond) return;
    const kiln_codes_share s = kiln_codes_share_of(out, p);
    const kiln_rmsnorm_codes_row r = kiln_rmsnorm_codes_row_of(args, p.row);
    const bool of_row = kiln_codes_of_row(out), within = kiln_codes_are_within(out, format);
    float values[KILN_EIGHT], state = 0.0f; /* state: at first the squares, then the greatest magnitude */
    if (s.whole) {
        KILN_FOR_EIGHTS(p, s, number, eight) {
            kiln_rmsnorm_eight(&r, values, eight * KILN_EIGHT);
            state += kiln_eight_squares(values);
            if (number >= out->kept) continue;
            kiln_eight_keep(kept, number, values);
            if (args->sum) kiln_eight_store(r.sum + eight * KILN_EIGHT, values, KILN_EIGHT, true);
        }
    } else {
        KILN_FOR_EIGHTS(p, s, number, eight)
        state += kiln_rmsnorm_column_squares(&r, eight * KILN_EIGHT, (uint32_t)out->shape.cols);
    }
    state = kiln_rmsnorm_row_sum(state, out->shape.lanes_log2, exchange);
    const float scale = kiln_rsqrt(KILN_FMA(state, args->mean, args->eps));
    state = 0.0f;
    if (of_row) {
        if (s.whole) {
            KILN_FOR_EIGHTS(p, s, number, eight) {
                const bool held = number < out->kept;
                if (held)
                    kiln_eight_recall(kept, number, values);
                else
                    kiln_rmsnorm_eight(&r, values, eight * KILN_EIGHT);
                kiln_rmsnorm_eight_weigh(&r, values, scale, eight * KILN_EIGHT);
                state = kiln_four_greatest(values, state);
                if (held) kiln_eight_keep(kept, number, values);
            }
        } else {
            KILN_FOR_EIGHTS(p, s, number, eight)
            KILN_FOR_COLUMNS(out, eight, col) {
                const float result = kiln_rmsnorm_column_weigh(&r, kiln_rmsnorm_column(&r, col), scale, col);
                state = kiln_fast_max(__builtin_fabsf(result), state);
            }
        }
        kiln_barrier(); /* all have read the sum */
        state = kiln_row_greatest(state, out->shape.lanes_log2, exchange);
    }
    float factor = kiln_codes_row_factor(out, p, state);
    uint8_t *codes = out->codes + p.row * (uint64_t)out->codes_stride;
    KILN_LOOP
    for (uint32_t number = 0, eight = p.lane; number < out->rounds; number++, eight += p.lanes) {
        const bool present = eight < s.eights, held = number < out->kept;
        if (present && s.whole) {
            if (held) {
                kiln_eight_recall(kept, number, values);
            } else {
                kiln_rmsnorm_eight(&r, values, eight * KILN_EIGHT);
                if (args->sum) kiln_eight_store(r.sum + eight * KILN_EIGHT, values, KILN_EIGHT, true);
            }
            if (!held || !of_row) kiln_rmsnorm_eight_weigh(&r, values, scale, eight * KILN_EIGHT);
        }
        if (out->grouped) {
            float greatest = 0.0f;
            if (present && s.whole) greatest = kiln_eight_greatest(values, 0.0f);
            if (present && !s.whole) KILN_FOR_COLUMNS(out, eight, col) {
                    const float result = kiln_rmsnorm_column_weigh(&r, kiln_rmsnorm_column(&r, col), scale, col);
                    greatest = kiln_fast_max(__builtin_fabsf(result), greatest);
                }
            factor = kiln_codes_group_factor(out, p, eight, present, greatest);
        }
        if (present && s.whole) kiln_eight_write(out, codes + eight * KILN_EIGHT, values, factor, within, format);
        if (present && !s.whole) KILN_FOR_COLUMNS(out, eight, col) {
                const float sum = kiln_rmsnorm_column(&r, col);
                const float result = kiln_rmsnorm_column_weigh(&r, sum, scale, col);
                codes[col] = kiln_codes_byte(result * factor, out->smax, format);
                if (args->sum) r.sum[col] = kiln_element_from_f32(sum);
            }
    }
}

#endif
