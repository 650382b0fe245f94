/* silu_mul_nvfp4 for sm_90a: silu_mul_nvfp4_held for aligned rows of up to 16384 columns, silu_mul_nvfp4_gpu.c for the
 * others. The kernels may begin before the preceding kernel has ended.
 *
 * silu_mul_nvfp4_held: a block has a row, and each thread keeps four eights of it in registers until their codes are
 * made (codes_held_sm90a.h).
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16, before there was silu_mul_nvfp4_held, with
 * 256 threads for a row and two eights for each: 123.0 us, where a copy of as many bytes takes 102; four such blocks
 * resident instead of five, 129. It issued most of the time, some 47 instructions of machine code an element;
 * silu_mul_nvfp4_held has 40, for which the model wants 80 us. Not measured. Tried: one loop for SiLU in all ranges and
 * GELU, which has five instructions more. f16 would exceed the room for the operator's images. */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/codes_held_sm90a.h"
#include "kernels/common/silu_mul_codes_sm90a.h"
#include "kernels/common/tuned.h"

#include "kernels/silu_mul_nvfp4/silu_mul_nvfp4_gpu.c"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_CODES_HELD_MOST, 2) void

KILN_ENTRY(silu_mul_nvfp4_held, kiln_silu_mul_codes_args) {
    enum { COUNT = KILN_CODES_HELD };
    KILN_SHARED kiln_codes_held_exchange magnitudes;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept); /* [2 * COUNT, threads] */
    const kiln_codes_args *out = &args.out;
    const uint32_t threads = blockDim.x;
    const kiln_codes_place p = kiln_codes_place_of_held(out, threads);
    if (p.beyond) return;
    const uint32_t eights = p.inside ? (uint32_t)out->shape.cols / KILN_EIGHT : 0;
    const kiln_element *gate = (const kiln_element *)args.gate + p.row * (uint64_t)args.gate_stride;
    const kiln_element *up = (const kiln_element *)args.up + p.row * (uint64_t)args.up_stride;
    kiln_vector gates[COUNT], ups[COUNT];
    float values[COUNT][KILN_EIGHT];
    kiln_codes_held_load(gates, gate, eights, threads);
    kiln_codes_held_load(ups, up, eights, threads);
    bool within = args.coefficients[1] == 0.0f;
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++)
        within &= kiln_silu_mul_within(gates[i], args.bound);
    if (within) {
        KILN_UNROLL
        for (int i = 0; i < COUNT; i++)
            kiln_silu_mul_values(&args, values[i], gates[i], ups[i], true);
    } else { /* in a loop, for the size of the image: eights are loaded again */
        KILN_LOOP
        for (uint32_t i = 0, eight = p.lane; i < COUNT; i++, eight += threads) {
            kiln_vector one[] = {{}, {}};
            if (eight < eights) {
                one[0] = kiln_vector_load(gate + eight * KILN_EIGHT);
                one[1] = kiln_vector_load(up + eight * KILN_EIGHT);
            }
            kiln_silu_mul_values(&args, values[0], one[0], one[1], false);
            KILN_UNROLL
            for (uint32_t half = 0; half < 2; half++) {
                const float *quad = values[0] + half * (KILN_EIGHT / 2);
                kept[(2 * i + half) * threads + p.lane] = {{quad[0], quad[1], quad[2], quad[3]}};
            }
        }
        KILN_UNROLL
        for (int half = 0; half < 2 * COUNT; half++) {
            const kiln_codes_kept quad = kept[half * threads + p.lane];
            KILN_UNROLL
            for (int e = 0; e < KILN_EIGHT / 2; e++)
                values[half / 2][half % 2 * (KILN_EIGHT / 2) + e] = quad.values[e];
        }
    }
    kiln_codes_held_put(out, p, eights, values, &magnitudes);
}

KILN_TUNED_PARTS(bf16)
KILN_PROGRAMMATIC(silu_mul_nvfp4)
KILN_PROGRAMMATIC(silu_mul_nvfp4_held)
KILN_TUNED_ASSEMBLER(12.4.131)
