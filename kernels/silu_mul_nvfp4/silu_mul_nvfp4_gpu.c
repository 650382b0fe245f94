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
 * The activation is that of glu_exactly.h, with the CPU's bits: 16 instructions an element for SiLU in machine code
 * of sm_90. The hardware's functions would take half of them, but differ in the last bits from target to target. GELU,
 * and SiLU of gates beyond its bound, go through a loop of one element.
 *
 * Floor: one read of gate and up and one write of the codes at memory bandwidth, 8.56 bytes an element of f32, 4.56 of
 * 16 bits. docs/kernel-report.md has the instructions of the texts and the time that they take by its model. Rows of
 * 512 columns, of which each thread has one block, take 57 to 58 an element on NVIDIA: 17 of them are SiLU and its
 * product, 12 conversions, magnitudes and what tells whether gates are within the bound, 9 the code; the others are a
 * thread's: addresses, the row's scale and the block's, and shared memory. From sm_80 on, in f32 from sm_100 on, this
 * kernel has what silu_mul_nvfp4_held.h does not do. Of rows of 32768 columns more than half are computed twice, 48 to
 * 68 an element: for 0.75 to 0.83 of the memory's time in 16 bits, and on sm_100 for 1.3 of it, in f32 for 0.7. AMD's
 * waves issue 33 to 46, of which SiLU takes as many: for 0.8 to 0.87 of the memory's time on gfx90a and gfx942, 1.2 on
 * gfx9-generic, which has no instruction for two f32, and 0.7 on gfx10-1-generic. An eight at a time in both passes,
 * with scales by shuffles, took 81. Measured on an H200 (driver 580.159.04, 2026-11-26), so: 165 us for 16384 x 4096 in
 * bf16. Tried: 16 columns at a time, the first of them kept in registers between the passes, which took 64 registers,
 * spilled with 16 bits and doubled the images.
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

/* What makes a row's results. */
typedef struct operation {
    const kiln_silu_mul_codes_args *args;
    kiln_codes_kept *kept;
    const kiln_element *gate, *up; /* the row's */
} operation;

/* kiln_nvfp4_results. In the last pass a block whose results are not kept takes the first place, whose own is done. */
KILN_INLINE float block_of(const void *of, float *values, uint32_t col, uint32_t number, bool last, float greatest) {
    const operation *o = (const operation *)of;
    const kiln_codes_args *out = &o->args->out;
    const bool own = number < out->kept;
    const uint32_t slot = own ? number : 0, cols = (uint32_t)out->shape.cols;
    if (!(last && own)) {
        KILN_LOOP
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t at = col + half * KILN_EIGHT, left = at < cols ? cols - at : 0;
            results_of(o->args, values, o->gate + at, o->up + at, left < KILN_EIGHT ? left : KILN_EIGHT);
            if (!last) greatest = kiln_eight_greatest(values, greatest);
            if (last || own) keep(o->kept, slot, half, values);
        }
    }
    if (last) recall(o->kept, slot, values);
    return greatest;
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
    const kiln_codes_place p = kiln_codes_place_of(&args.out);
    if (p.beyond) return;
    operation o;
    o.args = &args;
    o.kept = kept;
    o.gate = (const kiln_element *)args.gate + p.row * (uint64_t)args.gate_stride;
    o.up = (const kiln_element *)args.up + p.row * (uint64_t)args.up_stride;
    kiln_nvfp4_row_passes(&args.out, p, exchange, block_of, &o);
}
