/* The greatest magnitude of f32 numbers, of which NaN is none, for CPU kernels. */
#ifndef KILN_KERNELS_COMMON_REDUCE_GREATEST_CPU_H
#define KILN_KERNELS_COMMON_REDUCE_GREATEST_CPU_H

#include "kernels/common/cpu.h"
#include "kernels/common/formats/float16.h"

/* Its bits, or `greatest` if that is greater. Magnitudes compare as their bits do: as signed integers, whose maximum
 * compilers find in vectors. */
KILN_INLINE uint32_t kiln_greatest_magnitude(uint32_t greatest, const float *values, size_t count) {
    int32_t most = (int32_t)greatest;
    for (size_t i = 0; i < count; i++) {
        const int32_t bits = (int32_t)(kiln_bits(values[i]) & 0x7fffffffu), magnitude = bits > 0x7f800000 ? 0 : bits;
        most = magnitude > most ? magnitude : most;
    }
    return (uint32_t)most;
}

#endif
