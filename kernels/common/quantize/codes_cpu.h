/* What the CPU kernels that quantise their own result share, and the definition of the codes: a tile of results, filled
 * up with zeros to whole eights, becomes codes and scales. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_CODES_CPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_CODES_CPU_H

#include "kernels/common/quantize/codes_scale.h"
#include "kernels/common/quantize/nvfp4_cpu.h"
#include "kernels/common/reduce/greatest_cpu.h"

enum { KILN_TILE_EIGHTS = KILN_TILE / KILN_EIGHT };

/* A tile of a row. */
typedef struct kiln_codes_tile {
    uint64_t row, first, col; /* first: its first eight */
    size_t count;             /* elements of the row */
    size_t eights;            /* that are written; for NVFP4 including those beyond the row */
} kiln_codes_tile;

KILN_INLINE kiln_codes_tile kiln_codes_tile_of(const kiln_codes_args *args, uint64_t row, uint64_t first) {
    kiln_codes_tile tile = {.row = row, .first = first, .col = first * KILN_EIGHT};
    const uint64_t cols = row < (uint64_t)args->rows ? (uint64_t)args->shape.cols : 0;
    if (tile.col < cols) tile.count = kiln_min(cols - tile.col, KILN_TILE);
    if (first < args->eights) tile.eights = kiln_min(args->eights - first, KILN_TILE_EIGHTS);
    return tile;
}

/* The loop over the tiles of a row. */
#define KILN_FOR_CODES_TILES(args, row, tile)                                    \
    for (kiln_codes_tile tile = kiln_codes_tile_of(args, row, 0); (tile).eights; \
         (tile) = kiln_codes_tile_of(args, row, (tile).first + KILN_TILE_EIGHTS))

/* Puts zeros after a tile's elements. */
KILN_INLINE void kiln_codes_tile_fill(float *values, size_t count) {
    if (count < KILN_TILE) memset(values + count, 0, (KILN_TILE - count) * sizeof *values);
}

/* What the tiles of a row need to know of its greatest magnitude, if that was computed: the factor of the elements, or
 * 1 / g for NVFP4. The scale is written once. */
KILN_INLINE float kiln_codes_factor(const kiln_codes_args *args, uint64_t row, uint32_t greatest,
                                    kiln_codes_format format) {
    const bool inside = row < (uint64_t)args->rows;
    if (format == KILN_CODES_NVFP4) {
        float global_scale = kiln_codes_global(args, kiln_float(greatest));
        if (args->global_scale && inside) args->global_scale[row] = global_scale;
        return 1.0f / global_scale;
    }
    float scale = kiln_codes_scale(args, kiln_float(greatest));
    if (args->scales && !args->grouped) ((float *)args->scales)[row] = scale;
    return 1.0f / scale;
}

KILN_INLINE void kiln_codes_put_bytes(const kiln_codes_args *args, const kiln_codes_tile *tile, const float *values,
                                      float factor, kiln_codes_format format) {
    enum { GROUP = KILN_EIGHT * KILN_EIGHTS_GROUP };
    uint8_t *codes = args->codes + tile->row * (uint64_t)args->codes_stride + tile->col;
    for (size_t start = 0; start < tile->count; start += GROUP) {
        size_t n = kiln_min(tile->count - start, GROUP);
        if (args->grouped) {
            uint64_t at = tile->row * (uint64_t)args->scale_cols + (tile->col + start) / GROUP;
            float scale = kiln_codes_scale(args, kiln_float(kiln_greatest_magnitude(0, values + start, n)));
            if (args->scales) ((float *)args->scales)[at] = scale;
            factor = 1.0f / scale;
        }
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            codes[start + i] = kiln_codes_byte(values[start + i] * factor, args->smax, format);
    }
}

KILN_INLINE void kiln_codes_put_pairs(const kiln_codes_args *args, const kiln_codes_tile *tile, const float *values,
                                      float encode) {
    uint8_t pairs[KILN_TILE / 2], codes[KILN_NVFP4_TILE_BLOCKS] = {0}, *scales = args->scales; /* codes: of scales */
    const uint64_t cols = (uint64_t)args->scale_cols, first = tile->first / 2;
    const size_t blocks = tile->eights / 2;
    const bool inside = tile->row < (uint64_t)args->rows;
    if (inside) kiln_nvfp4_encode(pairs, codes, values, encode, blocks);
    for (size_t block = 0; block < blocks; block++) {
        uint64_t at = tile->row * cols + first + block;
        if (args->swizzled) at = kiln_nvfp4_swizzled(tile->row, first + block, cols);
        scales[at] = codes[block];
    }
    if (inside)
        memcpy(args->codes + tile->row * (uint64_t)args->codes_stride + first * KILN_NVFP4_BLOCK_BYTES, pairs,
               blocks * KILN_NVFP4_BLOCK_BYTES);
}

/* Writes the codes of a tile and their scales. values has zeros after the row's end. */
KILN_INLINE void kiln_codes_put(const kiln_codes_args *args, const kiln_codes_tile *tile, const float *values,
                                float factor, kiln_codes_format format) {
    if (format == KILN_CODES_NVFP4)
        kiln_codes_put_pairs(args, tile, values, factor);
    else
        kiln_codes_put_bytes(args, tile, values, factor, format);
}

#endif
