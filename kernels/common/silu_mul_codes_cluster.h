/* silu_mul_fp8 and silu_mul_int8 on sm_90a for few long rows that have one scale each, SiLU's, with the format's
 * greatest number for smax: a cluster of eight blocks has a row, and each thread one eight, so that a row's inputs are
 * asked for at once and its arithmetic is on eight multiprocessors. The blocks meet once: each warp tells all of them
 * the greatest magnitude that it has. Threads beyond the row have its last eight again, which changes none. */
#ifndef KILN_KERNELS_COMMON_SILU_MUL_CODES_CLUSTER_H
#define KILN_KERNELS_COMMON_SILU_MUL_CODES_CLUSTER_H

#include "kernels/arch/sm90a_remote_store.h"
#include "kernels/common/silu_mul_codes_cluster_args.h"
#include "kernels/common/silu_mul_codes_eights.h"

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
    const kiln_codes_args *out = &args->out;
    const uint32_t threads = blockDim.x, eight = kiln_tile() * threads + kiln_thread(), last = out->eights - 1;
    const uint32_t row = blockIdx.y, col = min(eight, last) * KILN_EIGHT;
    if (row >= (uint32_t)out->rows) return; /* the whole cluster */
    kiln_sm90a_cluster_arrive();
    kiln_packed results[1][KILN_EIGHT_PAIRS];
    kiln_silu_mul_pairs<1>(args, results, (const kiln_element *)args->gate + row * (uint64_t)args->gate_stride + col,
                           (const kiln_element *)args->up + row * (uint64_t)args->up_stride + col);
    const float own = kiln_eight_greatest_or_nan(results[0], 0.0f);
    kiln_sm90a_cluster_wait();
    float greatest = kiln_silu_mul_tell(__builtin_fabsf(own), told, threads / KILN_SUBGROUP);
    const bool finite = greatest < KILN_INFINITY; /* NaN has the greatest bits */
    if (!finite) {
        float singles[KILN_EIGHT];
        kiln_eight_unpack(singles, results[0]);
        kiln_sm90a_cluster_sync();
        greatest = kiln_silu_mul_tell(kiln_eight_greatest(singles, 0.0f), told, threads / KILN_SUBGROUP);
    }
    const kiln_scale_factor s = kiln_eights_scale_factor(out, greatest, kiln_eights_most(format));
    if (out->scales && eight == 0) ((float *)out->scales)[row] = s.scale;
    if (eight > last) return;
    *(kiln_eight_bytes *)(out->codes + row * (uint64_t)out->codes_stride + col) =
        finite ? kiln_eight_codes_finite(results[0], s.factor, format)
               : kiln_eight_codes_special(results[0], s.factor, format);
}

#endif
