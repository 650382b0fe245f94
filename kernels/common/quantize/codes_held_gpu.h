/* rmsnorm_nvfp4 and silu_mul_nvfp4 on NVIDIA from sm_80 on, for aligned rows that threads have in registers. A thread
 * has whole blocks of 16 columns, every lanes-th of the row, so that none tells another a scale. A block of threads has
 * a row, or a power of two of a warp's threads do: lanes_log2 is KILN_BLOCK_LOG2 or theirs. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_HELD_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_HELD_GPU_H

#include "kernels/arch/ptx.h"
#include "kernels/arch/sm90a.h"
#include "kernels/common/device.h"
#include "kernels/common/math/pairs.h"
#include "kernels/common/quantize/codes_gpu.h"
#include "kernels/common/quantize/codes_held.h"
#include "kernels/common/quantize/nvfp4_block_gpu.h"
#include "kernels/common/quantize/nvfp4_quickly.h"

enum { KILN_HELD_VECTORS = KILN_NVFP4_BLOCK / KILN_VECTOR };

/* A block of 16 columns as it is loaded. */
typedef struct kiln_codes_held_block {
    kiln_vector vectors[KILN_HELD_VECTORS];
} kiln_codes_held_block;

/* The greatest magnitudes of warps. */
typedef struct kiln_codes_held_exchange {
    uint32_t greatest[KILN_SILU_MUL_MOST / KILN_SUBGROUP];
} kiln_codes_held_exchange;

/* kiln_codes_place_of there. */
KILN_INLINE kiln_codes_place kiln_codes_place_of_held(const kiln_codes_args *args, bool of_block) {
    const uint32_t lanes_log2 = args->shape.lanes_log2;
    kiln_codes_place p;
    p.row = (uint32_t)kiln_block();
    p.lane = kiln_thread();
    p.lanes = blockDim.x;
    if (!of_block) {
        p.row = (p.row << (KILN_BLOCK_LOG2 - lanes_log2)) + (kiln_thread() >> lanes_log2);
        p.lanes = 1u << lanes_log2;
        p.lane &= p.lanes - 1;
    }
    p.inside = p.row < (uint64_t)args->rows;
    p.beyond = p.row >= (uint64_t)args->shape.rows;
    return p;
}

/* Where a thread reads its next block, and how many of the row's blocks are left from there on. */
typedef struct kiln_codes_held_cursor {
    const kiln_element *from;
    int32_t left;
} kiln_codes_held_cursor;

KILN_INLINE kiln_codes_held_cursor kiln_codes_held_begin(const kiln_element *row, kiln_codes_place p, uint32_t blocks) {
    return {row + p.lane * KILN_NVFP4_BLOCK, (int32_t)(blocks - p.lane)};
}

KILN_INLINE void kiln_codes_held_load(kiln_codes_held_block *held, const kiln_element *from) {
    KILN_UNROLL
    for (int v = 0; v < KILN_HELD_VECTORS; v++)
        held->vectors[v] = kiln_vector_load(from + v * KILN_VECTOR);
}
KILN_INLINE void kiln_codes_held_clear(kiln_codes_held_block *held) {
    const uint32_t zero = kiln_ptx_zero();
    KILN_UNROLL
    for (int v = 0; v < KILN_HELD_VECTORS; v++)
        held->vectors[v] = {{zero, zero, zero, zero}};
}

/* A thread's next block of a row that so many threads share; zeros beyond it. */
KILN_INLINE kiln_codes_held_block kiln_codes_held_next(kiln_codes_held_cursor *cursor, uint32_t lanes) {
    kiln_codes_held_block held;
    if (cursor->left > 0)
        kiln_codes_held_load(&held, cursor->from);
    else
        kiln_codes_held_clear(&held);
    cursor->from += lanes * KILN_NVFP4_BLOCK;
    cursor->left -= (int32_t)lanes;
    return held;
}

KILN_INLINE void kiln_codes_held_values(float *values, const kiln_codes_held_block *held) {
    KILN_UNROLL
    for (int v = 0; v < KILN_HELD_VECTORS; v++)
        kiln_vector_values(values + v * KILN_VECTOR, held->vectors[v]);
}

/* The greatest magnitude in a row. */
KILN_INLINE float kiln_codes_held_row_greatest(float value, kiln_codes_held_exchange *exchange, uint32_t lanes,
                                               bool of_block) {
    if (!of_block) {
        KILN_LOOP
        for (uint32_t mask = lanes / 2; mask; mask /= 2)
            value = kiln_fast_max(value, kiln_shuffle_xor(value, mask));
        return value;
    }
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP, greatest = kiln_sm90a_warp_greatest(kiln_bits(value));
    if (lane == 0) exchange->greatest[kiln_thread() / KILN_SUBGROUP] = greatest;
    kiln_barrier();
    return kiln_float(kiln_sm90a_warp_greatest(exchange->greatest[lane < lanes / KILN_SUBGROUP ? lane : 0]));
}

