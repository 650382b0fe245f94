/* silu_mul_fp8 and silu_mul_int8 on sm_90a for few long rows that have one scale each: a cluster of eight blocks has a
 * row, and each thread one eight, so that a row's inputs are asked for at once and its arithmetic is on eight
 * multiprocessors. The blocks meet once: each warp tells all of them the greatest magnitude that it has. */
#ifndef KILN_KERNELS_COMMON_SILU_MUL_CODES_CLUSTER_H
#define KILN_KERNELS_COMMON_SILU_MUL_CODES_CLUSTER_H

#include "kernels/arch/sm90a_remote_store.h"
#include "kernels/common/silu_mul_codes_cluster_args.h"
#include "kernels/common/silu_mul_codes_sm90a.h"

#define KILN_SILU_MUL_CLUSTER_HEAD \
    extern "C" __global__ __cluster_dims__(KILN_SILU_MUL_CLUSTER, 1, 1) __launch_bounds__(KILN_SILU_MUL_THREADS) void

/* What the warps of a cluster tell a block: their greatest magnitudes, side by side so that a warp reads 32 of them at
 * once without bank conflicts. */
typedef struct kiln_silu_mul_told {
    float of[KILN_SILU_MUL_THREADS / KILN_SUBGROUP][KILN_SILU_MUL_CLUSTER];
} kiln_silu_mul_told;

/* The greatest of the cluster's, whose blocks have that many warps. All blocks have begun once they have come to
 * kiln_sm90a_cluster_arrive. */
KILN_INLINE float kiln_silu_mul_tell(float greatest, kiln_silu_mul_told *told, uint32_t warps) {
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP, warp = kiln_thread() / KILN_SUBGROUP;
    const float own = kiln_float(kiln_sm90a_warp_greatest(kiln_bits(greatest)));
    kiln_sm90a_cluster_wait();
    if (lane < KILN_SILU_MUL_CLUSTER)
        kiln_sm90a_store_remote(kiln_sm90a_remote(kiln_sm90a_shared(&told->of[warp][kiln_tile()]), lane), own);
    __syncwarp();
    kiln_sm90a_cluster_sync();
    greatest = 0.0f;
    KILN_LOOP
    for (uint32_t i = lane; i < KILN_SILU_MUL_CLUSTER * warps; i += KILN_SUBGROUP)
        greatest = kiln_fast_max(greatest, told->of[i / KILN_SILU_MUL_CLUSTER][i % KILN_SILU_MUL_CLUSTER]);
    return kiln_float(kiln_sm90a_warp_greatest(kiln_bits(greatest)));
}

/* A cluster's row. */
KILN_INLINE void kiln_silu_mul_of_cluster(const kiln_silu_mul_codes_args *args, kiln_silu_mul_told *told,
                                          kiln_codes_format format) {
    const kiln_codes_args *out = &args->out;
    const uint32_t threads = blockDim.x, eight = kiln_tile() * threads + kiln_thread();
    const kiln_codes_place p = {kiln_block(), eight, KILN_SILU_MUL_CLUSTER * threads, 1, 0};
    if (p.row >= (uint64_t)out->rows) return; /* the whole cluster */
    kiln_sm90a_cluster_arrive();
    const bool present = eight < out->eights;
    kiln_vector gate = {}, up = {};
    if (present) {
        const uint64_t col = (uint64_t)eight * KILN_EIGHT;
        gate = kiln_vector_load((const kiln_element *)args->gate + p.row * (uint64_t)args->gate_stride + col);
        up = kiln_vector_load((const kiln_element *)args->up + p.row * (uint64_t)args->up_stride + col);
    }
    float values[KILN_EIGHT];
    kiln_silu_mul_values(args, values, gate, up, false);
    const float greatest = kiln_silu_mul_tell(kiln_eight_greatest(values, 0.0f), told, threads / KILN_SUBGROUP);
    const float factor = kiln_codes_state_of_block(out, p, greatest, format);
    if (present)
        kiln_codes_store(out, out->codes + p.row * (uint64_t)out->codes_stride + (uint64_t)eight * KILN_EIGHT, values,
                         factor, format);
}

#endif
