/* Floating-point numbers as integers in the same order, one source for host C and both device compilers. The includer
 * (device.h, cpu.h) defines what math.h asks for. */
#ifndef KILN_KERNELS_COMMON_REDUCE_TOTAL_ORDER_H
#define KILN_KERNELS_COMMON_REDUCE_TOTAL_ORDER_H

#include "kernels/common/math/math.h"

/* Keys compare as the numbers do: 0 and -0 have the same key, every NaN the greatest, and no number has the key 0. */
KILN_INLINE uint32_t kiln_order_key(float value) {
    uint32_t bits = kiln_bits(value + 0.0f);
    uint32_t key = bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
    return value == value ? key : 0xffffffffu;
}

/* The number that a key stands for. */
KILN_INLINE float kiln_order_value(uint32_t key) {
    return kiln_float(key >> 31 ? key ^ 0x80000000u : ~key);
}

#endif
