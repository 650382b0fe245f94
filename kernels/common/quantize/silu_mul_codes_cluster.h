/* silu_mul_fp8 and silu_mul_int8 on sm_90a for few long rows that have one scale each, SiLU's, with the format's
 * greatest number for smax: a cluster of eight blocks has a row, and each thread up to two eights, so that a row's
 * inputs are asked for at once and its arithmetic is on eight multiprocessors. The blocks meet once: each warp tells
 * all of them the greatest magnitude that it has. Threads beyond the row have its last eight again, which changes none.
 */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_CLUSTER_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_CLUSTER_H

#include "kernels/arch/sm90a.h"
#include "kernels/common/quantize/silu_mul_codes_cluster_args.h"
#include "kernels/common/quantize/silu_mul_codes_eights.h"

#define KILN_SILU_MUL_CLUSTER_HEAD \
    extern "C" __global__ __cluster_dims__(KILN_SILU_MUL_CLUSTER, 1, 1) __launch_bounds__(KILN_SILU_MUL_THREADS) void

enum { KILN_SILU_MUL_TOLD = KILN_SILU_MUL_CLUSTER / 4 }; /* quads of a warp */

/* What the warps of a cluster tell a block: the bits of their greatest magnitudes, of each warp's side by side. */
typedef struct kiln_silu_mul_told {
    uint4 of[KILN_SILU_MUL_THREADS / KILN_SUBGROUP * KILN_SILU_MUL_TOLD];
} kiln_silu_mul_told;

/* The greatest of the cluster's, whose blocks have that many warps. All of them have begun, and have read what they
 * were told before. */
KILN_INLINE float kiln_silu_mul_tell(float greatest, kiln_silu_mul_told *told, uint32_t warps) {
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP, warp = kiln_thread() / KILN_SUBGROUP;
    const float own = kiln_float(kiln_sm90a_warp_greatest(kiln_bits(greatest)));
    if (lane < KILN_SILU_MUL_CLUSTER) {
        const uint32_t *place = (const uint32_t *)&told->of[warp * KILN_SILU_MUL_TOLD] + kiln_tile();
        kiln_sm90a_store_remote(kiln_sm90a_remote(kiln_sm90a_shared(place), lane), own);
    }
    __syncwarp();
    kiln_sm90a_cluster_sync();
    uint32_t all = 0;
    if (lane < warps * KILN_SILU_MUL_TOLD) {
        const uint4 quad = told->of[lane];
        all = max(max(quad.x, quad.y), max(quad.z, quad.w));
    }
    return kiln_float(kiln_sm90a_warp_greatest(all));
}

/* A cluster's row. */
KILN_INLINE void kiln_silu_mul_of_cluster(const kiln_silu_mul_codes_args *args, kiln_silu_mul_told *told,
                                          kiln_codes_format format) {
    enum { EACH = KILN_SILU_MUL_EIGHTS };
    const kiln_codes_args *out = &args->out;
    const uint32_t threads = blockDim.x, first = kiln_tile() * threads + kiln_thread();
    const uint32_t second = first + KILN_SILU_MUL_CLUSTER * threads, last = out->eights - 1, row = blockIdx.y;
    if (row >= (uint32_t)out->rows) return; /* the whole cluster */
    kiln_sm90a_cluster_arrive();
    const uint32_t col = min(first, last) * KILN_EIGHT, step = min(second, last) * KILN_EIGHT - col;
    const kiln_element *gate = (const kiln_element *)args->gate + row * (uint64_t)args->gate_stride + col;
    const kiln_element *up = (const kiln_element *)args->up + row * (uint64_t)args->up_stride + col;
    kiln_packed results[EACH][KILN_EIGHT_PAIRS];
    float greatest = 0.0f;
    if (second - kiln_thread() % KILN_SUBGROUP <= last) {
        kiln_silu_mul_pairs<EACH>(args, results, gate, up, step);
        greatest = kiln_eight_greater_or_nan(results[1], greatest);
    } else { /* no thread of the warp has two */
        kiln_silu_mul_pairs<1>(args, results, gate, up, step);
        KILN_UNROLL
        for (int e = 0; e < KILN_EIGHT_PAIRS; e++)
            results[1][e] = results[0][e];
    }
    greatest = kiln_eight_greater_or_nan(results[0], greatest);
    kiln_sm90a_cluster_wait();
    greatest = kiln_silu_mul_tell(__builtin_fabsf(greatest), told, threads / KILN_SUBGROUP);
    const bool finite = kiln_eights_finite(greatest, format); /* NaN has the greatest bits */
    if (!finite) {
        float singles[KILN_EIGHT];
        greatest = 0.0f;
        KILN_UNROLL
        for (int i = 0; i < EACH; i++) {
            kiln_eight_unpack(singles, results[i]);
            greatest = kiln_eight_greatest(singles, greatest);
        }
        kiln_sm90a_cluster_sync();
        greatest = kiln_silu_mul_tell(greatest, told, threads / KILN_SUBGROUP);
    }
    const kiln_scale_factor s = kiln_eights_scale_factor(out, greatest, kiln_eights_most(format));
    if (out->scales && first == 0) ((float *)out->scales)[row] = s.scale;
    kiln_eight_bytes bytes[EACH];
    if (finite) {
        KILN_UNROLL
        for (int i = 0; i < EACH; i++)
            bytes[i] = kiln_eight_codes_finite(results[i], s.factor, format);
    } else {
        KILN_UNROLL
        for (int i = 0; i < EACH; i++)
            bytes[i] = kiln_eight_codes_special(results[i], s.factor, format);
    }
    uint8_t *codes = out->codes + row * (uint64_t)out->codes_stride + col;
    if (first <= last) *(kiln_eight_bytes *)codes = bytes[0];
    if (second <= last) *(kiln_eight_bytes *)(codes + step) = bytes[1];
}

#endif
