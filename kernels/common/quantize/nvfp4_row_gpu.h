/* What rmsnorm_nvfp4 and silu_mul_nvfp4 share where a thread quantises whole blocks of 16 columns of a row: its
 * greatest magnitude, and where its codes and scales are. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_ROW_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_ROW_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/quantize/codes_gpu.h"
#include "kernels/common/quantize/nvfp4_block_gpu.h"
#include "kernels/common/quantize/nvfp4_quickly.h"
#include "kernels/common/reduce/row_reduce.h"

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

/* The greatest magnitude among the threads that share a row: half a subgroup, one, or the block. */
KILN_INLINE float kiln_nvfp4_greater(float value, uint32_t step) {
    const uint32_t own = kiln_bits(value), other = kiln_bits(kiln_of_other_half(value, step));
    return kiln_float(own > other ? own : other);
}
KILN_INLINE float kiln_nvfp4_row_greatest(float value, uint32_t lanes_log2, float exchange[KILN_SUBGROUPS]) {
    KILN_UNROLL
    for (uint32_t i = 0; i + 1 < KILN_SUBGROUP_LOG2; i++)
        value = kiln_nvfp4_greater(value, i);
    if (lanes_log2 < KILN_SUBGROUP_LOG2) return value;
    value = kiln_nvfp4_greater(value, KILN_SUBGROUP_LOG2 - 1);
    if (lanes_log2 == KILN_SUBGROUP_LOG2) return value;
    kiln_barrier(); /* what was exchanged before has been read by all */
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = value;
    kiln_barrier();
    value = exchange[kiln_thread() % KILN_SUBGROUPS];
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_BLOCK_LOG2 - KILN_SUBGROUP_LOG2; i++)
        value = kiln_nvfp4_greater(value, i);
    return value;
}

/* Writes the codes and the scale of the block that begins at a column: of values, which are lost, or of none, zeros.
 * encode: 1 over the row's scale. */
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

#endif
