/* What device kernels share that have four eights of a row in the registers of a thread until they are written, as
 * codes with the computed scale of the row whose smax is the format's greatest number: without bounds, and without
 * questions about each. Rows are aligned and of whole eights, of which all threads of a row together have at least one
 * and which they take in turn; a thread that has fewer than four has the row's last one again instead, which changes no
 * greatest magnitude. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_FOUR_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_FOUR_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/formats/e4m3_finite.h"
#include "kernels/common/quantize/codes_gpu.h"
#include "kernels/common/reduce/row_greatest.h"

enum { KILN_FOUR = 4 };

/* The columns at which a thread's eights begin. */
KILN_INLINE void kiln_four_columns(const kiln_codes_args *args, kiln_codes_place p, uint32_t *cols) {
    const uint32_t last = (uint32_t)args->shape.cols - KILN_EIGHT;
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_FOUR; i++) {
        const uint32_t col = (p.lane + i * p.lanes) * KILN_EIGHT;
        cols[i] = col < last ? col : last;
    }
}

/* The row that a thread reads: the last one instead of those beyond it. */
KILN_INLINE uint64_t kiln_four_row(const kiln_codes_args *args, kiln_codes_place p) {
    return p.inside ? p.row : (uint64_t)args->rows - 1;
}

/* Moves all values one place to the front, and puts one at the end. */
KILN_INLINE void kiln_four_shift(float (*values)[KILN_EIGHT], float last) {
    KILN_UNROLL
    for (int i = 0; i + 1 < KILN_FOUR * KILN_EIGHT; i++)
        values[i / KILN_EIGHT][i % KILN_EIGHT] = values[(i + 1) / KILN_EIGHT][(i + 1) % KILN_EIGHT];
    values[KILN_FOUR - 1][KILN_EIGHT - 1] = last;
}

/* The greatest magnitude of an eight of results of arithmetic or of conversion, by an instruction for two of them.
 * NaN is not greater. */
KILN_INLINE float kiln_four_greatest(const float *values, float greatest) {
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i += 2)
        greatest =
            __builtin_fmaxf(__builtin_fmaxf(greatest, __builtin_fabsf(values[i])), __builtin_fabsf(values[i + 1]));
    return greatest;
}

/* The number that is the unit of the values that become codes. */
#define KILN_FOUR_UNIT(format) ((format) == KILN_CODES_E4M3 ? KILN_E4M3_UNIT : 1.0f)

/* Values that are codes' but for infinities and NaN, limited; 480 has the code of NaN. In a loop, for the size of the
 * image: they are shifted in through the last place. */
KILN_INLINE void kiln_four_limit(float (*values)[KILN_EIGHT], kiln_codes_format format) {
    const float unit = KILN_FOUR_UNIT(format);
    const float greatest = format == KILN_CODES_E4M3 ? KILN_E4M3_GREATEST * unit : 127.0f;
    const float nan = format == KILN_CODES_E4M3 ? 480.0f * unit : 0.0f;
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_FOUR * KILN_EIGHT; i++)
        kiln_four_shift(values, values[0][0] == values[0][0] ? kiln_fast_clamp(values[0][0], greatest) : nan);
}

/* kiln_int8_word (code_words.h). */
KILN_INLINE uint32_t kiln_four_int8(const float *values) {
    const kiln_two one = kiln_two_of(0x1.8p23f, 0x1.8p23f);
    const kiln_two low = kiln_two_of(values[0], values[1]) + one, high = kiln_two_of(values[2], values[3]) + one;
    const uint32_t sums[4] = {kiln_bits(low.x), kiln_bits(low.y), kiln_bits(high.x), kiln_bits(high.y)};
    return kiln_bytes_of(sums, 0);
}

/* Writes a thread's eights, which are lost, and the scales. factor: kiln_codes_row_factor's. */
KILN_INLINE void kiln_four_put(const kiln_codes_args *args, kiln_codes_place p, float (*values)[KILN_EIGHT],
                               float factor, kiln_codes_format format) {
    const uint32_t own = p.inside ? (uint32_t)args->shape.cols / KILN_EIGHT : 0;
    factor *= KILN_FOUR_UNIT(format);
    kiln_two special = kiln_two_of(0.0f, 0.0f);
    KILN_UNROLL
    for (int i = 0; i < KILN_FOUR; i++) {
        KILN_UNROLL
        for (int e = 0; e < KILN_EIGHT; e += 2) {
            const kiln_two products = kiln_two_of(values[i][e], values[i][e + 1]) * factor;
            special = __builtin_elementwise_fma(products, (kiln_two)0.0f, special);
            values[i][e] = products.x;
            values[i][e + 1] = products.y;
        }
    }
    if (__builtin_isunordered(special.x, special.y)) kiln_four_limit(values, format);
    uint8_t *codes = args->codes + p.row * (uint64_t)args->codes_stride + p.lane * KILN_EIGHT;
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_FOUR; i++, codes += p.lanes * KILN_EIGHT) {
        kiln_eight_bytes bytes;
        KILN_UNROLL
        for (int w = 0; w < 2; w++)
            bytes.words[w] =
                format == KILN_CODES_E4M3 ? kiln_e4m3_finite(values[i] + 4 * w) : kiln_four_int8(values[i] + 4 * w);
        if (p.lane + i * p.lanes < own) *(kiln_eight_bytes *)codes = bytes;
    }
}

#endif
