/* The greatest magnitude of many vectors' elements, of which NaN is none: of 16 bits by one instruction for two of them
 * where the device compares magnitudes (pairs.h), by two on AMD, else as greatest_number.h finds it. */
#ifndef KILN_KERNELS_COMMON_REDUCE_GREATEST_MAGNITUDE_H
#define KILN_KERNELS_COMMON_REDUCE_GREATEST_MAGNITUDE_H

#include "kernels/common/device.h"
#include "kernels/common/math/pairs.h"

#if KILN_PAIRS_COMPARED

#include "kernels/common/values.h"

typedef kiln_vector kiln_greatest_magnitude; /* of each place, with some sign */

/* That of no elements. */
KILN_INLINE kiln_greatest_magnitude kiln_greatest_magnitude_none(void) {
    return {{0, 0, 0, 0}};
}

KILN_INLINE void kiln_greatest_magnitude_take(kiln_greatest_magnitude *greatest, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        greatest->words[i] = kiln_pair_greater(greatest->words[i], vector.words[i]);
}

KILN_INLINE void kiln_greatest_magnitude_take_one(kiln_greatest_magnitude *greatest, kiln_element element) {
    greatest->words[0] = kiln_pair_greater(greatest->words[0], element);
}

KILN_INLINE float kiln_greatest_magnitude_value(kiln_greatest_magnitude greatest) {
    float values[2];
    kiln_pair_values(values, kiln_pair_greater(kiln_pair_greater(greatest.words[0], greatest.words[1]),
                                               kiln_pair_greater(greatest.words[2], greatest.words[3])));
    return kiln_fast_max(__builtin_fabsf(values[0]), __builtin_fabsf(values[1]));
}

#elif defined(__HIP__) && !defined(KILN_PART_f32)

#include "kernels/arch/gfx.h"
#include "kernels/common/values.h"

/* Twice the bits as an integer, which has no sign, and so much more that infinity is the greatest integer: NaN, which
 * is beyond, becomes less than this addend, which is 0's. Two elements at a time. */
typedef uint16_t kiln_greatest_magnitude __attribute__((ext_vector_type(2)));

#if defined(KILN_PART_f16)
#define KILN_MAGNITUDE_ADDEND 0x7ffu
#else
#define KILN_MAGNITUDE_ADDEND 0xffu
#endif

KILN_INLINE kiln_greatest_magnitude kiln_greatest_magnitude_none(void) {
    return (kiln_greatest_magnitude)(uint16_t)KILN_MAGNITUDE_ADDEND;
}

KILN_INLINE void kiln_greatest_magnitude_take_pair(kiln_greatest_magnitude *greatest, uint32_t pair) {
    const uint32_t order = kiln_gfx_twice_plus(pair, KILN_MAGNITUDE_ADDEND);
    *greatest = __builtin_elementwise_max(*greatest, __builtin_bit_cast(kiln_greatest_magnitude, order));
}

KILN_INLINE void kiln_greatest_magnitude_take(kiln_greatest_magnitude *greatest, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        kiln_greatest_magnitude_take_pair(greatest, vector.words[i]);
}

KILN_INLINE void kiln_greatest_magnitude_take_one(kiln_greatest_magnitude *greatest, kiln_element element) {
    kiln_greatest_magnitude_take_pair(greatest, element);
}

KILN_INLINE float kiln_greatest_magnitude_value(kiln_greatest_magnitude greatest) {
    const uint32_t order = greatest.x > greatest.y ? greatest.x : greatest.y;
    return kiln_element_to_f32((kiln_element)((order - KILN_MAGNITUDE_ADDEND) / 2));
}

#else

#include "kernels/common/reduce/greatest_number.h"

typedef kiln_greatest_number kiln_greatest_magnitude;

KILN_INLINE kiln_greatest_magnitude kiln_greatest_magnitude_none(void) {
    return kiln_greatest_number_none(true);
}

KILN_INLINE void kiln_greatest_magnitude_take(kiln_greatest_magnitude *greatest, kiln_vector vector) {
    kiln_greatest_number_take(greatest, vector, true);
}

KILN_INLINE void kiln_greatest_magnitude_take_one(kiln_greatest_magnitude *greatest, kiln_element element) {
    kiln_greatest_number_take_one(greatest, element, true);
}

KILN_INLINE float kiln_greatest_magnitude_value(kiln_greatest_magnitude greatest) {
    return kiln_greatest_number_value(greatest);
}

#endif

#endif
