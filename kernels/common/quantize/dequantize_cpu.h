/* dequantize_fp8 and dequantize_int8 on the CPU: the operators' definition. The includer defines
 * codes_load(to, codes, count), the numbers of bytes, and its kernel over kiln_dequantize. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_DEQUANTIZE_CPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_DEQUANTIZE_CPU_H

#include "kernels/common/cpu.h"
#include "kernels/common/quantize/dequantize_args.h"

enum { KILN_DEQUANTIZE_TILE = 1 << KILN_DEQUANTIZE_GROUP_LOG2 };

KILN_INLINE void kiln_dequantize(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_dequantize_args args = *(const kiln_dequantize_args *)arguments; /* a copy, which no store can change */
    const bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    float tile[KILN_DEQUANTIZE_TILE];
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            const float *scales = args.scales + (work.row >> args.rows_log2) * (uint64_t)args.scale_cols;
            for (uint64_t col = work.col, count; col < work.col_end; col += count) {
                /* Up to the end of a group. */
                count = kiln_min(work.col_end - col, KILN_DEQUANTIZE_TILE - col % KILN_DEQUANTIZE_TILE);
                const uint8_t *codes = args.codes + work.row * (uint64_t)args.codes_stride + col;
                void *y = kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride + col, dtype);
                float *target = kiln_tile_target(tile, y, dtype, nontemporal);
                const float scale = scales[args.grouped ? col >> KILN_DEQUANTIZE_GROUP_LOG2 : 0];
                kiln_prefetch(codes, count, KILN_PREFETCH_BYTES);
                codes_load(target, codes, count);
                KILN_INDEPENDENT
                for (size_t i = 0; i < count; i++)
                    target[i] *= scale;
                kiln_tile_write(y, target, count, dtype, nontemporal);
            }
        }
    if (nontemporal) kiln_nontemporal_fence();
}

#endif
