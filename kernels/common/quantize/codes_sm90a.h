/* What kernels that quantise their own result share on sm_90a: a row's eights in registers become codes of 8 bits. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_SM90A_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_SM90A_H

#include "kernels/arch/sm90a.h"
#include "kernels/common/device.h"
#include "kernels/common/math/reciprocal_step.h"
#include "kernels/common/quantize/codes_gpu.h"

/* What the warps of a block tell each other: the sum of a row, then its greatest magnitude. */
typedef struct kiln_codes_exchange {
    float sums[KILN_SUBGROUPS];
    uint32_t greatest[KILN_SUBGROUPS];
} __attribute__((aligned(16))) kiln_codes_exchange;

/* kiln_reduce over a block, for the first sum of a kernel. */
KILN_INLINE float kiln_codes_block_sum(float value, kiln_codes_exchange *exchange) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
        value += kiln_shuffle_xor(value, mask);
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange->sums[kiln_thread() / KILN_SUBGROUP] = value;
    kiln_barrier();
    value = exchange->sums[0];
    KILN_UNROLL
    for (int i = 1; i < KILN_SUBGROUPS; i++)
        value += exchange->sums[i];
    return value;
}

/* The greatest magnitude in a block, for the first of a kernel. */
KILN_INLINE float kiln_codes_block_greatest(float value, kiln_codes_exchange *exchange) {
    uint32_t greatest = kiln_sm90a_warp_greatest(kiln_bits(value));
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange->greatest[kiln_thread() / KILN_SUBGROUP] = greatest;
    kiln_barrier();
    greatest = exchange->greatest[0];
    KILN_UNROLL
    for (int i = 1; i < KILN_SUBGROUPS; i++)
        greatest = exchange->greatest[i] > greatest ? exchange->greatest[i] : greatest;
    return kiln_float(greatest);
}

/* A scale and the factor of elements. */
typedef struct kiln_scale_factor {
    float scale, factor;
} kiln_scale_factor;

/* A computed scale, greatest / smax, and its reciprocal as IEEE division has them, without its slow paths where they
 * cannot be needed; elsewhere the scale is 0. A quotient by a number of at most 12 significant bits is at least 2^-13
 * ulp from where rounding changes, and one step with a reciprocal that is an ulp off comes 2^-20 ulp close. */
KILN_INLINE kiln_scale_factor kiln_scale_quickly(float greatest, float smax) {
    const float start = kiln_fast_reciprocal(smax), near = greatest * start;
    kiln_scale_factor s;
    s.scale = KILN_FMA(KILN_FMA(-smax, near, greatest), start, near);
    s.factor = kiln_reciprocal_step(s.scale, kiln_fast_reciprocal(s.scale));
    const bool usual =
        greatest >= 0x1p-64f && greatest <= 0x1p64f && !(kiln_bits(smax) & 0xfffu) && (~kiln_bits(s.scale) & 0x7fffffu);
    if (!usual) s.scale = 0.0f;
    return s;
}

/* kiln_codes_scale, and 1 over it. */
KILN_INLINE kiln_scale_factor kiln_codes_scale_factor(const kiln_codes_args *args, float greatest) {
    kiln_scale_factor s = kiln_scale_quickly(greatest, args->smax);
    if (s.scale == 0.0f || args->static_scale != 0.0f) {
        s.scale = kiln_codes_scale(args, greatest);
        s.factor = 1.0f / s.scale;
    }
    return s;
}

/* Whether a block shares each row, and all eights are whole and aligned. */
KILN_INLINE bool kiln_codes_regular(const kiln_codes_args *args) {
    return args->shape.wide && args->shape.lanes_log2 == KILN_BLOCK_LOG2 &&
           (uint32_t)args->shape.cols % KILN_EIGHT == 0;
}

/* kiln_codes_place_of there: a row is a block's, so that addresses of rows are computed once for a warp. */
KILN_INLINE kiln_codes_place kiln_codes_place_of_block(const kiln_codes_args *args) {
    kiln_codes_place p;
    p.row = kiln_block();
    p.lane = kiln_thread();
    p.lanes = KILN_BLOCK;
    p.inside = p.row < (uint64_t)args->rows;
    p.beyond = p.row >= (uint64_t)args->shape.rows;
    return p;
}

/* kiln_codes_row_factor of such a place. */
KILN_INLINE float kiln_codes_block_factor(const kiln_codes_args *args, kiln_codes_place p, float greatest) {
    if (args->grouped) return 0.0f;
    const kiln_scale_factor s = kiln_codes_scale_factor(args, greatest);
    if (args->scales && p.lane == 0) ((float *)args->scales)[p.row] = s.scale;
    return s.factor;
}

