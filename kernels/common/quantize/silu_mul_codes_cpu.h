/* silu_mul_fp8, silu_mul_int8 and silu_mul_nvfp4 on the CPU: the operators' definition. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_CPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_CPU_H

#include "kernels/common/cpu.h"

#include "kernels/common/math/glu_exactly.h"
#include "kernels/common/quantize/codes_cpu.h"
#include "kernels/common/quantize/silu_mul_codes_args.h"

KILN_INLINE void kiln_silu_mul_tile(const kiln_silu_mul_codes_args *args, float *values, const kiln_codes_tile *tile,
                                    kiln_cpu_dtype dtype) {
    float up_tile[KILN_TILE];
    const void *gate = kiln_at(args->gate, tile->row * (uint64_t)args->gate_stride + tile->col, dtype);
    const void *up = kiln_at(args->up, tile->row * (uint64_t)args->up_stride + tile->col, dtype);
    const float *gates = kiln_tile_read(values, gate, tile->count, dtype);
    const float *factors = kiln_tile_read(up_tile, up, tile->count, dtype);
    KILN_INDEPENDENT
    for (size_t i = 0; i < tile->count; i++)
        values[i] = kiln_glu_exactly(gates[i], args->bound, args->coefficients) * factors[i];
    kiln_codes_tile_fill(values, tile->count);
}

KILN_INLINE void kiln_silu_mul_codes_row(const kiln_silu_mul_codes_args *args, uint64_t row, kiln_codes_format format,
                                         kiln_cpu_dtype dtype) {
    float values[KILN_TILE];
    uint32_t greatest = 0;
    if (kiln_codes_of_row(&args->out)) KILN_FOR_CODES_TILES(&args->out, row, tile) {
            kiln_silu_mul_tile(args, values, &tile, dtype);
            greatest = kiln_greatest_magnitude(greatest, values, tile.count);
        }
    float factor = kiln_codes_factor(&args->out, row, greatest, format);
    KILN_FOR_CODES_TILES(&args->out, row, tile) {
        kiln_silu_mul_tile(args, values, &tile, dtype);
        kiln_codes_put(&args->out, &tile, values, factor, format);
    }
}

KILN_INLINE void kiln_silu_mul_codes(const void *arguments, const kiln_cpu_span *span, kiln_codes_format format,
                                     kiln_cpu_dtype dtype) {
    const kiln_silu_mul_codes_args args =
        *(const kiln_silu_mul_codes_args *)arguments; /* a copy, which no store can change */
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.out.shape, span, block); work.row < work.row_end; work.row++)
            kiln_silu_mul_codes_row(&args, work.row, format, dtype);
}

#endif
