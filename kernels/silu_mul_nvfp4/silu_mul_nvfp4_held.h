/* silu_mul_nvfp4_held, the kernel of silu_mul_nvfp4 on NVIDIA from sm_80 on for aligned rows of up to 16384 columns.
 *
 * A block has a row, and each thread keeps two blocks of 16 columns of it in registers until their codes are made
 * (codes_held_gpu.h).
 *
 * By the model of docs/kernel-report.md elements of 16 bits issue for longer than 0.6 of the memory's time: 0.66 on
 * sm_90a, 0.80 to 0.84 on sm_80 and sm_90 and 1.1 on sm_100. Of 34 instructions an element in bf16 on sm_90a 18 are
 * SiLU and its product, 3 conversions and the greatest magnitude, 6 the product and the code of E2M1 without an
 * instruction for it, and 7 those of a thread: addresses, the row's scale and two blocks' ones. On sm_100, which
 * converts by an instruction and computes two at a time, 25 are left, but the memory is 2.4 times as fast as an H100's.
 * Not measured. */
#ifndef KILN_KERNELS_SILU_MUL_NVFP4_HELD_H
#define KILN_KERNELS_SILU_MUL_NVFP4_HELD_H

#include "kernels/common/math/glu_exactly.h"
#include "kernels/common/quantize/codes_held_gpu.h"
#include "kernels/common/quantize/silu_mul_codes_args.h"

#if __CUDA_ARCH__ >= 1000
#include "kernels/common/math/glu_packed.h"
#endif

enum { HELD_BLOCKS = KILN_SILU_MUL_HELD / 2, HELD_QUADS = KILN_NVFP4_BLOCK / 4 };

/* Whether no element of a block is beyond a bound in magnitude. NaN is. */
KILN_INLINE bool held_within(const kiln_codes_held_block *held, float bound) {
    bool within = true;
#if KILN_PAIRS_COMPARED
    float pair[2];
    uint32_t greatest = held->vectors[0].words[0];
    KILN_UNROLL
    for (int i = 1; i < 8; i++)
        greatest = kiln_pair_greater_or_nan(greatest, held->vectors[i / 4].words[i % 4]);
    kiln_pair_values(pair, greatest);
    within = __builtin_fabsf(pair[0]) <= bound && __builtin_fabsf(pair[1]) <= bound;
#elif defined(KILN_PART_f32) && __CUDA_ARCH__ >= 1000
    kiln_packed squares = kiln_packed_of(0.0f);
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i += 2) {
        const uint32_t *words = &held->vectors[i / 4].words[i % 4];
        const kiln_packed pair = kiln_pack(kiln_float(words[0]), kiln_float(words[1]));
        squares = kiln_packed_fma(pair, pair, squares);
    }
    within = kiln_packed_within(squares, bound);
#elif defined(KILN_PART_f32)
    uint32_t greatest = 0;
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i++) {
        const uint32_t magnitude = held->vectors[i / 4].words[i % 4] & 0x7fffffffu;
        greatest = magnitude > greatest ? magnitude : greatest;
    }
    within = greatest <= kiln_bits(bound);
#else
    float values[KILN_NVFP4_BLOCK];
    kiln_codes_held_values(values, held);
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i++)
        within &= __builtin_fabsf(values[i]) <= bound;
#endif
    return within;
}

/* The results of a block. `within`: the activation is SiLU, and no gate is beyond its bound. */
KILN_INLINE void held_results(const kiln_silu_mul_codes_args *args, float *values, const kiln_codes_held_block *gates,
                              const kiln_codes_held_block *ups, bool within) {
    float factors[KILN_NVFP4_BLOCK];
    kiln_codes_held_values(values, gates);
    kiln_codes_held_values(factors, ups);
    if (within) {
        KILN_UNROLL
        for (int i = 0; i < KILN_NVFP4_BLOCK; i += 2) {
#if __CUDA_ARCH__ >= 1000
            const kiln_packed results = kiln_packed_silu_within(kiln_pack(values[i], values[i + 1]));
            kiln_unpack(&values[i], kiln_packed_mul(results, kiln_pack(factors[i], factors[i + 1])));
#else
            values[i] = kiln_glu_within(values[i], values[i]) * factors[i];
            values[i + 1] = kiln_glu_within(values[i + 1], values[i + 1]) * factors[i + 1];
#endif
        }
        return;
    }
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i++) {
        float argument = kiln_fast_min(values[i], args->bound);
        if (args->coefficients[1] != 0.0f) argument = kiln_glu_argument(argument, args->coefficients);
        values[i] = kiln_glu_result(values[i], argument, args->bound) * factors[i];
    }
}

