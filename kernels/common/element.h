/* The elements of the bundle's part that a device source is compiled for (-DKILN_PART_f16=1), and vectors of them: what
 * one thread reads or writes with one 16-byte access. Elements are held as their bits. */
#ifndef KILN_KERNELS_COMMON_ELEMENT_H
#define KILN_KERNELS_COMMON_ELEMENT_H

#include "kernels/common/math/math.h"

#if defined(KILN_PART_f32)
#define KILN_PART f32
typedef uint32_t kiln_element __attribute__((may_alias));
#define KILN_ELEMENT_NEGATIVE_INFINITY 0xff800000u
KILN_INLINE float kiln_element_to_f32(kiln_element element) {
    return kiln_float(element);
}
KILN_INLINE kiln_element kiln_element_from_f32(float value) {
    return kiln_bits(value);
}
#elif defined(KILN_PART_f16)
#define KILN_PART                      f16
typedef uint16_t kiln_element __attribute__((may_alias));
#define KILN_ELEMENT_NEGATIVE_INFINITY 0xfc00u
KILN_INLINE float kiln_element_to_f32(kiln_element element) {
    return kiln_f16_to_f32(element);
}
KILN_INLINE kiln_element kiln_element_from_f32(float value) {
    return kiln_f32_to_f16(value);
}
#elif defined(KILN_PART_bf16)
#define KILN_PART                      bf16
typedef uint16_t kiln_element __attribute__((may_alias));
#define KILN_ELEMENT_NEGATIVE_INFINITY 0xff80u
KILN_INLINE float kiln_element_to_f32(kiln_element element) {
    return kiln_bf16_to_f32(element);
}
KILN_INLINE kiln_element kiln_element_from_f32(float value) {
    return kiln_f32_to_bf16(value);
}
#endif

enum {
    KILN_VECTOR = KILN_VECTOR_BYTES / (int)sizeof(kiln_element), /* elements of a vector */
    KILN_QUADS = KILN_VECTOR / 4
};

typedef struct kiln_vector {
    uint32_t words[KILN_VECTOR_BYTES / 4];
} __attribute__((aligned(KILN_VECTOR_BYTES))) kiln_vector;

/* Kernels process a vector in quads of four elements, in a loop that is not unrolled, so that the code for 16-bit
 * elements is not twice that for f32: take removes a quad at the front, give adds one at the end. */
KILN_INLINE void kiln_quad_take(kiln_vector *vector, float *values) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
        int bit = i * (int)sizeof(kiln_element) * 8;
        values[i] = kiln_element_to_f32((kiln_element)(vector->words[bit / 32] >> bit % 32));
    }
    KILN_UNROLL
    for (int i = 0; i + (int)sizeof(kiln_element) < 4; i++)
        vector->words[i] = vector->words[i + (int)sizeof(kiln_element)];
}

KILN_INLINE void kiln_quad_give(kiln_vector *vector, const float *values) {
    uint32_t quad[sizeof(kiln_element)] = {0};
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
        int bit = i * (int)sizeof(kiln_element) * 8;
        quad[bit / 32] |= (uint32_t)kiln_element_from_f32(values[i]) << bit % 32;
    }
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
        int next = i + (int)sizeof(kiln_element);
        vector->words[i] = next < 4 ? vector->words[next] : quad[next - 4];
    }
}

/* One 16-byte access; the address is 16-byte aligned. */
KILN_INLINE kiln_vector kiln_vector_load(const kiln_element *source) {
    return *(const kiln_vector *)source;
}
KILN_INLINE void kiln_vector_store(kiln_element *target, kiln_vector vector) {
    *(kiln_vector *)target = vector;
}

#endif
