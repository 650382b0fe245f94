/* rmsnorm_nvfp4_held, the kernel of rmsnorm_nvfp4 on NVIDIA from sm_80 on for aligned rows of up to 8192 columns.
 *
 * 64 threads share a row of up to 4096 columns, 128 a longer one, and each keeps four blocks of 16 columns of it in
 * registers from their load to their codes (codes_held_gpu.h). The squares are added in the order of 256 threads that
 * have every 256th eight: a thread adds those of two neighbouring ones of these, of 64 threads also those of two that
 * are 128 further. Not measured. */
#ifndef KILN_KERNELS_RMSNORM_NVFP4_HELD_H
#define KILN_KERNELS_RMSNORM_NVFP4_HELD_H

#include "kernels/arch/ptx.h"
#include "kernels/common/math/root.h"
#include "kernels/common/quantize/codes_held_gpu.h"
#include "kernels/common/quantize/rmsnorm_codes_args.h"

enum {
    HELD_MOST = KILN_RMSNORM_MOST,
    HELD_BLOCKS = KILN_RMSNORM_HELD / 2,
    HALF_WARP = KILN_SUBGROUP / 2, /* has what 32 of 256 threads would have */
    HALF_WARPS = HELD_MOST / HALF_WARP,
    HELD_WEIGHTS = KILN_VECTOR > 4 /* whether there are registers for those of all blocks */
};

/* The squares of two eights more than those of a sum. */
KILN_INLINE float2 held_add(float2 sum, const float *values) {
    return {sum.x + kiln_eight_squares(values), sum.y + kiln_eight_squares(values + KILN_EIGHT)};
}

/* The sum over half a warp. */
KILN_INLINE float held_add_half_warp(float sum) {
    sum += kiln_ptx_shfl_bfly<1>(sum);
    sum += kiln_ptx_shfl_bfly<2>(sum);
    sum += kiln_ptx_shfl_bfly<4>(sum);
    return sum + kiln_ptx_shfl_bfly<8>(sum);
}

/* The sum of the squares of a row. */
KILN_INLINE float held_sum(const float (*values)[KILN_NVFP4_BLOCK], bool half, float *exchange) {
    static_assert(HELD_BLOCKS == 4, "as these additions have it");
    const float2 none = {0.0f, 0.0f};
    const float2 even = held_add(none, values[0]), odd = held_add(half ? none : even, values[1]);
    const float2 third = held_add(half ? even : odd, values[2]), last = held_add(half ? odd : third, values[3]);
    float sum = half ? third.x + third.y : last.x + last.y, further = last.x + last.y;
    sum = held_add_half_warp(sum);
    further = held_add_half_warp(further);
    if (kiln_thread() % HALF_WARP == 0) {
        exchange[kiln_thread() / HALF_WARP] = sum;
        if (half) exchange[kiln_thread() / HALF_WARP + HALF_WARPS / 2] = further;
    }
    kiln_barrier();
    sum = exchange[0];
    KILN_UNROLL
    for (int i = 1; i < HALF_WARPS; i++)
        sum += exchange[i];
    return sum;
}

/* How many blocks are resident at least: with more of them ptxas spills. */
#if __CUDA_ARCH__ >= 890 && !defined(KILN_PART_f32)
#define HELD_RESIDENT 4
#else
#define HELD_RESIDENT 3
#endif

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(HELD_MOST, HELD_RESIDENT) void

KILN_ENTRY(rmsnorm_nvfp4_held, kiln_rmsnorm_codes_args) {
    KILN_SHARED __align__(16) float sums[HALF_WARPS];
    KILN_SHARED kiln_codes_held_exchange magnitudes;
    const kiln_codes_args *out = &args.out;
    const uint32_t threads = blockDim.x;
    const kiln_codes_place p = kiln_codes_place_of_held(out, true);
    if (p.beyond) return;
    if (!p.inside) {
        kiln_codes_held_fill(out, p);
        return;
    }
    const uint32_t blocks = (uint32_t)out->shape.cols / KILN_NVFP4_BLOCK;
    kiln_codes_held_block held[HELD_BLOCKS];
    float values[HELD_BLOCKS][KILN_NVFP4_BLOCK], others[KILN_NVFP4_BLOCK];
    const kiln_element *x = (const kiln_element *)args.x + p.row * (uint64_t)args.x_stride;
    kiln_codes_held_cursor cursor = kiln_codes_held_begin(x, p, blocks);
    KILN_UNROLL
    for (int i = 0; i < HELD_BLOCKS; i++)
        held[i] = kiln_codes_held_next(&cursor, threads);
    KILN_UNROLL
    for (int i = 0; i < HELD_BLOCKS; i++)
        kiln_codes_held_values(values[i], &held[i]);
    if (args.residual) {
        const kiln_element *residual = (const kiln_element *)args.residual + p.row * (uint64_t)args.residual_stride;
        cursor = kiln_codes_held_begin(residual, p, blocks);
        KILN_UNROLL
        for (int i = 0; i < HELD_BLOCKS; i++) {
            held[i] = kiln_codes_held_next(&cursor, threads);
            kiln_codes_held_values(others, &held[i]);
            KILN_UNROLL
            for (int e = 0; e < KILN_NVFP4_BLOCK; e++)
                values[i][e] += others[e];
        }
    }
    if (args.sum) {
        kiln_element *sum = (kiln_element *)args.sum + p.row * (uint64_t)args.sum_stride;
        KILN_UNROLL
        for (uint32_t i = 0, block = p.lane; i < HELD_BLOCKS; i++, block += threads) {
            if (block >= blocks) break;
            KILN_UNROLL
            for (uint32_t v = 0; v < KILN_HELD_VECTORS; v++)
                kiln_vector_store(sum + block * KILN_NVFP4_BLOCK + v * KILN_VECTOR,
                                  kiln_vector_of(values[i] + v * KILN_VECTOR));
        }
    }
    const kiln_element *weight = (const kiln_element *)args.weight;
    cursor = kiln_codes_held_begin(weight, p, blocks);
    if (weight && HELD_WEIGHTS) { /* under way while the block adds up */
        KILN_UNROLL
        for (int i = 0; i < HELD_BLOCKS; i++)
            held[i] = kiln_codes_held_next(&cursor, threads);
    }
    const float scale = kiln_rsqrt(KILN_FMA(held_sum(values, threads < HELD_MOST, sums), args.mean, args.eps));
    KILN_UNROLL
    for (uint32_t i = 0; i < HELD_BLOCKS; i++) {
        KILN_UNROLL
        for (int e = 0; e < KILN_NVFP4_BLOCK; e++)
            values[i][e] *= scale;
    }
    if (weight) {
        KILN_UNROLL
        for (int i = 0; i < HELD_BLOCKS; i++) {
            if (!HELD_WEIGHTS) held[i] = kiln_codes_held_next(&cursor, threads);
            kiln_codes_held_values(others, &held[i]);
            KILN_UNROLL
            for (int e = 0; e < KILN_NVFP4_BLOCK; e++)
                values[i][e] *= others[e];
        }
    }
    kiln_codes_held_put<HELD_BLOCKS>(out, p, true, blocks, values, &magnitudes);
}

#endif
