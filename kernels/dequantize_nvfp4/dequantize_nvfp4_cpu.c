/* dequantize_nvfp4 on the CPU: the operator's definition. dequantize_nvfp4_gpu.c says what its blocks do.
 *
 * Floor: one read of the codes and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/dequantize_test. Bench: build/kiln bench dequantize_nvfp4 --device cpu */
#include "kernels/common/formats/float4_cpu.h"
#include "kernels/common/quantize/nvfp4_scale.h"
#include "kernels/dequantize_nvfp4/dequantize_nvfp4_args.h"

/* Converts count elements of a row from the beginning of a block on. */
KILN_INLINE void dequantize_tile(float *target, const kiln_dequantize_nvfp4_args *args, uint64_t row, uint64_t block,
                                 size_t count) {
    const uint64_t scale_cols = (uint64_t)args->scale_cols;
    const float global_scale = args->global_scale[args->each ? row : 0];
    float each[KILN_TILE];
    kiln_e2m1_load(each, args->codes + row * (uint64_t)args->codes_stride + block * KILN_NVFP4_BLOCK_BYTES, count);
    for (size_t first = 0; first < count; first += KILN_NVFP4_BLOCK, block++) {
        const uint64_t at = args->swizzled ? kiln_nvfp4_swizzled(row, block, scale_cols) : row * scale_cols + block;
        const float scale = kiln_e4m3_value(args->scales[at]);
        const size_t end = kiln_min(first + KILN_NVFP4_BLOCK, count);
        KILN_INDEPENDENT
        for (size_t i = first; i < end; i++)
            target[i] = each[i] * scale * global_scale;
    }
}

KILN_OUTLINED void dequantize_nvfp4(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_dequantize_nvfp4_args args =
        *(const kiln_dequantize_nvfp4_args *)arguments; /* a copy, which no store can change */
    const bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    float tile[KILN_TILE];
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++)
            for (uint64_t col = work.col, count; col < work.col_end; col += count) {
                count = kiln_min(work.col_end - col, KILN_TILE);
                const uint8_t *codes = args.codes + work.row * (uint64_t)args.codes_stride + col / 2;
                void *y = kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride + col, dtype);
                float *target = kiln_tile_target(tile, y, dtype, nontemporal);
                kiln_prefetch(codes, count / 2, KILN_PREFETCH_BYTES);
                dequantize_tile(target, &args, work.row, col / KILN_NVFP4_BLOCK, count);
                kiln_tile_write(y, target, count, dtype, nontemporal);
            }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(dequantize_nvfp4)
