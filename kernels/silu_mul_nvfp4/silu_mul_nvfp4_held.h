/* silu_mul_nvfp4_held, the kernel of silu_mul_nvfp4 on NVIDIA from sm_80 on for aligned rows of up to 16384 columns.
 *
 * A thread keeps four blocks of 16 columns of a row, two of f32, in registers until their codes are made
 * (codes_held_gpu.h). A block of threads has a row, or as many rows of up to 2048 columns, 1024 of f32, as it has
 * threads for, of which 4 to 32 share each.
 *
 * By the model of docs/kernel-report.md elements of 16 bits issue for longer than 0.6 of the memory's time on sm_80,
 * for 0.66 to 0.68, and sm_100, for 0.91 to 0.95; on sm_90a they take 0.58 to 0.6. Of 30 instructions an element in
 * bf16 there 17 are SiLU and its product, 3 conversions and the greatest magnitude, 6 the product and the code of E2M1
 * without an instruction for it, and 4 those of a thread: addresses, the row's scale and four blocks' ones. On sm_100,
 * which converts by an instruction and computes two at a time, 22 are left, but the memory is 2.4 times as fast as an
 * H100's. Two blocks a thread took 4 more. Not measured. */
#ifndef KILN_KERNELS_SILU_MUL_NVFP4_HELD_H
#define KILN_KERNELS_SILU_MUL_NVFP4_HELD_H

#include "kernels/common/math/glu_packed.h"
#include "kernels/common/quantize/codes_held_gpu.h"
#include "kernels/common/quantize/silu_mul_codes_args.h"
#include "kernels/common/quantize/silu_mul_gates.h"

enum { HELD_BLOCKS = KILN_VECTOR > 4 ? KILN_SILU_MUL_HELD / 2 : KILN_SILU_MUL_HELD / 4, HELD_LAST = HELD_BLOCKS - 1 };

/* Where a thread reads its next blocks of gate and up, and how many of the row's are left from there on. */
typedef struct held_cursor {
    const kiln_element *gate, *up;
    int32_t left;
} held_cursor;

KILN_INLINE held_cursor held_begin(const kiln_silu_mul_codes_args *args, kiln_codes_place p, uint32_t blocks) {
    const uint32_t col = p.lane * KILN_NVFP4_BLOCK;
    return {(const kiln_element *)args->gate + p.row * (uint64_t)args->gate_stride + col,
            (const kiln_element *)args->up + p.row * (uint64_t)args->up_stride + col, (int32_t)(blocks - p.lane)};
}

/* A thread's next blocks; zeros beyond the row. */
KILN_INLINE void held_next(held_cursor *cursor, uint32_t lanes, kiln_codes_held_block *gates,
                           kiln_codes_held_block *ups) {
    if (cursor->left > 0) {
        kiln_codes_held_load(gates, cursor->gate);
        kiln_codes_held_load(ups, cursor->up);
    } else {
        kiln_codes_held_clear(gates);
        kiln_codes_held_clear(ups);
    }
    cursor->gate += lanes * KILN_NVFP4_BLOCK;
    cursor->up += lanes * KILN_NVFP4_BLOCK;
    cursor->left -= (int32_t)lanes;
}

/* Takes the gates of a block. */
KILN_INLINE void held_take(kiln_gates *gates, const kiln_codes_held_block *held) {
    KILN_UNROLL
    for (int v = 0; v < KILN_HELD_VECTORS; v++) {
        const uint32_t *words = held->vectors[v].words;
#if defined(KILN_PART_f32)
        kiln_gates_take(gates, kiln_pack(kiln_float(words[0]), kiln_float(words[1])));
        kiln_gates_take(gates, kiln_pack(kiln_float(words[2]), kiln_float(words[3])));
#else
        KILN_UNROLL
        for (int i = 0; i < 4; i++)
            kiln_gates_take(gates, words[i]);
#endif
    }
}

/* The results of a block of SiLU whose gates are within its bound. */
KILN_INLINE void held_results(float *values, const kiln_codes_held_block *gates, const kiln_codes_held_block *ups) {
    float factors[KILN_NVFP4_BLOCK];
    kiln_codes_held_values(values, gates);
    kiln_codes_held_values(factors, ups);
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i += 2) {
        const kiln_packed results = kiln_packed_silu_within(kiln_pack(values[i], values[i + 1]));
        kiln_unpack(&values[i], kiln_packed_mul(results, kiln_pack(factors[i], factors[i + 1])));
    }
}

/* Those of any activation and any gates. */
KILN_INLINE void held_any(const kiln_silu_mul_codes_args *args, float *values, const kiln_codes_held_block *gates,
                          const kiln_codes_held_block *ups) {
    float factors[KILN_NVFP4_BLOCK];
    kiln_codes_held_values(values, gates);
    kiln_codes_held_values(factors, ups);
    KILN_UNROLL
    for (int i = 0; i < KILN_NVFP4_BLOCK; i++) {
        float argument = kiln_fast_min(values[i], args->bound);
        if (args->coefficients[1] != 0.0f) argument = kiln_glu_argument(argument, args->coefficients);
        values[i] = kiln_glu_result(values[i], argument, args->bound) * factors[i];
    }
}

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_SILU_MUL_MOST, 2) void

KILN_ENTRY(silu_mul_nvfp4_held, kiln_silu_mul_codes_args) {
    KILN_SHARED kiln_codes_held_exchange magnitudes;
    const kiln_codes_args *out = &args.out;
    const bool of_block = out->shape.lanes_log2 == KILN_BLOCK_LOG2;
    const kiln_codes_place p = kiln_codes_place_of_held(out, of_block);
    if (of_block && p.beyond) return;
    const uint32_t blocks = p.inside ? (uint32_t)out->shape.cols / KILN_NVFP4_BLOCK : 0;
    held_cursor cursor = held_begin(&args, p, blocks);
    kiln_codes_held_block gates[HELD_BLOCKS], ups[HELD_BLOCKS];
    float values[HELD_BLOCKS][KILN_NVFP4_BLOCK];
    KILN_UNROLL
    for (int i = 0; i < HELD_BLOCKS; i++)
        held_next(&cursor, p.lanes, &gates[i], &ups[i]);
    kiln_gates seen = kiln_gates_none();
    KILN_UNROLL
    for (int i = 0; i < HELD_BLOCKS; i++)
        held_take(&seen, &gates[i]);
    if (args.coefficients[1] == 0.0f && kiln_gates_within(seen, args.bound)) {
        KILN_UNROLL
        for (int i = 0; i < HELD_BLOCKS; i++)
            held_results(values[i], &gates[i], &ups[i]);
    } else { /* in a loop, for the size of the image: blocks are loaded again, and shifted in through the last place */
        cursor = held_begin(&args, p, blocks);
        KILN_LOOP
        for (int i = 0; i < HELD_BLOCKS; i++) {
            KILN_UNROLL
            for (int e = 0; e < HELD_LAST * KILN_NVFP4_BLOCK; e++)
                values[e / KILN_NVFP4_BLOCK][e % KILN_NVFP4_BLOCK] =
                    values[e / KILN_NVFP4_BLOCK + 1][e % KILN_NVFP4_BLOCK];
            held_next(&cursor, p.lanes, &gates[0], &ups[0]);
            held_any(&args, values[HELD_LAST], &gates[0], &ups[0]);
        }
    }
    kiln_codes_held_put<HELD_BLOCKS>(out, p, of_block, blocks, values, &magnitudes);
}

#endif
