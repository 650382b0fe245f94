/* rmsnorm_nvfp4 and silu_mul_nvfp4 on sm_90a, for aligned rows that a block has in registers: with half as many threads
 * for a row as in codes_sm90a.h, what a thread does once is done for twice as many elements. `threads` is how many. */
#ifndef KILN_KERNELS_COMMON_CODES_HELD_SM90A_H
#define KILN_KERNELS_COMMON_CODES_HELD_SM90A_H

#include "kernels/common/codes_held.h"
#include "kernels/common/codes_sm90a.h"

/* The greatest magnitudes of warps. */
typedef struct kiln_codes_held_exchange {
    uint32_t greatest[KILN_CODES_HELD_MOST / KILN_SUBGROUP];
} kiln_codes_held_exchange;

/* kiln_codes_place_of there. */
KILN_INLINE kiln_codes_place kiln_codes_place_of_held(const kiln_codes_args *args, uint32_t threads) {
    kiln_codes_place p;
    p.row = (uint32_t)kiln_block();
    p.lane = kiln_thread();
    p.lanes = threads;
    p.inside = p.row < (uint64_t)args->rows;
    p.beyond = p.row >= (uint64_t)args->shape.rows;
    return p;
}

/* A thread's eights of a row; zeros beyond it. */
KILN_INLINE void kiln_codes_held_load(kiln_vector *held, const kiln_element *row, uint32_t eights, uint32_t threads) {
    KILN_UNROLL
    for (uint32_t i = 0, eight = kiln_thread(); i < KILN_CODES_HELD; i++, eight += threads) {
        held[i] = kiln_vector{};
        if (eight < eights) held[i] = kiln_vector_load(row + eight * KILN_EIGHT);
    }
}

/* The greatest magnitude in a block. */
KILN_INLINE float kiln_codes_held_greatest(float value, kiln_codes_held_exchange *exchange, uint32_t threads) {
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP, greatest = kiln_sm90a_warp_greatest(kiln_bits(value));
    if (lane == 0) exchange->greatest[kiln_thread() / KILN_SUBGROUP] = greatest;
    kiln_barrier();
    return kiln_float(kiln_sm90a_warp_greatest(exchange->greatest[lane < threads / KILN_SUBGROUP ? lane : 0]));
}

/* Writes a row in NVFP4, of which the first `eights` eights are its own: zeros, or NaN in a row of NaN, are what values
 * may have beyond them. The values are lost. */
KILN_INLINE void kiln_codes_held_put(const kiln_codes_args *args, kiln_codes_place p, uint32_t eights,
                                     float (*values)[KILN_EIGHT], kiln_codes_held_exchange *exchange) {
    const uint32_t threads = p.lanes;
    float greatest[KILN_CODES_HELD], of_row = 0.0f;
    KILN_UNROLL
    for (int i = 0; i < KILN_CODES_HELD; i++) {
        greatest[i] = kiln_eight_greatest(values[i], 0.0f);
        of_row = kiln_fast_max(greatest[i], of_row);
    }
    if (kiln_codes_of_row(args)) of_row = kiln_codes_held_greatest(of_row, exchange, threads);
    const float scale = args->static_scale != 0.0f ? args->static_scale : kiln_nvfp4_global_quickly(of_row);
    const float encode = kiln_nvfp4_encode_quickly(scale);
    if (args->global_scale && p.inside && p.lane == 0) args->global_scale[p.row] = scale;
    kiln_codes_target target = kiln_codes_target_of(args, p, p.lane, threads);
    KILN_UNROLL
    for (int i = 0; i < KILN_CODES_HELD; i += 2) {
        kiln_codes_put_4(args, p, p.lane + i * threads, threads, target, eights, values + i, greatest + i, encode,
                         true);
        target.codes += 2 * threads * (KILN_EIGHT / 2);
        target.scale += args->swizzled ? threads / 4 * 512 : threads; /* as many blocks */
    }
}

#endif
