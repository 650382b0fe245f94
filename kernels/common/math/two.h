/* Two f32 at once, where the device has instructions for two (gfx90a, gfx942): products are those of single ones. */
#ifndef KILN_KERNELS_COMMON_MATH_TWO_H
#define KILN_KERNELS_COMMON_MATH_TWO_H

#include "kernels/common/device.h"

#if defined(__HIP__)
typedef float kiln_two __attribute__((ext_vector_type(2)));
KILN_INLINE kiln_two kiln_two_of(float x, float y) {
    return (kiln_two){x, y};
}
KILN_INLINE kiln_two kiln_two_mul(kiln_two a, kiln_two b) {
    return a * b;
}
#else
typedef struct kiln_two {
    float x, y;
} kiln_two;
KILN_INLINE kiln_two kiln_two_of(float x, float y) {
    return {x, y};
}
KILN_INLINE kiln_two kiln_two_mul(kiln_two a, kiln_two b) {
    return {a.x * b.x, a.y * b.y};
}
#endif

#endif
