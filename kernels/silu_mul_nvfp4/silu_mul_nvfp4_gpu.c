/* silu_mul_nvfp4: r = activation(gate) * up, in f32, which is not stored; codes = E2M1 of r / (scale * g), with a scale
 * in E4M3 for each block of 16 columns, and g = amax / 2688 for each row.
 *
 * 16 or 32 threads share a row of up to 512 columns, and a whole block shares a longer one. A thread has blocks of 16
 * columns, so that none tells another a scale, and computes them an eight at a time. Where a whole row has one scale, a
 * first pass finds the row's greatest magnitude, and the results stay in shared memory until the second, of which a
 * block takes at most a quarter; what is beyond (8192 columns on sm_80, 12288 on sm_90, 4096 on sm_75 and AMD's
 * devices) is computed again from inputs that are in a cache.
 *
 * On AMD, for f32 only where a wave has 64 threads, SiLU's results of aligned rows of up to 8192 columns stay in the
 * registers of as many threads as have three or four eights of them each (nvfp4_four_gpu.h). Not measured.
 *
 * The activation is that of glu_exactly.h, with the CPU's bits: 17 instructions an element for SiLU in machine code
 * of sm_90. The hardware's functions would take half of them, but differ in the last bits from target to target. GELU,
 * and SiLU of gates beyond its bound, go through a loop of one element.
 *
 * Floor: one read of gate and up and one write of the codes at memory bandwidth, 8.56 bytes an element of f32, 4.56 of
 * 16 bits. docs/kernel-report.md has the instructions of the texts and the time that they take by its model: of rows of
 * 512 columns, 57 an element on sm_80, where each thread has one block, which is for longer than 0.6 of the memory's
 * time from sm_80 on but on sm_86 and the RTX cards. 18 of them are SiLU and its product, 12 conversions, magnitudes
 * and what tells whether gates are within the bound, 9 the code; the others are a thread's: addresses, the row's scale
 * and the block's, and shared memory. AMD's waves issue 33 to 46, of which SiLU takes as many. An eight at a time in
 * both passes, with scales by shuffles, took 81. Measured on an H200 (driver 580.159.04, 2026-11-26), so: 165 us for
 * 16384 x 4096 in bf16. Tried: 16 columns at a time, the first of them kept in registers between the passes, which took
 * 64 registers, spilled with 16 bits and doubled the images.
 *
 * Test: build/tests/ops/codes_test. Bench: build/kiln bench silu_mul_nvfp4 */
#include "kernels/common/device.h"
#include "kernels/common/math/glu_exactly.h"
#include "kernels/common/quantize/nvfp4_row_gpu.h"
#include "kernels/common/quantize/silu_mul_codes_args.h"
#if defined(__HIP__) && (defined(__GFX9__) || !defined(KILN_PART_f32))
#include "kernels/common/quantize/silu_mul_codes_four_gpu.h"
#endif

/* The results of any gates, one after the other, for the size of the image: they are shifted in through the last
 * place. */
KILN_INLINE void any_results_of(const kiln_silu_mul_codes_args *args, float *gates, float *ups) {
    KILN_LOOP
    for (int i = 0; i < KILN_EIGHT; i++) {
        const float result = kiln_glu_exactly(gates[0], args->bound, args->coefficients) * ups[0];
        KILN_UNROLL
        for (int e = 0; e + 1 < KILN_EIGHT; e++) {
            gates[e] = gates[e + 1];
            ups[e] = ups[e + 1];
        }
        gates[KILN_EIGHT - 1] = result;
    }
}

/* The results of an eight. */
KILN_INLINE void results_of(const kiln_silu_mul_codes_args *args, float *values, const kiln_element *gate,
                            const kiln_element *up, uint32_t count) {
    const kiln_eight_bits gates = kiln_eight_load(gate, count, args->out.shape.wide);
    const kiln_eight_bits others = kiln_eight_load(up, count, args->out.shape.wide);
    float ups[KILN_EIGHT], squares = 0.0f;
    kiln_eight_values(values, gates);
    kiln_eight_values(ups, others);
    KILN_UNROLL
    for (int i = 0; i < KILN_EIGHT; i++)
        squares = KILN_FMA(values[i], values[i], squares);
    /* By more than the rounding of their sum within the bound. NaN is not. */
    if (args->coefficients[1] == 0.0f && squares < args->bound * args->bound * 0.999f) {
        KILN_UNROLL
        for (int i = 0; i < KILN_EIGHT; i++)
            values[i] = kiln_glu_within(values[i], values[i]) * ups[i];
    } else {
        any_results_of(args, values, ups);
    }
}

/* A block's results in shared memory, of which a thread finds its own alone: those of an eight are stored, and all are
 * read. */
KILN_INLINE void keep(kiln_codes_kept *kept, uint32_t slot, uint32_t half, const float *values) {
    kiln_eight_keep(kept, 2 * slot + half, values);
}
KILN_INLINE void recall(const kiln_codes_kept *kept, uint32_t slot, float *values) {
    kiln_eight_recall(kept, 2 * slot, values);
    kiln_eight_recall(kept, 2 * slot + 1, values + KILN_EIGHT);
}

/* A block's rows. In the last pass a block whose results are not kept takes the first place, whose own is done. */
KILN_INLINE void silu_mul_rows(const kiln_silu_mul_codes_args *args, kiln_codes_kept *kept, float *exchange) {
    const kiln_codes_args *out = &args->out;
    const kiln_codes_place p = kiln_codes_place_of(out);
    if (p.beyond) return;
    const kiln_element *gate = (const kiln_element *)args->gate + p.row * (uint64_t)args->gate_stride;
    const kiln_element *up = (const kiln_element *)args->up + p.row * (uint64_t)args->up_stride;
    const uint32_t cols = p.inside ? (uint32_t)out->shape.cols : 0, step = p.lanes * KILN_NVFP4_BLOCK;
    const kiln_nvfp4_row row = kiln_nvfp4_row_of(out, p);
    float state = 0.0f; /* at first the greatest magnitude */
    KILN_LOOP
    for (uint32_t last = kiln_codes_of_row(out) ? 0 : 1; last < 2; last++) {
        if (last) state = kiln_nvfp4_row_encode(out, p, state);
        KILN_LOOP
        for (uint32_t number = 0, col = p.lane * KILN_NVFP4_BLOCK; col < (last ? row.end : cols);
             number++, col += step) {
            const bool own = number < out->kept;
            const uint32_t slot = own ? number : 0;
            float values[KILN_NVFP4_BLOCK];
            if (col < cols && !(last && own)) {
                KILN_LOOP
                for (uint32_t half = 0; half < 2; half++) {
                    const uint32_t at = col + half * KILN_EIGHT, left = at < cols ? cols - at : 0;
                    results_of(args, values, gate + at, up + at, left < KILN_EIGHT ? left : KILN_EIGHT);
                    if (!last) state = kiln_eight_greatest(values, state);
                    if (last || own) keep(kept, slot, half, values);
                }
            }
            if (!last) continue;
            if (col < cols) recall(kept, slot, values);
            kiln_nvfp4_row_put(&row, col, col < cols, values, state);
        }
        if (!last) state = kiln_row_greatest(state, out->shape.lanes_log2, exchange);
    }
}

KILN_ENTRY(silu_mul_nvfp4, kiln_silu_mul_codes_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
#if defined(KILN_KERNELS_COMMON_QUANTIZE_CODES_FOUR_GPU_H)
    if (args.four) {
        kiln_silu_mul_four(&args, exchange, KILN_CODES_NVFP4);
        return;
    }
#endif
    silu_mul_rows(&args, kept, exchange);
}
