/* Two f32 at a time, by one instruction where the device has it: sm_100, gfx90a and gfx942. Results are those of single
 * ones. An includer whose pairs are elements that a sum takes as they are defines KILN_PACKED_ELEMENTS: AMD's mixed
 * multiply-add reads f16 without a conversion, but one at a time. */
#ifndef KILN_KERNELS_COMMON_MATH_PACKED_H
#define KILN_KERNELS_COMMON_MATH_PACKED_H

#include "kernels/common/values.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000

#include "kernels/arch/sm100.h"

typedef uint64_t kiln_packed;
KILN_INLINE kiln_packed kiln_pack(float low, float high) {
    return kiln_sm100_pack(low, high);
}
KILN_INLINE void kiln_unpack(float *values, kiln_packed two) {
    kiln_sm100_unpack(values, two);
}
KILN_INLINE kiln_packed kiln_packed_add(kiln_packed a, kiln_packed b) {
    return kiln_sm100_add_f32x2(a, b);
}
KILN_INLINE kiln_packed kiln_packed_mul(kiln_packed a, kiln_packed b) {
    return kiln_sm100_mul_f32x2(a, b);
}
KILN_INLINE kiln_packed kiln_packed_fma(kiln_packed a, kiln_packed b, kiln_packed c) {
    return kiln_sm100_fma_f32x2(a, b, c);
}

#else

#if (defined(__gfx90a__) || defined(__gfx942__)) && !(defined(KILN_PACKED_ELEMENTS) && defined(KILN_PART_f16))
typedef float kiln_packed __attribute__((ext_vector_type(2)));
KILN_INLINE kiln_packed kiln_packed_add(kiln_packed a, kiln_packed b) {
    return a + b;
}
KILN_INLINE kiln_packed kiln_packed_mul(kiln_packed a, kiln_packed b) {
    return a * b;
}
KILN_INLINE kiln_packed kiln_packed_fma(kiln_packed a, kiln_packed b, kiln_packed c) {
    return __builtin_elementwise_fma(a, b, c);
}
#else
typedef struct kiln_packed {
    float x, y;
} kiln_packed;
KILN_INLINE kiln_packed kiln_packed_add(kiln_packed a, kiln_packed b) {
    return (kiln_packed){a.x + b.x, a.y + b.y};
}
KILN_INLINE kiln_packed kiln_packed_mul(kiln_packed a, kiln_packed b) {
    return (kiln_packed){a.x * b.x, a.y * b.y};
}
KILN_INLINE kiln_packed kiln_packed_fma(kiln_packed a, kiln_packed b, kiln_packed c) {
    return (kiln_packed){KILN_FMA(a.x, b.x, c.x), KILN_FMA(a.y, b.y, c.y)};
}
#endif

KILN_INLINE kiln_packed kiln_pack(float low, float high) {
    return (kiln_packed){low, high};
}
KILN_INLINE void kiln_unpack(float *values, kiln_packed two) {
    values[0] = two.x;
    values[1] = two.y;
}

#endif

/* A vector's elements as KILN_VECTOR / 2 pairs, and back. */
KILN_INLINE void kiln_vector_pairs(kiln_packed *pairs, kiln_vector vector) {
    float values[KILN_VECTOR];
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR / 2; i++)
        pairs[i] = kiln_pack(values[2 * i], values[2 * i + 1]);
}

KILN_INLINE kiln_vector kiln_vector_of_pairs(const kiln_packed *pairs) {
    float values[KILN_VECTOR];
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR / 2; i++)
        kiln_unpack(&values[2 * i], pairs[i]);
    return kiln_vector_of(values);
}

#endif
