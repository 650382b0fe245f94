/* What kernels that quantise their own result share from sm_80 on: a row's eights in registers, as pairs of f32 that
 * one instruction computes with where the device has it, become codes of 8 bits. Results are those of single numbers.
 */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_EIGHTS_H
#define KILN_KERNELS_COMMON_QUANTIZE_EIGHTS_H

#include "kernels/arch/ptx.h"
#include "kernels/arch/sm80.h"
#include "kernels/arch/sm86.h"
#include "kernels/common/device.h"
#include "kernels/common/formats/e4m3_finite.h"
#include "kernels/common/math/packed.h"
#include "kernels/common/quantize/codes_sm90a.h"

enum { KILN_EIGHT_PAIRS = KILN_EIGHT / 2 };

/* An eight as it is loaded; pairs of f32 are loaded as pairs. */
typedef struct kiln_eight_loaded {
#if defined(KILN_PART_f32)
    struct __attribute__((aligned(16))) {
        kiln_packed low, high;
    } halves[2];
#else
    kiln_vector vector;
#endif
} kiln_eight_loaded;

KILN_INLINE kiln_eight_loaded kiln_eight_loaded_from(const kiln_element *source) {
    return *(const kiln_eight_loaded *)source;
}

KILN_INLINE void kiln_eight_pairs(kiln_packed *pairs, const kiln_eight_loaded *loaded) {
#if defined(KILN_PART_f32)
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        pairs[2 * i] = loaded->halves[i].low;
        pairs[2 * i + 1] = loaded->halves[i].high;
    }
#else
    kiln_vector_pairs(pairs, loaded->vector);
#endif
}

KILN_INLINE void kiln_eight_pairs_store(kiln_element *target, const kiln_packed *pairs) {
#if defined(KILN_PART_f32)
    *(kiln_eight_loaded *)target = {{{pairs[0], pairs[1]}, {pairs[2], pairs[3]}}};
#else
    kiln_vector_store(target, kiln_vector_of_pairs(pairs));
#endif
}

KILN_INLINE void kiln_eight_unpack(float *values, const kiln_packed *pairs) {
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT_PAIRS; i++)
        kiln_unpack(&values[2 * i], pairs[i]);
}

/* Multiplies an eight by a factor, given twice, or by another one. */
KILN_INLINE void kiln_eight_scale(kiln_packed *pairs, kiln_packed factor) {
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT_PAIRS; i++)
        pairs[i] = kiln_packed_mul(pairs[i], factor);
}
KILN_INLINE void kiln_eight_multiply(kiln_packed *pairs, const kiln_packed *factors) {
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT_PAIRS; i++)
        pairs[i] = kiln_packed_mul(pairs[i], factors[i]);
}

/* The greater of a magnitude and an eight's, or NaN if there is one. From sm_86 on it has some sign. */
KILN_INLINE float kiln_eight_greater_or_nan(const kiln_packed *pairs, float greatest) {
    float values[KILN_EIGHT];
    kiln_eight_unpack(values, pairs);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
#if __CUDA_ARCH__ >= 860
        greatest = kiln_sm86_greater_or_nan_f32(greatest, values[i]);
#else
        greatest = kiln_sm80_greater_or_nan_f32(greatest, __builtin_fabsf(values[i]));
#endif
    return greatest;
}

/* Whether a thread has its i-th eight. FULL: every thread has COUNT. */
template <bool FULL> KILN_INLINE bool kiln_eight_is(uint32_t i, uint32_t eights) {
    return FULL || kiln_thread() + i * KILN_BLOCK < eights;
}

/* kiln_codes_block_sum, and kiln_codes_block_greatest. */
KILN_INLINE float kiln_eights_block_sum(float sum, kiln_codes_exchange *exchange) {
    sum += kiln_ptx_shfl_bfly<1>(sum);
    sum += kiln_ptx_shfl_bfly<2>(sum);
    sum += kiln_ptx_shfl_bfly<4>(sum);
    sum += kiln_ptx_shfl_bfly<8>(sum);
    sum += kiln_ptx_shfl_bfly<16>(sum);
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange->sums[kiln_thread() / KILN_SUBGROUP] = sum;
    kiln_barrier();
    sum = exchange->sums[0];
    KILN_UNROLL
    for (int i = 1; i < KILN_SUBGROUPS; i++)
        sum += exchange->sums[i];
    return sum;
}
KILN_INLINE float kiln_eights_block_greatest(float magnitude, kiln_codes_exchange *exchange) {
    const uint32_t greatest = kiln_sm90a_warp_greatest(kiln_bits(magnitude));
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange->greatest[kiln_thread() / KILN_SUBGROUP] = greatest;
    kiln_barrier();
    return kiln_float(kiln_sm90a_warp_greatest(exchange->greatest[kiln_thread() % KILN_SUBGROUPS]));
}

