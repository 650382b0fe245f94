/* The scales and codes of NVFP4 on the CPU, compiled once for each level: the definition.
 *
 * Floor: two vector operations for the maximum and some ten for the code of each vector of elements.
 * Test: build/tests/ops/quantize_nvfp4_test. Bench: build/kiln bench quantize_nvfp4 --device cpu */
#include "kernels/common/quantize/nvfp4_cpu.h"
#include "kernels/common/vec.h"

typedef uint32_t kiln_codes_vec __attribute__((vector_size(sizeof(kiln_vec))));

/* kiln_e2m1_of of a vector. */
KILN_INLINE kiln_codes_vec kiln_e2m1_codes(kiln_vec values) {
    const kiln_vec below = KILN_VEC_MIN(values, KILN_VEC_SET(KILN_E2M1_GREATEST)); /* NaN too */
    const kiln_codes_vec bits = (kiln_codes_vec)KILN_VEC_MAX(below, KILN_VEC_SET(-KILN_E2M1_GREATEST));
    const kiln_vec magnitudes = (kiln_vec)(bits & 0x7fffffffu);
    const kiln_codes_vec power = (kiln_codes_vec)KILN_VEC_MAX(magnitudes, KILN_VEC_SET(1.0f)) & 0x7f800000u;
    const kiln_vec sums = KILN_VEC_FMA((kiln_vec)power, KILN_VEC_SET(0x1.000004p22f), magnitudes);
    const kiln_codes_vec codes = (kiln_codes_vec)sums + (power >> 22);
    return (codes & 7u) | (bits >> 28 & 8u);
}

/* The greatest magnitudes, of which NaN is none, of KILN_VEC blocks from `first` on: the last of them again if there
 * are no more. */
KILN_INLINE kiln_vec kiln_nvfp4_greatest(const float *values, size_t first, size_t blocks) {
    kiln_vec rows[KILN_VEC];
    KILN_UNROLL
    for (size_t i = 0; i < KILN_VEC; i++) {
        const float *block = values + kiln_min(first + i, blocks - 1) * KILN_NVFP4_BLOCK;
        rows[i] = KILN_VEC_ZERO();
        KILN_UNROLL
        for (size_t at = 0; at < KILN_NVFP4_BLOCK; at += KILN_VEC) {
            const kiln_codes_vec bits = (kiln_codes_vec)KILN_VEC_LOAD(block + at);
            rows[i] = KILN_VEC_MAX((kiln_vec)(bits & 0x7fffffffu), rows[i]);
        }
    }
    KILN_UNROLL
    for (size_t half = KILN_VEC / 2; half; half /= 2) {
        KILN_UNROLL
        for (size_t i = 0; i < half; i++)
            rows[i] =
                KILN_VEC_MAX(KILN_VEC_ZIP_LOW(rows[i], rows[i + half]), KILN_VEC_ZIP_HIGH(rows[i], rows[i + half]));
    }
    return rows[0];
}

void kiln_nvfp4_encode(uint8_t *codes, uint8_t *scales, const float *values, float encode, size_t blocks) {
    uint32_t greatest[KILN_NVFP4_TILE_BLOCKS];
    uint64_t pairs[KILN_TILE / 2]; /* of codes, in 32 bits each */
    float factors[KILN_NVFP4_TILE_BLOCKS];
    for (size_t block = 0; block < blocks; block += KILN_VEC) {
        const kiln_vec vector = kiln_nvfp4_greatest(values, block, blocks);
        memcpy(greatest + block, &vector, sizeof vector);
    }
    KILN_INDEPENDENT
    for (size_t block = 0; block < blocks; block++) {
        greatest[block] = kiln_nvfp4_scale(greatest[block], encode);
        factors[block] = kiln_nvfp4_factor(greatest[block], encode);
    }
    for (size_t block = 0; block < blocks; block++)
        scales[block] = (uint8_t)greatest[block];
    for (size_t i = 0; i < blocks * KILN_NVFP4_BLOCK; i += KILN_VEC) {
        const kiln_vec factor = KILN_VEC_SET(factors[i / KILN_NVFP4_BLOCK]);
        const kiln_codes_vec vector = kiln_e2m1_codes(KILN_VEC_MUL(KILN_VEC_LOAD(values + i), factor));
        memcpy(pairs + i / 2, &vector, sizeof vector);
    }
    KILN_INDEPENDENT
    for (size_t i = 0; i < blocks * KILN_NVFP4_BLOCK_BYTES; i++)
        codes[i] = (uint8_t)(pairs[i] | pairs[i] >> 28);
}