#undef KILN_ENTRY_HEAD
#if defined(KILN_PART_f32)
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_SILU_MUL_MOST) void
#else
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_SILU_MUL_MOST, 2) void
#endif

KILN_ENTRY(silu_mul_nvfp4_held, kiln_silu_mul_codes_args) {
    KILN_SHARED kiln_codes_held_exchange magnitudes;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept); /* [HELD_BLOCKS * HELD_QUADS, threads] */
    const kiln_codes_args *out = &args.out;
    const uint32_t threads = blockDim.x;
    const kiln_codes_place p = kiln_codes_place_of_held(out, threads);
    if (p.beyond) return;
    if (!p.inside) {
        kiln_codes_held_fill(out, p);
        return;
    }
    const uint32_t blocks = (uint32_t)out->shape.cols / KILN_NVFP4_BLOCK;
    kiln_codes_held_cursor gate =
        kiln_codes_held_begin((const kiln_element *)args.gate + p.row * (uint64_t)args.gate_stride, p, blocks);
    kiln_codes_held_cursor up =
        kiln_codes_held_begin((const kiln_element *)args.up + p.row * (uint64_t)args.up_stride, p, blocks);
    kiln_codes_held_block gates[HELD_BLOCKS], ups[HELD_BLOCKS];
    float values[HELD_BLOCKS][KILN_NVFP4_BLOCK];
    KILN_UNROLL
    for (int i = 0; i < HELD_BLOCKS; i++)
        gates[i] = kiln_codes_held_next(&gate, threads);
    KILN_UNROLL
    for (int i = 0; i < HELD_BLOCKS; i++)
        ups[i] = kiln_codes_held_next(&up, threads);
    bool within = args.coefficients[1] == 0.0f;
    KILN_UNROLL
    for (int i = 0; i < HELD_BLOCKS; i++)
        within &= held_within(&gates[i], args.bound);
    if (within) {
        KILN_UNROLL
        for (int i = 0; i < HELD_BLOCKS; i++)
            held_results(&args, values[i], &gates[i], &ups[i], true);
    } else { /* in a loop, for the size of the image: blocks are loaded again */
        gate = kiln_codes_held_begin((const kiln_element *)args.gate + p.row * (uint64_t)args.gate_stride, p, blocks);
        up = kiln_codes_held_begin((const kiln_element *)args.up + p.row * (uint64_t)args.up_stride, p, blocks);
        KILN_LOOP
        for (uint32_t i = 0; i < HELD_BLOCKS; i++) {
            const kiln_codes_held_block one = kiln_codes_held_next(&gate, threads);
            const kiln_codes_held_block other = kiln_codes_held_next(&up, threads);
            held_results(&args, values[0], &one, &other, false);
            KILN_UNROLL
            for (uint32_t q = 0; q < HELD_QUADS; q++) {
                const float *quad = values[0] + q * 4;
                kept[(HELD_QUADS * i + q) * threads + p.lane] = {{quad[0], quad[1], quad[2], quad[3]}};
            }
        }
        KILN_UNROLL
        for (int q = 0; q < HELD_BLOCKS * HELD_QUADS; q++) {
            const kiln_codes_kept quad = kept[q * threads + p.lane];
            KILN_UNROLL
            for (int e = 0; e < 4; e++)
                values[q / HELD_QUADS][q % HELD_QUADS * 4 + e] = quad.values[e];
        }
    }
    kiln_codes_held_put<HELD_BLOCKS>(out, p, blocks, values, &magnitudes);
}

#endif
