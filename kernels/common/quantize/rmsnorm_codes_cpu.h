/* rmsnorm_fp8, rmsnorm_int8 and rmsnorm_nvfp4 on the CPU: the operators' definition. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_CPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_CPU_H

#include "kernels/common/cpu.h"

#include "kernels/common/math/root.h"
#include "kernels/common/quantize/codes_cpu.h"
#include "kernels/common/quantize/rmsnorm_codes_args.h"

/* x, or x + residual, for a tile. */
KILN_INLINE void kiln_rmsnorm_sums(const kiln_rmsnorm_codes_args *args, float *sums, const kiln_codes_tile *tile,
                                   kiln_cpu_dtype dtype) {
    float addends_tile[KILN_TILE];
    const size_t n = tile->count;
    const void *x = kiln_at(args->x, tile->row * (uint64_t)args->x_stride + tile->col, dtype);
    const float *values = kiln_tile_load(sums, x, n, dtype);
    if (args->residual) {
        const void *residual = kiln_at(args->residual, tile->row * (uint64_t)args->residual_stride + tile->col, dtype);
        const float *addends = kiln_tile_load(addends_tile, residual, n, dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            sums[i] = values[i] + addends[i];
    } else if (values != sums) {
        memcpy(sums, values, n * sizeof *sums);
    }
    kiln_codes_tile_fill(sums, n);
}

/* The sum of a row's squares, in the order of the devices' threads: eights go in turn to as many sums as a row has
 * threads; these are added pairwise within 32 threads, and the sums of 32 threads in their order. */
KILN_INLINE float kiln_rmsnorm_squares(const kiln_rmsnorm_codes_args *args, uint64_t row, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE], eights[KILN_TILE_EIGHTS], sums[KILN_BLOCK] = {0};
    const uint32_t lanes = 1u << args->out.shape.lanes_log2;
    const size_t most = kiln_min(lanes, KILN_TILE_EIGHTS); /* that lie beside each other in sums */
    KILN_FOR_CODES_TILES(&args->out, row, at) {
        kiln_rmsnorm_sums(args, tile, &at, dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < KILN_TILE_EIGHTS; i++)
            eights[i] = kiln_eight_squares(tile + i * KILN_EIGHT);
        for (size_t i = 0; i < KILN_TILE_EIGHTS; i += most) {
            float *to = sums + ((at.first + i) & (lanes - 1));
            KILN_INDEPENDENT
            for (size_t j = 0; j < most; j++)
                to[j] += eights[i + j];
        }
    }
    for (uint32_t step = 1; step < lanes && step < KILN_SUBGROUP; step *= 2)
        for (uint32_t i = 0; i < lanes; i += 2 * step)
            sums[i] += sums[i + step];
    for (uint32_t i = KILN_SUBGROUP; i < lanes; i += KILN_SUBGROUP)
        sums[0] += sums[i];
    return sums[0];
}

/* The results of a tile of sums. */
KILN_INLINE void kiln_rmsnorm_weigh(const kiln_rmsnorm_codes_args *args, float *values, float scale,
                                    const kiln_codes_tile *tile, kiln_cpu_dtype dtype) {
    float weight_tile[KILN_TILE];
    if (args->weight) {
        const float *weights = kiln_tile_load(weight_tile, kiln_at(args->weight, tile->col, dtype), tile->count, dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < tile->count; i++)
            values[i] = values[i] * scale * weights[i];
    } else {
        for (size_t i = 0; i < tile->count; i++)
            values[i] *= scale;
    }
}

KILN_INLINE void kiln_rmsnorm_codes_row(const kiln_rmsnorm_codes_args *args, uint64_t row, kiln_codes_format format,
                                        kiln_cpu_dtype dtype) {
    float values[KILN_TILE];
    float scale = kiln_rsqrt(KILN_FMA(kiln_rmsnorm_squares(args, row, dtype), args->mean, args->eps));
    uint32_t greatest = 0;
    if (kiln_codes_of_row(&args->out)) KILN_FOR_CODES_TILES(&args->out, row, tile) {
            kiln_rmsnorm_sums(args, values, &tile, dtype);
            kiln_rmsnorm_weigh(args, values, scale, &tile, dtype);
            greatest = kiln_greatest_magnitude(greatest, values, tile.count);
        }
    float factor = kiln_codes_factor(&args->out, row, greatest, format);
    KILN_FOR_CODES_TILES(&args->out, row, tile) {
        kiln_rmsnorm_sums(args, values, &tile, dtype);
        if (args->sum) {
            void *sum = kiln_at_mut(args->sum, row * (uint64_t)args->sum_stride + tile.col, dtype);
            if (dtype == KILN_CPU_f32)
                memcpy(sum, values, tile.count * sizeof *values);
            else
                kiln_tile_write(sum, values, tile.count, dtype, false);
        }
        kiln_rmsnorm_weigh(args, values, scale, &tile, dtype);
        kiln_codes_put(&args->out, &tile, values, factor, format);
    }
}

KILN_INLINE void kiln_rmsnorm_codes(const void *arguments, const kiln_cpu_span *span, kiln_codes_format format,
                                    kiln_cpu_dtype dtype) {
    const kiln_rmsnorm_codes_args args =
        *(const kiln_rmsnorm_codes_args *)arguments; /* a copy, which no store can change */
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.out.shape, span, block); work.row < work.row_end; work.row++)
            kiln_rmsnorm_codes_row(&args, work.row, format, dtype);
}

#endif
