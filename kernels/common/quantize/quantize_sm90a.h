/* quantize_fp8 and quantize_int8 on sm_90a, and on sm_100 and later, for aligned rows of 16-bit elements whose scales
 * are computed, one for each row or one for each 128 of its columns: a thread loads all its vectors before it looks at
 * the first, keeps them until their scale is known, and finds magnitudes two at a time. The includer defines
 * KILN_QUANTIZE_EIGHT as for quantize_gpu.h, and KILN_QUANTIZE_BOUNDED likewise for numbers of which no finite one is
 * beyond the bound by more than rounding. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_SM90A_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_SM90A_H

#include "kernels/arch/sm90a.h"
#include "kernels/common/device.h"
#include "kernels/common/math/pairs.h"
#include "kernels/common/quantize/codes_sm90a.h"
#include "kernels/common/quantize/quantize_gpu.h"

/* The vectors of a row that threads have at least: 2, or 4 where the includer says so for the size of its images, those
 * beyond the row being zeros. */
#if !defined(KILN_QUANTIZE_LEAST)
#define KILN_QUANTIZE_LEAST 2
#endif

/* The pair of the greatest magnitudes of a vector's elements of even and of odd number. */
KILN_INLINE uint32_t kiln_vector_greatest(kiln_vector v) {
    return kiln_pair_greater(kiln_pair_greater(v.words[0], v.words[1]), kiln_pair_greater(v.words[2], v.words[3]));
}

/* The greater magnitude of a pair; 0 for NaN. */
KILN_INLINE float kiln_pair_greatest(uint32_t pair) {
    float values[2];
    kiln_pair_values(values, pair);
    return kiln_fast_max(__builtin_fabsf(values[1]), kiln_fast_max(__builtin_fabsf(values[0]), 0.0f));
}

/* The greatest magnitude in a block. exchange is shared memory that nothing else uses. */
KILN_INLINE float kiln_block_greatest(float value, uint32_t *exchange) {
    uint32_t greatest = kiln_sm90a_warp_greatest(kiln_bits(value));
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = greatest;
    kiln_barrier();
    greatest = 0;
    KILN_UNROLL
    for (int i = 0; i < KILN_SUBGROUPS; i++)
        greatest = exchange[i] > greatest ? exchange[i] : greatest;
    return kiln_float(greatest);
}

/* kiln_quantize_put of whole vectors over the scale of their own elements. */
KILN_INLINE void kiln_quantize_put_bounded(uint8_t *codes, kiln_vector vector, float factor, float smax) {
    float values[KILN_VECTOR];
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] *= factor;
    *(kiln_eight_bytes *)codes = KILN_QUANTIZE_BOUNDED(values, smax);
}

/* A computed scale, and 1 over it. */
KILN_INLINE kiln_scale_factor kiln_quantize_scale_factor(const kiln_quantize_args *args, float greatest) {
    kiln_scale_factor s = kiln_scale_quickly(greatest, args->smax);
    if (s.scale == 0.0f) {
        s.scale = kiln_quantize_scale(args, greatest);
        s.factor = 1.0f / s.scale;
    }
    return s;
}

/* A row that a block shares, COUNT vectors for each thread. */
template <int COUNT> KILN_INLINE void kiln_quantize_row(const kiln_quantize_args *args, uint32_t *exchange) {
    const uint32_t whole = (uint32_t)args->shape.cols / KILN_VECTOR, thread = kiln_thread();
    const uint64_t row = kiln_block();
    if (row >= (uint64_t)args->shape.rows) return;
    const kiln_element *x = (const kiln_element *)args->x + row * (uint64_t)args->x_stride + thread * KILN_VECTOR;
    kiln_vector vectors[COUNT];
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++) {
        vectors[i] = kiln_vector{};
        if (thread + i * KILN_BLOCK < whole) vectors[i] = kiln_vector_load(x + i * KILN_BLOCK * KILN_VECTOR);
    }
    uint32_t pair = kiln_vector_greatest(vectors[0]);
    KILN_UNROLL
    for (int i = 1; i < COUNT; i++)
        pair = kiln_pair_greater(pair, kiln_vector_greatest(vectors[i]));
    const float greatest = kiln_block_greatest(kiln_pair_greatest(pair), exchange);
    const kiln_scale_factor own = kiln_quantize_scale_factor(args, greatest);
    uint8_t *codes = (uint8_t *)args->codes + row * (uint64_t)args->codes_stride + thread * KILN_VECTOR;
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++) {
        if (thread + i * KILN_BLOCK < whole)
            kiln_quantize_put_bounded(codes + i * KILN_BLOCK * KILN_VECTOR, vectors[i], own.factor, args->smax);
    }
    if (args->scales && thread == 0) args->scales[row] = own.scale;
}

