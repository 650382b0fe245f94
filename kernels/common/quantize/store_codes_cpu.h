/* Elements of keys and values as codes of E4M3 in a cache: the CPU source that kv_store and rope_kv_store share. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_STORE_CODES_CPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_STORE_CODES_CPU_H

#include "kernels/common/cpu.h"
#include "kernels/common/quantize/store_scale.h"

/* The codes of count elements; factor: kiln_store_factor. tile has room for KILN_TILE. */
KILN_INLINE void kiln_store_codes(float *tile, uint8_t *codes, const void *source, size_t count, float factor,
                                  kiln_cpu_dtype dtype) {
    for (size_t done = 0; done < count; done += KILN_TILE) {
        size_t some = kiln_min(count - done, KILN_TILE);
        const float *values = kiln_tile_load(tile, kiln_at(source, done, dtype), some, dtype);
        for (size_t i = 0; i < some; i++)
            codes[done + i] = kiln_e4m3_of(values[i] * factor);
    }
}

#endif