/* kiln_nvfp4_block_scale where encode is at least 2^-116, whereby infinity's scale is the greatest. */
KILN_INLINE uint32_t kiln_codes_held_scale(float greatest, float encode) {
#if KILN_E4M3_INSTRUCTION
    const float sixth = 1.0f / KILN_E2M1_GREATEST, finite = kiln_fast_min(greatest, 0x1.fffffep127f);
    const float quotient = finite * sixth;
    return kiln_sm89_cvt_e4m3_f32(KILN_FMA(KILN_FMA(-KILN_E2M1_GREATEST, quotient, finite), sixth, quotient) * encode);
#else
    return kiln_nvfp4_scale_of(greatest, encode);
#endif
}

/* Where a thread's first scale is, and how far its next one is from there. */
KILN_INLINE uint8_t *kiln_codes_held_scales(const kiln_codes_args *args, kiln_codes_place p) {
    const uint32_t blocks = (uint32_t)args->scale_cols;
    return (uint8_t *)args->scales +
           (args->swizzled ? kiln_nvfp4_swizzled(p.row, p.lane, blocks) : p.row * (uint64_t)blocks + p.lane);
}
KILN_INLINE uint32_t kiln_codes_held_step(const kiln_codes_args *args, uint32_t lanes) {
    return args->swizzled ? lanes / 4 * 512 : lanes;
}

/* Writes a row of scales alone, beyond the last of the tensor. */
KILN_INLINE void kiln_codes_held_fill(const kiln_codes_args *args, kiln_codes_place p) {
    uint8_t *scales = kiln_codes_held_scales(args, p);
    const uint32_t step = kiln_codes_held_step(args, p.lanes);
    KILN_LOOP
    for (uint32_t block = p.lane; block < (uint32_t)args->scale_cols; block += p.lanes, scales += step)
        *scales = 0;
}

/* Writes a thread's COUNT blocks of a row in NVFP4, of which the first `own` blocks are the row's: zeros, or NaN in a
 * row of NaN, are what values may have beyond them. The values are lost. All threads of the block call this. */
template <int COUNT>
KILN_INLINE void kiln_codes_held_put(const kiln_codes_args *args, kiln_codes_place p, bool of_block, uint32_t own,
                                     float (*values)[KILN_NVFP4_BLOCK], kiln_codes_held_exchange *exchange) {
    const uint32_t lanes = p.lanes;
    uint8_t *scales = kiln_codes_held_scales(args, p);
    const uint32_t step = kiln_codes_held_step(args, lanes);
    float greatest[COUNT], of_row = 0.0f;
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++)
        greatest[i] = kiln_nvfp4_block_greatest(values[i]);
    KILN_UNROLL
    for (int i = 0; i < COUNT; i += 2) {
#if KILN_E2M1_INSTRUCTION
        of_row = kiln_sm100f_greatest_f32(of_row, greatest[i], greatest[i + 1]);
#else
        of_row = kiln_fast_max(greatest[i], kiln_fast_max(greatest[i + 1], of_row));
#endif
    }
    if (kiln_codes_of_row(args)) of_row = kiln_codes_held_row_greatest(of_row, exchange, lanes, of_block);
    const float scale = args->static_scale != 0.0f ? args->static_scale : kiln_nvfp4_global_quickly(of_row);
    const float encode = kiln_nvfp4_encode_quickly(scale);
    uint8_t *codes = args->codes + p.row * (uint64_t)args->codes_stride + p.lane * KILN_NVFP4_BLOCK_BYTES;
    int32_t left = (int32_t)(own - p.lane);
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t number = kiln_codes_held_scale(greatest[i], encode);
        const float factor = kiln_nvfp4_factor_quickly(number, encode);
        const kiln_eight_bytes words = kiln_nvfp4_block_codes(values[i], greatest[i], factor);
        if (left > 0) {
            *(kiln_eight_bytes *)codes = words;
            *scales = (uint8_t)number;
        } else if (!p.beyond && p.lane + i * lanes < (uint32_t)args->scale_cols) { /* zeros after a row of NaN, too */
            if (p.inside) *(kiln_eight_bytes *)codes = {};
            *scales = 0;
        }
        left -= (int32_t)lanes;
        codes += lanes * KILN_NVFP4_BLOCK_BYTES;
        scales += step;
    }
    if (args->global_scale && p.inside && p.lane == 0) args->global_scale[p.row] = scale;
}

#endif
