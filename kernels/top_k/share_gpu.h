/* The greatest key of a thread's share of a row in top_k, as in greatest.h, in fewer registers and instructions where
 * elements of 16 bits are compared two at a time: as they are on NVIDIA, as integers on AMD. */
#ifndef KILN_KERNELS_TOP_K_SHARE_GPU_H
#define KILN_KERNELS_TOP_K_SHARE_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/greatest.h"

KILN_INLINE uint32_t greater(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

#if !defined(KILN_PART_f32)
/* The greater of the keys of two elements. */
KILN_INLINE uint32_t pair_key(uint32_t word) {
    float values[2];
    kiln_pair_values(values, word);
    return greater(kiln_order_key(values[0]), kiln_order_key(values[1]));
}
#endif

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800

typedef uint32_t share;

KILN_INLINE share share_none(void) {
    return KILN_GREATEST_NONE;
}

KILN_INLINE void share_take(share *s, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR_BYTES / 4; i++)
        *s = kiln_greatest_word(*s, vector.words[i]);
}

KILN_INLINE uint32_t share_key(share s) {
#if defined(KILN_PART_f32)
    return kiln_order_key(kiln_float(s));
#else
    return pair_key(s);
#endif
}

#elif defined(__HIP__) && !defined(KILN_PART_f32)

typedef int16_t share_signed __attribute__((ext_vector_type(2)));
typedef uint16_t share_unsigned __attribute__((ext_vector_type(2)));

/* Of bits as signed integers the greatest is that of the greatest element if one is not negative, NaN included; of bits
 * as unsigned integers the least is if all are negative, and the greatest shows a negative NaN. */
typedef struct share {
    share_signed positive;
    share_unsigned negative, magnitude;
} share;

KILN_INLINE share share_none(void) {
    share_unsigned none = KILN_ELEMENT_NEGATIVE_INFINITY;
    share s = {(share_signed)(int16_t)KILN_ELEMENT_NEGATIVE_INFINITY, none, none};
    return s;
}

KILN_INLINE void share_take(share *s, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR_BYTES / 4; i++) {
        share_unsigned bits = __builtin_bit_cast(share_unsigned, vector.words[i]);
        s->positive = __builtin_elementwise_max(s->positive, __builtin_bit_cast(share_signed, vector.words[i]));
        s->negative = __builtin_elementwise_min(s->negative, bits);
        s->magnitude = __builtin_elementwise_max(s->magnitude, bits);
    }
}

KILN_INLINE uint32_t share_key(share s) {
    uint16_t greatest[2];
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        greatest[i] = s.positive[i] < 0 ? s.negative[i] : (uint16_t)s.positive[i];
        greatest[i] = s.magnitude[i] > KILN_ELEMENT_NEGATIVE_INFINITY ? s.magnitude[i] : greatest[i];
    }
    return pair_key((uint32_t)greatest[1] << 16 | greatest[0]);
}

#else

typedef kiln_greatest share;

KILN_INLINE share share_none(void) {
    return kiln_greatest_none();
}

KILN_INLINE void share_take(share *s, kiln_vector vector) {
    kiln_greatest_take(s, vector);
}

KILN_INLINE uint32_t share_key(share s) {
    return kiln_greatest_key(s);
}

#endif

#endif
