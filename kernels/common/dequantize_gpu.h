/* The kernel of dequantize_fp8 and dequantize_int8 on devices. The includer defines KILN_DEQUANTIZE_VALUE(code), the
 * number of a word's low byte, and its entry point over kiln_dequantize. */
#ifndef KILN_KERNELS_COMMON_DEQUANTIZE_GPU_H
#define KILN_KERNELS_COMMON_DEQUANTIZE_GPU_H

#include "kernels/common/dequantize_args.h"
#include "kernels/common/small_float_gpu.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"

/* The codes of a vector of elements. */
typedef struct kiln_dequantize_codes {
    uint32_t words[KILN_QUADS];
} __attribute__((aligned(KILN_VECTOR))) kiln_dequantize_codes;

KILN_INLINE void kiln_dequantize(const kiln_dequantize_args *args) {
    kiln_span s = kiln_span_of(&args->shape);
    if (!s.count) return;
    const float *scales = args->scales + (s.row >> args->rows_log2) * (uint64_t)args->scale_cols;
    const uint8_t *codes = args->codes + s.row * (uint64_t)args->codes_stride + s.start;
    kiln_element *y = kiln_span_in(s, args->y, args->y_stride);
    float scale = *scales;
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_dequantize_codes held = *(const kiln_dequantize_codes *)(codes + vector * KILN_VECTOR);
        float values[KILN_VECTOR];
        if (args->grouped) scale = scales[(s.start + vector * KILN_VECTOR) >> KILN_DEQUANTIZE_GROUP_LOG2];
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            values[i] = kiln_product(KILN_DEQUANTIZE_VALUE(held.words[i / 4] >> i % 4 * 8), scale);
        kiln_vector_store(y + vector * KILN_VECTOR, kiln_vector_of(values));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        if (args->grouped) scale = scales[(s.start + i) >> KILN_DEQUANTIZE_GROUP_LOG2];
        y[i] = kiln_element_from_f32(kiln_product(KILN_DEQUANTIZE_VALUE(codes[i]), scale));
    }
}

#endif
