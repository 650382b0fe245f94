/* What rmsnorm_nvfp4 and silu_mul_nvfp4 share where a thread quantises whole blocks of 16 columns of a row: the passes
 * over it, and where its codes and scales are. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_ROW_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_ROW_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/quantize/codes_gpu.h"
#include "kernels/common/quantize/nvfp4_block_gpu.h"
#include "kernels/common/quantize/nvfp4_quickly.h"
#include "kernels/common/reduce/row_greatest.h"

typedef struct kiln_nvfp4_row {
    uint8_t *codes, *scales;
    uint32_t
        further;  /* how many more bytes than 4 the scales of a column's four blocks are apart from the next four's */
    uint32_t end; /* columns that have scales; 0 beyond the tensor of scales */
    bool inside, wide;
} kiln_nvfp4_row;

KILN_INLINE kiln_nvfp4_row kiln_nvfp4_row_of(const kiln_codes_args *args, kiln_codes_place p) {
    const uint64_t blocks = (uint64_t)args->scale_cols;
    kiln_nvfp4_row r;
    r.codes = args->codes + p.row * (uint64_t)args->codes_stride;
    r.scales = (uint8_t *)args->scales + (args->swizzled ? kiln_nvfp4_swizzled(p.row, 0, blocks) : p.row * blocks);
    r.further = args->swizzled ? 512 - 4 : 0;
    r.end = p.row < (uint64_t)args->shape.rows ? (uint32_t)blocks * KILN_NVFP4_BLOCK : 0;
    r.inside = p.inside;
    r.wide = args->shape.wide;
    return r;
}

/* 1 over a row's scale, which is written, from the row's greatest magnitude. */
KILN_INLINE float kiln_nvfp4_row_encode(const kiln_codes_args *args, kiln_codes_place p, float greatest) {
    const float global_scale = args->static_scale != 0.0f ? args->static_scale : kiln_nvfp4_any_global(greatest, 0);
    if (args->global_scale && p.inside && p.lane == 0) args->global_scale[p.row] = global_scale;
    return kiln_nvfp4_any_encode(global_scale);
}

/* Writes the codes and the scale of the block that begins at a column: of values, which are lost, or of none, zeros.
 * encode: kiln_nvfp4_row_encode. */
KILN_INLINE void kiln_nvfp4_row_put(const kiln_nvfp4_row *r, uint32_t col, bool present, float *values, float encode) {
    const uint32_t block = col / KILN_NVFP4_BLOCK;
    kiln_eight_bytes words = {};
    uint32_t scale = 0;
    if (present) {
        const float greatest = kiln_nvfp4_block_greatest(values);
        scale = kiln_nvfp4_block_scale(greatest, encode);
        words = kiln_nvfp4_block_codes(values, greatest, kiln_nvfp4_any_factor(scale, encode));
    }
    r->scales[block + block / 4 * r->further] = (uint8_t)scale;
    if (!r->inside) return;
    uint8_t *codes = r->codes + col / 2;
    if (r->wide) {
        ((uint32_t *)codes)[0] = words.words[0];
        ((uint32_t *)codes)[1] = words.words[1];
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_NVFP4_BLOCK_BYTES; i++) {
        codes[i] = (uint8_t)words.words[0];
        words.words[0] = words.words[0] >> 8 | words.words[1] << 24;
        words.words[1] >>= 8;
    }
}

/* Makes the results of the block that begins at a column, which is the thread's number-th: their greatest magnitude, or
 * that so far, which is returned, and in the last pass the values themselves. */
typedef float (*kiln_nvfp4_results)(const void *operation, float *values, uint32_t col, uint32_t number, bool last,
                                    float greatest);

/* A row's passes: its greatest magnitude, if that determines its scale, and its codes. exchange: of kiln_row_greatest.
 */
KILN_INLINE void kiln_nvfp4_row_passes(const kiln_codes_args *args, kiln_codes_place p, float exchange[KILN_SUBGROUPS],
                                       kiln_nvfp4_results results, const void *operation) {
    const kiln_nvfp4_row row = kiln_nvfp4_row_of(args, p);
    const uint32_t cols = p.inside ? (uint32_t)args->shape.cols : 0, step = p.lanes * KILN_NVFP4_BLOCK;
    float values[KILN_NVFP4_BLOCK], state = 0.0f; /* state: the greatest magnitude, then 1 over the scale */
    KILN_LOOP
    for (uint32_t last = kiln_codes_of_row(args) ? 0 : 1; last < 2; last++) {
        if (last) state = kiln_nvfp4_row_encode(args, p, state);
        KILN_LOOP
        for (uint32_t number = 0, col = p.lane * KILN_NVFP4_BLOCK; col < (last ? row.end : cols);
             number++, col += step) {
            if (col < cols) {
                const float greatest = results(operation, values, col, number, last != 0, state);
                state = last ? state : greatest;
            }
            if (last) kiln_nvfp4_row_put(&row, col, col < cols, values, state);
        }
        if (!last) state = kiln_row_greatest(state, args->shape.lanes_log2, exchange);
    }
}

#endif
