/* rmsnorm_nvfp4 for sm_90a: rmsnorm_nvfp4_held for aligned rows of up to 4096 columns, rmsnorm_codes_sm90a.h for longer
 * ones of which all fits into shared memory, rmsnorm_nvfp4_gpu.c for the others. The kernels may begin before the
 * preceding kernel has ended.
 *
 * rmsnorm_nvfp4_held: 128 threads share a row, and each keeps four eights of it in registers from their load to their
 * codes. The squares are added in the order of 256 threads: a thread adds those of two of these, of which the shuffles
 * then take one for even lanes and one for odd. Of each two blocks of 16 columns that two neighbouring threads share,
 * each finds one's scale.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16, before there was rmsnorm_nvfp4_held, with
 * 256 threads for a row: 87.0 us, where a copy of as many bytes takes 57.4. It issued nearly all the time, 33
 * instructions of machine code an element; rmsnorm_nvfp4_held has 24, for which the model wants 49 us. Not measured.
 * f16 would exceed the room for the operator's images. */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/codes_held_sm90a.h"
#include "kernels/common/rmsnorm_codes_sm90a.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 6) void

KILN_ENTRY(rmsnorm_nvfp4, kiln_rmsnorm_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_rmsnorm_held(&args, kept, &exchange, KILN_CODES_NVFP4))
        kiln_rmsnorm_codes(&args, kept, exchange.sums, KILN_CODES_NVFP4);
}

enum { LANES = KILN_CODES_HELD_LEAST, COUNT = KILN_CODES_HELD, WARPS = LANES / KILN_SUBGROUP };

/* The sum over the row of first, of thread n of 256, and second, of thread n + 128. */
KILN_INLINE float row_sum(float first, float second, float *exchange) {
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP, warp = kiln_thread() / KILN_SUBGROUP;
    const bool odd = lane & 1;
    float value = odd ? second : first;
    value += kiln_shuffle_xor(odd ? first : second, 1);
    KILN_UNROLL
    for (uint32_t mask = 2; mask < KILN_SUBGROUP; mask *= 2)
        value += kiln_shuffle_xor(value, mask);
    if (lane < 2) exchange[warp + lane * WARPS] = value;
    kiln_barrier();
    value = exchange[0];
    KILN_UNROLL
    for (int i = 1; i < 2 * WARPS; i++)
        value += exchange[i];
    return value;
}

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(LANES, 8) void

KILN_ENTRY(rmsnorm_nvfp4_held, kiln_rmsnorm_codes_args) {
    KILN_SHARED __align__(16) float sums[2 * WARPS];
    KILN_SHARED kiln_codes_held_exchange magnitudes;
    const kiln_codes_args *out = &args.out;
    const kiln_codes_place p = kiln_codes_place_of_held(out, LANES);
    if (p.beyond) return;
    const uint32_t eights = p.inside ? (uint32_t)out->shape.cols / KILN_EIGHT : 0;
    kiln_vector vectors[COUNT];
    float values[COUNT][KILN_EIGHT], others[KILN_EIGHT];
    kiln_codes_held_load(vectors, (const kiln_element *)args.x + p.row * (uint64_t)args.x_stride, eights, LANES);
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++)
        kiln_vector_values(values[i], vectors[i]);
    if (args.residual) {
        kiln_codes_held_load(vectors, (const kiln_element *)args.residual + p.row * (uint64_t)args.residual_stride,
                             eights, LANES);
        KILN_UNROLL
        for (int i = 0; i < COUNT; i++) {
            kiln_vector_values(others, vectors[i]);
            KILN_UNROLL
            for (int e = 0; e < KILN_EIGHT; e++)
                values[i][e] += others[e];
        }
    }
    if (args.sum) {
        kiln_element *sum = (kiln_element *)args.sum + p.row * (uint64_t)args.sum_stride;
        KILN_UNROLL
        for (uint32_t i = 0, eight = p.lane; i < COUNT; i++, eight += LANES)
            if (eight < eights) kiln_vector_store(sum + eight * KILN_EIGHT, kiln_vector_of(values[i]));
    }
    if (args.weight)
        kiln_codes_held_load(vectors, (const kiln_element *)args.weight, eights, LANES); /* while the block adds up */
    float first = kiln_eight_squares(values[0]), second = kiln_eight_squares(values[1]);
    first += kiln_eight_squares(values[2]);
    second += kiln_eight_squares(values[3]);
    const float scale = kiln_rsqrt(KILN_FMA(row_sum(first, second, sums), args.mean, args.eps));
    KILN_UNROLL
    for (int i = 0; i < COUNT; i++) {
        KILN_UNROLL
        for (int e = 0; e < KILN_EIGHT; e++)
            values[i][e] *= scale;
    }
    if (args.weight) {
        KILN_UNROLL
        for (int i = 0; i < COUNT; i++) {
            kiln_vector_values(others, vectors[i]);
            KILN_UNROLL
            for (int e = 0; e < KILN_EIGHT; e++)
                values[i][e] *= others[e];
        }
    }
    kiln_codes_held_put(out, p, eights, values, &magnitudes);
}

KILN_TUNED_PARTS(bf16)
KILN_PROGRAMMATIC(rmsnorm_nvfp4)
KILN_PROGRAMMATIC(rmsnorm_nvfp4_held)
KILN_TUNED_ASSEMBLER(12.4.131)
