/* Where the sums of a product by a matrix unit of AMD chips are in a wave: a lane has ELEMENTS of a product of SIDE x
 * SIDE, all of them of column lane % SIDE, each of a row of its own. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_SUMS_AMD_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_SUMS_AMD_H

#include "kernels/common/device.h"

struct sums_mfma_32 {
    enum : uint32_t { WAVE = 64, SIDE = 32, ELEMENTS = 16 };
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) {
        return element / 4 * 8 + lane / SIDE * 4 + element % 4;
    }
};

struct sums_mfma_16 {
    enum : uint32_t { WAVE = 64, SIDE = 16, ELEMENTS = 4 };
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) { return lane / SIDE * 4 + element; }
};

struct sums_gfx11 {
    enum : uint32_t { WAVE = 32, SIDE = 16, ELEMENTS = 8 };
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) { return 2 * element + lane / SIDE; }
};

struct sums_gfx12 {
    enum : uint32_t { WAVE = 32, SIDE = 16, ELEMENTS = 8 };
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) { return lane / SIDE * 8 + element; }
};

#endif