/* kiln_codes_scale_factor where smax is the format's greatest number. */
KILN_INLINE kiln_scale_factor kiln_eights_scale_factor(const kiln_codes_args *args, float greatest, float most) {
    const float start = 1.0f / most, near = greatest * start;
    kiln_scale_factor s;
    s.scale = KILN_FMA(KILN_FMA(-most, near, greatest), start, near);
    s.factor = kiln_reciprocal_step(s.scale, kiln_fast_reciprocal(s.scale));
    if (!(greatest >= 0x1p-64f && greatest <= 0x1p64f) || !(~kiln_bits(s.scale) & 0x7fffffu)) {
        s.scale = kiln_codes_scale(args, greatest);
        s.factor = 1.0f / s.scale;
    }
    return s;
}

/* The greatest number of a format. */
KILN_INLINE float kiln_eights_most(kiln_codes_format format) {
    return format == KILN_CODES_E4M3 ? KILN_E4M3_GREATEST : 127.0f;
}

/* What the factor of a row's codes is multiplied by beforehand. */
KILN_INLINE float kiln_eights_unit(kiln_codes_format format) {
    return format == KILN_CODES_E4M3 ? KILN_E4M3_UNIT : 1.0f;
}

/* Whether kiln_eight_codes_finite is for a row of that greatest magnitude, which is finite then and whose factor, times
 * the unit, is a normal number. */
KILN_INLINE bool kiln_eights_finite(float greatest, kiln_codes_format format) {
    return greatest < (kiln_eights_unit(format) < 1.0f ? 0x1p120f : KILN_INFINITY);
}

/* The codes of an eight of such a row, by whose scale the factor divides. */
KILN_INLINE kiln_eight_bytes kiln_eight_codes_finite(const kiln_packed *pairs, float factor, kiln_codes_format format) {
    factor *= kiln_eights_unit(format);
    const kiln_packed both = kiln_pack(factor, factor), one = kiln_pack(0x1.8p23f, 0x1.8p23f);
    kiln_packed products[KILN_EIGHT_PAIRS];
    float scaled[KILN_EIGHT];
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT_PAIRS; i++) {
        products[i] = kiln_packed_mul(pairs[i], both);
        if (format == KILN_CODES_INT8) products[i] = kiln_packed_add(products[i], one); /* code_words.h */
    }
    kiln_eight_unpack(scaled, products);
    kiln_eight_bytes bytes;
    KILN_UNROLL
    for (int w = 0; w < 2; w++)
        bytes.words[w] =
            format == KILN_CODES_E4M3 ? kiln_e4m3_finite(scaled + 4 * w) : kiln_float_bytes(scaled + 4 * w, 1, 0);
    return bytes;
}

/* The same of any row. */
KILN_INLINE kiln_eight_bytes kiln_eight_codes_special(const kiln_packed *pairs, float factor,
                                                      kiln_codes_format format) {
    float singles[KILN_EIGHT];
    kiln_eight_unpack(singles, pairs);
    KILN_UNROLL
    for (int e = 0; e < KILN_EIGHT; e++)
        singles[e] *= factor;
    return format == KILN_CODES_E4M3 ? kiln_e4m3_eight(singles, KILN_E4M3_GREATEST) : kiln_int8_eight(singles, 127.0f);
}

/* Writes the codes of COUNT eights of a thread, KILN_BLOCK apart from each other, with their row's computed scale.
 * greatest: the row's, for which kiln_eights_finite is true. */
