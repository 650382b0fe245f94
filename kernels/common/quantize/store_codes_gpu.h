/* Elements of keys and values as codes of E4M3 in a cache: the device source that kv_store and rope_kv_store share. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_STORE_CODES_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_STORE_CODES_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/formats/code_words.h"
#include "kernels/common/formats/e4m3_eight.h"
#include "kernels/common/quantize/store_scale.h"
#include "kernels/common/values.h"

/* As many codes as a vector has elements. */
typedef struct kiln_codes {
    uint32_t words[KILN_QUADS];
} __attribute__((aligned(KILN_VECTOR))) kiln_codes;

/* Writes them, which are aligned; factor: kiln_store_factor. */
KILN_INLINE void kiln_store_codes(uint8_t *to, kiln_vector elements, float factor) {
    float products[8] = {0.0f};
    kiln_codes result;
    kiln_vector_values(products, elements);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        products[i] *= factor;
#if KILN_E4M3_INSTRUCTION
    KILN_UNROLL
    for (int quad = 0; quad < KILN_QUADS; quad++)
        result.words[quad] = kiln_e4m3_word(products + 4 * quad);
#else
    kiln_eight_bytes bytes = kiln_e4m3_eight_of(products, KILN_E4M3_GREATEST);
    KILN_UNROLL
    for (int quad = 0; quad < KILN_QUADS; quad++)
        result.words[quad] = bytes.words[quad];
#endif
    *(kiln_codes *)to = result;
}

#endif
