/* Attention for up to 16 rows on sm_90a: attention_sm80_decode.h, where blocks that share keys may also be a cluster of
 * up to 8, which adds up its results in shared memory: there is no second launch, and no workspace. The host decides.
 *
 * Measured on an H200 (as there): 1 x 1024 keys 7.6 us, 7.9 where they are in blocks of a cache (cuDNN 9.4), 1 x 4096
 * 12.3 and 12.5 us (13.2). As prototypes with a cluster of 8 for each head of keys 1024 keys took 6.6 us, and with two
 * launches 8.1; 4096 keys 10.9 and 12.2. With 16384 keys both take as
 * long: clusters of 8 leave half of the multiprocessors idle there, and clusters of 16 were slower in all cases (7.5 us
 * with 1024 keys, 50 with 32768), as are more clusters than find room at once. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_DECODE_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM90A_DECODE_H

#include "kernels/arch/sm90a.h"
#include "kernels/common/attention/attention_sm80_decode.h"

enum : uint32_t { CLUSTER_MOST = 8 }; /* blocks, which every device has room for */

/* Adds up what the blocks of a cluster, which share the keys of the same rows, have in shared memory, each block some
 * of the elements. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES>
KILN_INLINE void join_cluster(const kiln_attention_args &args, const decode_work &d, float unit, float *results,
                              decode_shared<DIM, KEY_WARPS, CODES> *block) {
    typedef decoding<DIM, KEY_WARPS, CODES> share;
    float v_scale = kiln_cache_scale(&args, args.v_scale, d.work.kv_head);
    each_quad<DIM>(args, d, kiln_thread(), share::THREADS, [&](uint32_t place, uint32_t i) {
        decoded all = add_results(*block, results, unit, v_scale, place, i);
        *(float4 *)(results + place * share::SUMS + i) =
            make_float4(all.values[0], all.values[1], all.values[2], all.values[3]);
        if (i == 0) block->joined[place] = make_float2(all.max, all.sum);
    });
    kiln_sm90a_cluster_sync();
    each_quad<DIM>(args, d, kiln_thread() * args.splits + d.work.split, share::THREADS * args.splits,
                   [&](uint32_t place, uint32_t i) {
                       float4 values[CLUSTER_MOST];
                       float2 scales[CLUSTER_MOST];
                       float max = -KILN_INFINITY;
                       KILN_UNROLL
                       for (uint32_t rank = 0; rank < CLUSTER_MOST; rank++) {
                           if (rank >= args.splits) continue;
                           scales[rank] = kiln_sm90a_remote_v2(kiln_sm90a_shared(&block->joined[place]), rank);
                           values[rank] =
                               kiln_sm90a_remote_v4(kiln_sm90a_shared(results + place * share::SUMS + i), rank);
                           max = fmaxf(max, scales[rank].x);
                       }
                       float origin = max == -KILN_INFINITY ? 0.0f : max;
                       decoded all = {max, 0.0f, {0.0f, 0.0f, 0.0f, 0.0f}};
                       KILN_UNROLL
                       for (uint32_t rank = 0; rank < CLUSTER_MOST; rank++) {
                           if (rank >= args.splits) continue;
                           float keep = kiln_fast_exp2((scales[rank].x - origin) * KILN_LOG2_E);
                           all.sum = KILN_FMA(scales[rank].y, keep, all.sum);
                           all.values[0] = KILN_FMA(values[rank].x, keep, all.values[0]);
                           all.values[1] = KILN_FMA(values[rank].y, keep, all.values[1]);
                           all.values[2] = KILN_FMA(values[rank].z, keep, all.values[2]);
                           all.values[3] = KILN_FMA(values[rank].w, keep, all.values[3]);
                       }
                       row_place at = row_place_of(args, d.s, d.work.kv_head, d.work.row + place);
                       write_results(args, at, 0, all, i);
                   });
    kiln_sm90a_cluster_sync(); /* no block ends while others read from it */
}

/* As decode, but blocks that share keys without a place for partial results are a cluster. */
template <uint32_t DIM, uint32_t KEY_WARPS, bool CODES>
KILN_INLINE void decode_in_clusters(const kiln_attention_args &args, decode_shared<DIM, KEY_WARPS, CODES> *block) {
    const decode_work d = decode_work_of(args);
    if (!d.rows) return; /* the whole cluster */
    decode_with(args, d, block, [&](float unit, float *results) {
        if (args.splits > 1 && !args.partials)
            join_cluster(args, d, unit, results, block);
        else
            write_block(args, d, unit, results, *block);
    });
}

#endif
