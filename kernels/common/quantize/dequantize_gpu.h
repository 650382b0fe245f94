/* The kernel of dequantize_fp8 and dequantize_int8 on devices. The includer defines KILN_DEQUANTIZE_VALUE(word, place),
 * the number of a word's byte, the lowest of which is at place 0; the numbers of all four: on AMD as f16 with
 * KILN_DEQUANTIZE_HALVES(pairs, word) (code_halves.h), on NVIDIA with KILN_DEQUANTIZE_VALUES(values, word); and its
 * entry point over kiln_dequantize. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_DEQUANTIZE_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_DEQUANTIZE_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/formats/small_float_gpu.h"
#include "kernels/common/quantize/dequantize_args.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"

#if defined(__HIP__)
#include "kernels/common/formats/code_halves.h"
#endif

/* The codes of a vector of elements. */
typedef struct kiln_dequantize_codes {
    uint32_t words[KILN_QUADS];
} __attribute__((aligned(KILN_VECTOR))) kiln_dequantize_codes;

/* Which of a row's scales is an element's. */
KILN_INLINE uint32_t kiln_dequantize_group(const kiln_dequantize_args *args, uint32_t col) {
    return col >> (args->grouped ? KILN_DEQUANTIZE_GROUP_LOG2 : 31); /* cols is below 2^31 */
}

/* The products of a vector's codes with a factor. */
KILN_INLINE kiln_vector kiln_dequantize_vector(const kiln_dequantize_codes *codes, float factor) {
#if defined(__HIP__)
    kiln_halves pairs[KILN_VECTOR / 2];
    KILN_UNROLL
    for (int quad = 0; quad < KILN_QUADS; quad++)
        KILN_DEQUANTIZE_HALVES(pairs + 2 * quad, codes->words[quad]);
    return kiln_halves_products(pairs, 4, factor, -0.0f);
#else
    float values[KILN_VECTOR];
    KILN_UNROLL
    for (int quad = 0; quad < KILN_QUADS; quad++)
        KILN_DEQUANTIZE_VALUES(values + 4 * quad, codes->words[quad]);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] = kiln_product(values[i], factor);
    return kiln_vector_of(values);
#endif
}

/* A thread asks for the codes and scales of all its vectors before it uses the first. */
KILN_INLINE void kiln_dequantize(const kiln_dequantize_args *args) {
    kiln_span s = kiln_span_of(&args->shape);
    if (!s.count) return;
    const float *scales = args->scales + (s.row >> args->rows_log2) * (uint64_t)args->scale_cols;
    const uint8_t *codes = args->codes + s.row * (uint64_t)args->codes_stride + s.start;
    kiln_element *y = kiln_span_in(s, args->y, args->y_stride);
    kiln_dequantize_codes held[KILN_THREAD_VECTORS];
    float factors[KILN_THREAD_VECTORS];
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < KILN_THREAD_VECTORS; k++, vector += s.lanes)
        if (vector < s.whole) {
            held[k] = *(const kiln_dequantize_codes *)(codes + vector * KILN_VECTOR);
            factors[k] = scales[kiln_dequantize_group(args, (uint32_t)s.start + vector * KILN_VECTOR)];
        }
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < KILN_THREAD_VECTORS; k++, vector += s.lanes) {
        if (vector >= s.whole) break;
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_dequantize_vector(&held[k], factors[k]));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float scale = scales[kiln_dequantize_group(args, (uint32_t)s.start + i)];
        y[i] = kiln_element_from_f32(kiln_product(KILN_DEQUANTIZE_VALUE(codes[i], 0), scale));
    }
}

#endif
