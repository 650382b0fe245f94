/* What the device kernels share that quantise their own result to 8 bits. Rows of whole, aligned eights are processed
 * an eight at a time, in loops that ask for nothing else; others element by element, by the same threads and in the
 * same order, so that results do not depend on the alignment. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_ROWS_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_ROWS_GPU_H

#include "kernels/common/quantize/codes_four_gpu.h"

/* What a thread has of a row. */
typedef struct kiln_codes_share {
    uint32_t eights; /* of the row, the last of which may lack columns; 0 without a row */
    bool whole;      /* all eights of all rows are whole and aligned */
} kiln_codes_share;

KILN_INLINE kiln_codes_share kiln_codes_share_of(const kiln_codes_args *args, kiln_codes_place p) {
    kiln_codes_share s;
    s.eights = p.inside ? args->eights : 0;
    s.whole = args->shape.wide && (uint32_t)args->shape.cols % KILN_EIGHT == 0;
    return s;
}

/* The elements of a whole eight. */
KILN_INLINE void kiln_eight_read(float *values, const kiln_element *source) {
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i += KILN_VECTOR)
        kiln_vector_values(values + i, kiln_vector_load(source + i));
}

/* The loop over a thread's eights, and over the columns of an eight that its row has. */
#define KILN_FOR_EIGHTS(p, s, number, eight) \
    KILN_LOOP                                \
    for (uint32_t number = 0, eight = (p).lane; eight < (s).eights; number++, eight += (p).lanes)
#define KILN_FOR_COLUMNS(args, eight, col) \
    KILN_LOOP                              \
    for (uint32_t col = (eight)*KILN_EIGHT, kiln_end = kiln_eight_end(args, eight); col < kiln_end; col++)

KILN_INLINE uint32_t kiln_eight_end(const kiln_codes_args *args, uint32_t eight) {
    const uint32_t cols = (uint32_t)args->shape.cols, end = (eight + 1) * KILN_EIGHT;
    return end < cols ? end : cols;
}

/* The factor of the elements of a group, from the greatest magnitude of an eight of each of its threads, and its scale,
 * which is written. All threads call this. */
KILN_INLINE float kiln_codes_group_factor(const kiln_codes_args *args, kiln_codes_place p, uint32_t eight, bool present,
                                          float greatest) {
    const float scale = kiln_codes_scale(args, kiln_eights_greatest(greatest, KILN_EIGHTS_GROUP));
    if (args->scales && present && (eight & (KILN_EIGHTS_GROUP - 1)) == 0)
        ((float *)args->scales)[p.row * (uint64_t)args->scale_cols + eight / KILN_EIGHTS_GROUP] = scale;
    return 1.0f / scale;
}

/* Whether the values that become codes are within the format's greatest number, but for infinities and NaN. */
KILN_INLINE bool kiln_codes_are_within(const kiln_codes_args *args, kiln_codes_format format) {
    return kiln_codes_of_row(args) && args->smax == (format == KILN_CODES_E4M3 ? KILN_E4M3_GREATEST : 127.0f);
}

/* Writes the codes of a whole eight. within: kiln_codes_are_within. The values are lost. */
KILN_INLINE void kiln_eight_write(const kiln_codes_args *args, uint8_t *codes, float *values, float factor, bool within,
                                  kiln_codes_format format) {
    kiln_two special = kiln_two_of(0.0f, 0.0f);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i += 2) {
        const kiln_two products = kiln_two_of(values[i], values[i + 1]) * factor;
        special = __builtin_elementwise_fma(products, (kiln_two)0.0f, special);
        values[i] = products.x;
        values[i + 1] = products.y;
    }
    if (within && special.x + special.y == 0.0f) {
        float scaled[KILN_EIGHT];
        KILN_UNROLL
        for (int i = 0; i < KILN_EIGHT; i++)
            scaled[i] = values[i] * KILN_FOUR_UNIT(format);
        kiln_eight_bytes bytes;
        KILN_UNROLL
        for (int w = 0; w < 2; w++)
            bytes.words[w] =
                format == KILN_CODES_E4M3 ? kiln_e4m3_finite(scaled + 4 * w) : kiln_int8_word(scaled + 4 * w);
        *(kiln_eight_bytes *)codes = bytes;
        return;
    }
    *(kiln_eight_bytes *)codes =
        format == KILN_CODES_E4M3 ? kiln_e4m3_eight_of(values, args->smax) : kiln_int8_eight(values, args->smax);
}

#endif