/* Groups of 128 columns, which 16 threads share, of COUNT rows for each thread. Thread n of 16 finds the scale of row
 * n % 4 and tells the others. */
template <int COUNT> KILN_INLINE void kiln_quantize_groups(const kiln_quantize_args *args) {
    static_assert(COUNT == 4, "one scale for each of 4 threads");
    enum { LANES = KILN_QUANTIZE_GROUP / KILN_VECTOR, STEP = KILN_BLOCK / LANES };
    const uint32_t lane = kiln_thread() % LANES;
    const uint64_t first = kiln_block() * (COUNT * STEP) + kiln_thread() / LANES, rows = (uint64_t)args->shape.rows;
    const uint32_t col = kiln_tile() * KILN_QUANTIZE_GROUP + lane * KILN_VECTOR;
    const bool inside = col < (uint32_t)args->shape.cols;
    const kiln_element *x = (const kiln_element *)args->x + first * (uint64_t)args->x_stride + col;
    const uint64_t apart = STEP * (uint64_t)args->x_stride;
    kiln_vector vectors[COUNT];
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++) {
        vectors[i] = kiln_vector{};
        if (inside && first + i * STEP < rows) vectors[i] = kiln_vector_load(x);
        x += apart;
    }
    uint32_t pairs[COUNT], halves[2];
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++)
        pairs[i] = kiln_vector_greatest(vectors[i]);
    KILN_UNROLL
    for (int i = 0; i < 2; i++) /* rows i and i + 2 */
        halves[i] =
            kiln_pair_greater(__byte_perm(pairs[i], pairs[i + 2], 0x5410), __byte_perm(pairs[i], pairs[i + 2], 0x7632));
    uint32_t pair = lane & 1 ? halves[1] : halves[0], other = lane & 1 ? halves[0] : halves[1];
    pair = kiln_pair_greater(pair, __shfl_xor_sync(0xffffffffu, other, 1));
    KILN_UNROLL
    for (uint32_t mask = 2; mask < LANES; mask *= 2)
        pair = kiln_pair_greater(pair, __shfl_xor_sync(0xffffffffu, pair, mask));
    const float greatest = kiln_pair_greatest(lane & 2 ? pair >> 16 : pair & 0xffffu);
    const kiln_scale_factor own = kiln_quantize_scale_factor(args, greatest);
    uint8_t *codes = (uint8_t *)args->codes + first * (uint64_t)args->codes_stride + col;
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++) {
        const float shared = __shfl_sync(0xffffffffu, own.factor, i, COUNT);
        if (inside && first + i * STEP < rows) kiln_quantize_put_bounded(codes, vectors[i], shared, args->smax);
        codes += STEP * (uint64_t)args->codes_stride;
    }
    const uint64_t row = first + lane * STEP;
    if (args->scales && lane < COUNT && row < rows)
        args->scales[row * (uint64_t)args->scale_cols + kiln_tile()] = own.scale;
}

/* Returns whether it did the call. */
KILN_INLINE bool kiln_quantize_held(const kiln_quantize_args *args, uint32_t *exchange) {
    const uint32_t cols = (uint32_t)args->shape.cols;
    if (args->source != KILN_QUANTIZE_COMPUTED || args->rows_log2 || !args->shape.wide || cols % KILN_VECTOR)
        return false;
    if (args->grouped) {
        if (args->block_rows != KILN_QUANTIZE_TIMES * KILN_BLOCK * KILN_VECTOR / KILN_QUANTIZE_GROUP) return false;
        kiln_quantize_groups<KILN_QUANTIZE_TIMES>(args);
        return true;
    }
    if (args->shape.lanes_log2 != KILN_BLOCK_LOG2 || cols > 4 * KILN_BLOCK * KILN_VECTOR) return false;
    if (cols <= KILN_QUANTIZE_LEAST * KILN_BLOCK * KILN_VECTOR)
        kiln_quantize_row<KILN_QUANTIZE_LEAST>(args, exchange);
    else
        kiln_quantize_row<4>(args, exchange);
    return true;
}

#endif