template <int COUNT, bool FULL>
KILN_INLINE void kiln_eights_put_finite(const kiln_codes_args *args, kiln_codes_place p, uint32_t eights,
                                        const kiln_packed (*values)[KILN_EIGHT_PAIRS], float greatest,
                                        kiln_codes_format format) {
    const kiln_scale_factor s = kiln_eights_scale_factor(args, greatest, kiln_eights_most(format));
    if (args->scales && p.lane == 0) ((float *)args->scales)[p.row] = s.scale;
    uint8_t *codes = args->codes + p.row * (uint64_t)args->codes_stride + p.lane * KILN_EIGHT;
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++) {
        if (!kiln_eight_is<FULL>(i, eights)) break;
        *(kiln_eight_bytes *)(codes + i * KILN_BLOCK * KILN_EIGHT) =
            kiln_eight_codes_finite(values[i], s.factor, format);
    }
}

/* Moves all eights one place to the front, and the first one to the end. */
template <int COUNT> KILN_INLINE void kiln_eights_turn(kiln_packed (*values)[KILN_EIGHT_PAIRS]) {
    KILN_UNROLL
    for (int e = 0; e < KILN_EIGHT_PAIRS; e++) {
        const kiln_packed first = values[0][e];
        KILN_UNROLL
        for (int i = 0; i + 1 < COUNT; i++)
            values[i][e] = values[i + 1][e];
        values[COUNT - 1][e] = first;
    }
}

/* The same of any row. In loops, for the size of the image: eights come to the first place one after the other. */
template <int COUNT>
KILN_INLINE void kiln_eights_put_special(const kiln_codes_args *args, kiln_codes_place p, uint32_t eights,
                                         kiln_packed (*values)[KILN_EIGHT_PAIRS], kiln_codes_exchange *exchange,
                                         kiln_codes_format format) {
    float singles[KILN_EIGHT], greatest = 0.0f;
    KILN_LOOP
    for (uint32_t i = 0; i < COUNT; i++, kiln_eights_turn<COUNT>(values)) {
        kiln_eight_unpack(singles, values[0]);
        if (p.lane + i * KILN_BLOCK < eights) greatest = kiln_eight_greatest(singles, greatest);
    }
    kiln_barrier(); /* all have read what was exchanged before */
    greatest = kiln_eights_block_greatest(greatest, exchange);
    const kiln_scale_factor s = kiln_eights_scale_factor(args, greatest, kiln_eights_most(format));
    if (args->scales && p.lane == 0) ((float *)args->scales)[p.row] = s.scale;
    uint8_t *codes = args->codes + p.row * (uint64_t)args->codes_stride + p.lane * KILN_EIGHT;
    KILN_LOOP
    for (uint32_t i = 0; i < COUNT; i++, kiln_eights_turn<COUNT>(values))
        if (p.lane + i * KILN_BLOCK < eights)
            *(kiln_eight_bytes *)(codes + i * KILN_BLOCK * KILN_EIGHT) =
                kiln_eight_codes_special(values[0], s.factor, format);
}

/* Whether kiln_eights_put is for a call: each row has a computed scale, and smax is the format's greatest number. */
KILN_INLINE bool kiln_eights_usual(const kiln_codes_args *args, kiln_codes_format format) {
    return kiln_codes_regular(args) && kiln_codes_of_row(args) && args->smax == kiln_eights_most(format);
}

/* Writes the codes of COUNT eights of a thread, KILN_BLOCK apart from each other, and their row's scale. */
template <int COUNT, bool FULL>
KILN_INLINE void kiln_eights_put(const kiln_codes_args *args, kiln_codes_place p, uint32_t eights,
                                 kiln_packed (*values)[KILN_EIGHT_PAIRS], kiln_codes_exchange *exchange,
                                 kiln_codes_format format) {
    float greatest = 0.0f;
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++)
        if (kiln_eight_is<FULL>(i, eights)) greatest = kiln_eight_greater_or_nan(values[i], greatest);
    greatest = kiln_eights_block_greatest(__builtin_fabsf(greatest), exchange); /* NaN has the greatest bits */
    if (kiln_eights_finite(greatest, format))
        kiln_eights_put_finite<COUNT, FULL>(args, p, eights, values, greatest, format);
    else
        kiln_eights_put_special<COUNT>(args, p, eights, values, exchange, format);
}

#endif
