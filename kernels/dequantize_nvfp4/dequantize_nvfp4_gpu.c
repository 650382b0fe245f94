/* dequantize_nvfp4: y = codes * scales * g: codes in E2M1, a scale in E4M3 for each 16 elements, and g in f32 for the
 * tensor or the row.
 *
 * Each thread converts up to four vectors of y, whose codes and scales it asks for at first; neighbouring threads store
 * neighbouring vectors. Each of the two or four vectors of a block reads the block's scale.
 *
 * Floor: one read of half a byte for each element and of a byte for each 16, and one write of an element of y at memory
 * bandwidth, 4.56 bytes an element of f32, 2.56 of 16 bits; docs/kernel-report.md has the instruction counts and the
 * time that they take. Not measured.
 * Test: build/tests/ops/dequantize_test. Bench: build/kiln bench dequantize_nvfp4 */
#include "kernels/common/device.h"
#include "kernels/common/formats/small_float_gpu.h"
#include "kernels/common/quantize/nvfp4_codes.h"
#include "kernels/common/quantize/nvfp4_scale.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/dequantize_nvfp4/dequantize_nvfp4_args.h"

#if KILN_E2M1_INSTRUCTION
#include "kernels/arch/sm100.h"
#include "kernels/arch/sm89.h"
#elif defined(__HIP__)
#include "kernels/common/formats/code_halves.h"
#endif

#if defined(KILN_PART_f32)
typedef uint16_t codes_of_vector;
#else
typedef uint32_t codes_of_vector;
#endif

/* The place of an element's scale from that of the tile's first, whose number is a multiple of 4. */
KILN_INLINE uint32_t place_of(bool swizzled, uint32_t col) {
    const uint32_t block = col / KILN_NVFP4_BLOCK;
    return swizzled ? block / 4 * 512 + block % 4 : block;
}

#if KILN_E2M1_INSTRUCTION
/* The scales of a thread's vectors. */
KILN_INLINE void take_scales(uint32_t *of_blocks, kiln_span s, const uint8_t *scales, bool swizzled) {
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < KILN_THREAD_VECTORS; k++, vector += s.lanes)
        if (vector < s.whole) of_blocks[k] = scales[place_of(swizzled, vector * KILN_VECTOR)];
}
#endif

/* The numbers of a vector's codes times those of their scale, which are exact: where a device converts E2M1, as f16. */
#if KILN_E2M1_INSTRUCTION
KILN_INLINE void scaled_of(float *values, codes_of_vector held, uint32_t scale) {
    uint32_t numbers[KILN_VECTOR / 2], factors[2];
#if defined(KILN_PART_f32)
    kiln_sm100f_cvt_f16x2_e2m1x4(numbers, held);
#else
    kiln_sm100f_cvt_f16x2_e2m1x8(numbers, held);
#endif
    kiln_sm89_cvt_f16x2_e4m3x4(factors, scale);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR / 2; i++)
        kiln_sm100_scaled_f16x2(&values[2 * i], numbers[i], (uint16_t)factors[0], -0.0f);
}
#elif defined(__CUDACC__)
/* As kiln_e2m1_number, of the code at a place of a word: a shift that keeps the sign moves its other bits too. */
KILN_INLINE float number_at(uint32_t word, uint32_t place) {
    return kiln_float((uint32_t)((int32_t)(word << (28 - 4 * place)) >> 6) & 0x81c00000u) * 0x1p126f;
}

KILN_INLINE void scaled_of(float *values, codes_of_vector held, uint32_t scale) {
    const float factor = kiln_e4m3_number(scale);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] = number_at(held, (uint32_t)i) * factor;
}
#endif

/* A vector of codes times their scale and the tensor's. */
KILN_INLINE kiln_vector vector_of(codes_of_vector held, uint32_t scale, float global_scale) {
#if defined(__HIP__)
    kiln_halves pairs[KILN_VECTOR / 2];
    kiln_e2m1_halves(pairs, held, KILN_VECTOR, kiln_e4m3_pair(scale * 0x01000100u));
    return kiln_halves_products(pairs, KILN_VECTOR, global_scale, -0.0f);
#else
    float values[KILN_VECTOR];
    scaled_of(values, held, scale);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] = kiln_product(values[i], global_scale);
    return kiln_vector_of(values);
#endif
}

KILN_ENTRY(dequantize_nvfp4, kiln_dequantize_nvfp4_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const uint8_t *codes = args.codes + s.row * (uint64_t)args.codes_stride + s.start / 2;
    const uint64_t cols = (uint64_t)args.scale_cols, block = s.start / KILN_NVFP4_BLOCK;
    const uint8_t *scales =
        args.scales + (args.swizzled ? kiln_nvfp4_swizzled(s.row, block, cols) : s.row * cols + block);
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);
    float global_scale = args.global_scale[args.each ? s.row : 0];
    codes_of_vector held[KILN_THREAD_VECTORS];
    uint32_t of_blocks[KILN_THREAD_VECTORS];
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < KILN_THREAD_VECTORS; k++, vector += s.lanes)
        if (vector < s.whole) {
            held[k] = *(const codes_of_vector *)(codes + vector * KILN_VECTOR / 2);
#if !KILN_E2M1_INSTRUCTION
            of_blocks[k] = scales[place_of(args.swizzled, vector * KILN_VECTOR)];
#endif
        }
#if KILN_E2M1_INSTRUCTION /* so fast that it pays to ask for the layout once */
    if (args.swizzled)
        take_scales(of_blocks, s, scales, true);
    else
        take_scales(of_blocks, s, scales, false);
#endif
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < KILN_THREAD_VECTORS; k++, vector += s.lanes) {
        if (vector >= s.whole) break;
        kiln_vector_store(y + vector * KILN_VECTOR, vector_of(held[k], of_blocks[k], global_scale));
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        float scale = kiln_e4m3_number(scales[place_of(args.swizzled, i)]);
        float value = kiln_e2m1_number((uint32_t)codes[i / 2] >> i % 2 * 4) * scale;
        y[i] = kiln_element_from_f32(kiln_product(value, global_scale));
    }
}