/* Two eights from `first` on as they are loaded; zeros beyond the row. */
typedef struct kiln_codes_pair {
    kiln_vector vectors[2];
} kiln_codes_pair;

KILN_INLINE kiln_codes_pair kiln_codes_pair_load(const kiln_element *row, uint32_t first, uint32_t eights) {
    kiln_codes_pair pair;
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        pair.vectors[i] = kiln_vector{};
        if (first + i * KILN_BLOCK < eights)
            pair.vectors[i] = kiln_vector_load(row + (first + i * KILN_BLOCK) * KILN_EIGHT);
    }
    return pair;
}

/* The int8 codes of eight values, of which no finite one is beyond 127 by more than rounding. */
KILN_INLINE kiln_eight_bytes kiln_int8_eight_bounded(float *values) {
    kiln_eight_bytes bytes = {{kiln_int8_word(values), kiln_int8_word(values + 4)}};
    float special = 0.0f;
    KILN_UNROLL
    for (int i = 0; i < 8; i++)
        special = KILN_FMA(values[i], 0.0f, special);
    return special == special ? bytes : kiln_int8_eight(values, 127.0f);
}

/* Stores the 8-bit codes of an eight. */
KILN_INLINE void kiln_codes_store(const kiln_codes_args *args, uint8_t *codes, float *values, float factor,
                                  kiln_codes_format format) {
    kiln_eight_bytes bytes;
    KILN_UNROLL
    for (int e = 0; e < KILN_EIGHT; e++)
        values[e] *= factor;
    if (format == KILN_CODES_E4M3)
        bytes = kiln_e4m3_eight(values, args->smax);
    else if (args->smax == 127.0f && args->static_scale == 0.0f)
        bytes = kiln_int8_eight_bounded(values);
    else
        bytes = kiln_int8_eight(values, args->smax);
    *(kiln_eight_bytes *)codes = bytes;
}

/* The factors of COUNT eights of a thread that belong to groups of 128 columns, each of which 16 threads share: of
 * every COUNT threads each finds the scale of one of them and tells the others. first: the thread's first eight. The
 * scales are written. */
template <int COUNT>
KILN_INLINE void kiln_codes_group_factors(const kiln_codes_args *args, kiln_codes_place p, uint32_t first,
                                          uint32_t eights, const float (*values)[KILN_EIGHT], float *factors) {
    float greatest[COUNT];
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++)
        greatest[i] = kiln_eight_greatest(values[i], 0.0f);
    KILN_UNROLL
    for (int half = COUNT / 2; half; half /= 2) { /* a thread keeps the half that its lane's bit says */
        KILN_UNROLL
        for (int i = 0; i < half; i++) {
            const bool upper = p.lane & half;
            const float mine = upper ? greatest[i + half] : greatest[i];
            const float other = upper ? greatest[i] : greatest[i + half];
            greatest[i] = kiln_fast_max(mine, kiln_shuffle_xor(other, half));
        }
    }
    KILN_UNROLL
    for (uint32_t mask = COUNT; mask < KILN_EIGHTS_GROUP; mask *= 2)
        greatest[0] = kiln_fast_max(greatest[0], kiln_shuffle_xor(greatest[0], mask));
    const kiln_scale_factor own = kiln_codes_scale_factor(args, greatest[0]);
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++)
        factors[i] = __shfl_sync(0xffffffffu, own.factor, i, COUNT);
    const uint32_t group = (first + p.lane % COUNT * KILN_BLOCK) / KILN_EIGHTS_GROUP;
    if (args->scales && p.lane % KILN_EIGHTS_GROUP < COUNT && group * KILN_EIGHTS_GROUP < eights)
        ((float *)args->scales)[p.row * (uint64_t)args->scale_cols + group] = own.scale;
}

/* Writes the codes of COUNT eights of a thread, KILN_BLOCK apart from each other, and the scales of their groups.
 * factor is what kiln_codes_block_factor returned; grouped says whether they have groups, as args does. */
template <int COUNT>
KILN_INLINE void kiln_codes_put(const kiln_codes_args *args, kiln_codes_place p, uint32_t first, uint32_t eights,
                                float (*values)[KILN_EIGHT], float factor, kiln_codes_format format, bool grouped) {
    float factors[COUNT];
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++)
        factors[i] = factor;
    if (grouped) kiln_codes_group_factors<COUNT>(args, p, first, eights, values, factors);
    uint8_t *codes = args->codes + p.row * (uint64_t)args->codes_stride + (uint64_t)first * KILN_EIGHT;
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++)
        if (first + i * KILN_BLOCK < eights)
            kiln_codes_store(args, codes + i * KILN_BLOCK * KILN_EIGHT, values[i], factors[i], format);
}

#endif
