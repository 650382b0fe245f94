/* dequantize_nvfp4 on the CPU: the operator's definition. dequantize_nvfp4_gpu.c says what its blocks do.
 *
 * Floor: one read of the codes and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/dequantize_test. Bench: build/kiln bench dequantize_nvfp4 --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/nvfp4_scale.h"
#include "kernels/dequantize_nvfp4/dequantize_nvfp4_args.h"

enum { BLOCKS = KILN_TILE / KILN_NVFP4_BLOCK };

/* Converts the elements of a row from col on, whose blocks' scales are already in scales. */
KILN_INLINE void dequantize_tile(float *target, const uint8_t *codes, const float *scales, float global_scale,
                                 size_t count) {
    float each[KILN_TILE];
    KILN_INDEPENDENT
    for (size_t i = 0; i < (count + 1) / 2; i++)
        kiln_e2m1_pair_values(&each[2 * i], codes[i]);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        target[i] = each[i] * scales[i / KILN_NVFP4_BLOCK] * global_scale;
}

KILN_OUTLINED void dequantize_nvfp4(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_dequantize_nvfp4_args args =
        *(const kiln_dequantize_nvfp4_args *)arguments; /* a copy, which no store can change */
    const bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    const uint64_t scale_cols = (uint64_t)args.scale_cols;
    float tile[KILN_TILE], scales[BLOCKS];
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            const float global_scale = args.global_scale[args.each ? work.row : 0];
            for (uint64_t col = work.col, count; col < work.col_end; col += count) {
                count = kiln_min(work.col_end - col, KILN_TILE);
                const uint64_t first = col / KILN_NVFP4_BLOCK;
                const uint8_t *codes = args.codes + work.row * (uint64_t)args.codes_stride + col / 2;
                void *y = kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride + col, dtype);
                float *target = kiln_tile_target(tile, y, dtype, nontemporal);
                for (uint64_t i = 0; i < (count + KILN_NVFP4_BLOCK - 1) / KILN_NVFP4_BLOCK; i++)
                    scales[i] =
                        kiln_e4m3_value(args.scales[args.swizzled ? kiln_nvfp4_swizzled(work.row, first + i, scale_cols)
                                                                  : work.row * scale_cols + first + i]);
                kiln_prefetch(codes, count / 2, KILN_PREFETCH_BYTES);
                dequantize_tile(target, codes, scales, global_scale, count);
                kiln_tile_write(y, target, count, dtype, nontemporal);
            }
        }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(dequantize_nvfp4)
