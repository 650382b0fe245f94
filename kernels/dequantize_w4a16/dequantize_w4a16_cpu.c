/* dequantize_w4a16 on the CPU: the operator's definition. dequantize_w4a16_gpu.c says what its blocks do.
 *
 * Floor: one read of the weights and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/dequantize_w4a16_test. Bench: build/kiln bench dequantize_w4a16 --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/formats/small_integer.h"
#include "kernels/dequantize_w4a16/dequantize_w4a16_args.h"

KILN_INLINE float number_at(const void *data, uint64_t at, kiln_cpu_dtype dtype) {
    return kiln_element_load(kiln_at(data, at, dtype), dtype);
}

KILN_OUTLINED void dequantize_w4a16(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_dequantize_w4a16_args args =
        *(const kiln_dequantize_w4a16_args *)arguments; /* a copy, which no store can change */
    const bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    const uint64_t k_end = (uint64_t)args.shape.cols;
    float tile[KILN_TILE], integers[KILN_TILE];
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++)
            for (uint64_t col = work.col, count; col < work.col_end; col += count) {
                const uint64_t group = col >> args.group_log2, group_end = (group + 1) << args.group_log2;
                const uint64_t at = work.row * (uint64_t)args.scale_row_step + group * (uint64_t)args.scale_group_step;
                const float scale = number_at(args.scales, at, dtype);
                const float zero = args.zeros ? number_at(args.zeros, at, dtype) : 0;
                const uint8_t *codes = args.weights + work.row * (k_end / 2) + col / 2;
                void *y = kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride + col, dtype);
                float *target = kiln_tile_target(tile, y, dtype, nontemporal);
                count = kiln_min(kiln_min(work.col_end, group_end) - col, KILN_TILE);
                kiln_prefetch(codes, count / 2, KILN_PREFETCH_BYTES);
                KILN_INDEPENDENT
                for (size_t i = 0; i < count / 2; i++)
                    kiln_int4_pair_values(&integers[2 * i], codes[i]);
                KILN_INDEPENDENT
                for (size_t i = 0; i < count; i++)
                    target[i] = KILN_FMA(integers[i], scale, zero);
                kiln_tile_write(y, target, count, dtype, nontemporal);
            }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(dequantize_w4a16)
