/* gemm_wgmma_join, sm_90a: gemm_join by vectors, for partial sums that tiles by wgmma have written (gemm_wgmma.h). A
 * thread adds those of as many columns as are in 16 bytes of d, and finishes them as a tile's end does.
 *
 * Floor: one read of the partial sums, which are in L2. */
#ifndef KILN_KERNELS_GEMM_WGMMA_JOIN_H
#define KILN_KERNELS_GEMM_WGMMA_JOIN_H

#include "kernels/gemm/gemm_pieces.h"

KILN_INLINE void add_partials(float *sums, const float *partials) {
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i += 4) {
        const float4 four = *(const float4 *)(partials + i);
        sums[i] += four.x;
        sums[i + 1] += four.y;
        sums[i + 2] += four.z;
        sums[i + 3] += four.w;
    }
}

KILN_ENTRY(gemm_wgmma_join, kiln_gemm_args) {
    const uint32_t n = (uint32_t)args.n, m = (uint32_t)args.m,
                   col = (kiln_tile() * KILN_BLOCK + kiln_thread()) * KILN_VECTOR;
    const uint32_t block = (uint32_t)kiln_block(), batch = block / m, row = block % m;
    if (col >= n || batch >= args.batch) return;
    const uint64_t step = (uint64_t)args.batch * m * n;
    const float *partials = args.partials + (uint64_t)block * n + col;
    const uint64_t d = (uint64_t)args.d | (uint64_t)(args.d_stride | args.d_batch_stride) * sizeof(kiln_element);
    const uint64_t c = (uint64_t)args.c | (uint64_t)(args.c_stride | args.c_batch_stride) * sizeof(kiln_element);
    if (n % KILN_VECTOR || (d | (args.c ? c : 0) | (uint64_t)args.bias) % KILN_VECTOR_BYTES) {
        KILN_LOOP
        for (uint32_t i = 0; i < KILN_VECTOR && col + i < n; i++) {
            float sum = 0.0f;
            KILN_LOOP
            for (uint32_t split = 0; split < args.splits; split++)
                sum += partials[split * step + i];
            finish_element(&args, sum, batch, row, col + i);
        }
        return;
    }
    float sums[KILN_VECTOR] = {}, addends[KILN_VECTOR] = {};
#pragma unroll 4
    for (uint32_t split = 0; split < args.splits; split++)
        add_partials(sums, partials + split * step);
    if (args.c)
        kiln_vector_values(addends, kiln_vector_load((const kiln_element *)args.c + batch * args.c_batch_stride +
                                                     row * args.c_stride + col));
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        sums[i] = KILN_FMA(args.scale, sums[i], addends[i]);
    if (args.bias) {
        kiln_vector_values(addends, kiln_vector_load((const kiln_element *)args.bias + col));
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++)
            sums[i] += addends[i];
    }
    if (args.gated) activate<KILN_VECTOR>(args, sums);
    kiln_vector_store((kiln_element *)args.d + batch * args.d_batch_stride + row * args.d_stride + col,
                      kiln_vector_of(sums));
}

#endif
