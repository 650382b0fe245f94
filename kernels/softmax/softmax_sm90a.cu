/* softmax of 16 bits for sm_90a: softmax_gpu.c, whose kernel may begin before the preceding kernel has ended, and
 * softmax_cluster for long rows, of which a cluster of eight blocks holds one in registers, so that it is read once.
 *
 * Each block has an eighth of the row, each thread up to eight vectors of it, and takes its exponentials once more
 * after the blocks have met, by one barrier of the cluster: each gives its maximum and its sum to all.
 *
 * Measured (H100 80GB HBM3, driver 580.159.04, 2026-11-26, a prototype; bf16, a copy of [16384, 4096] 2.98 TB/s):
 * [1024, 131072] 191.5 us, 2.80 TB/s, [64, 128256] 14.9 us and [1, 131072] 4.0 us; the two launches of softmax_gpu.c
 * take 271, 19.3 and 5.4 us. Clusters of four blocks with the row in shared memory, copied in bulk, take 185 us, of two
 * 368; blocks of 512 threads that read a row twice 262 us. */
#include "kernels/arch/sm90a_cluster.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

#include "kernels/softmax/softmax_gpu.c"

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(softmax_rows)

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD \
    extern "C" __global__ __cluster_dims__(KILN_SOFTMAX_CLUSTER, 1, 1) __launch_bounds__(KILN_BLOCK, 4) void

KILN_ENTRY(softmax_cluster, kiln_softmax_args) {
    enum { HELD = KILN_SOFTMAX_CLUSTER_HELD };
    KILN_SHARED kiln_exp_sum exchange[KILN_SUBGROUPS];
    KILN_SHARED __align__(16) float4 parts[KILN_SOFTMAX_CLUSTER];
    kiln_span s = kiln_span_of(&args.shape);
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);
    kiln_vector held[HELD];
    float values[KILN_VECTOR];
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < HELD; k++, vector += KILN_BLOCK)
        if (vector < s.whole) held[k] = kiln_vector_load(x + vector * KILN_VECTOR);

    kiln_exp_sum own = {-KILN_INFINITY, 0.0f};
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < HELD; k++, vector += KILN_BLOCK) {
        if (vector >= s.whole) break;
        kiln_vector_values(values, held[k]);
        own.max = kiln_greatest_value(values, own.max);
    }
    float origin = kiln_exp_origin(own.max);
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < HELD; k++, vector += KILN_BLOCK) {
        if (vector >= s.whole) break;
        kiln_vector_values(values, held[k]);
        own.sum = kiln_add_exponentials(own.sum, values, origin);
    }
    own = kiln_exp_sum_row(own, KILN_BLOCK_LOG2, exchange);

    if (kiln_thread() < KILN_SOFTMAX_CLUSTER) {
        const float part[4] = {own.max, own.sum, 0.0f, 0.0f};
        kiln_sm90a_store_remote_v4(
            kiln_sm90a_remote(kiln_sm90a_shared(&parts[kiln_sm90a_cluster_rank()]), kiln_thread()), part);
    }
    __syncwarp();
    kiln_sm90a_cluster_sync();
    kiln_exp_sum row = {-KILN_INFINITY, 0.0f};
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_SOFTMAX_CLUSTER; i++)
        row = kiln_exp_sum_join(row, (kiln_exp_sum){parts[i].x, parts[i].y});

    float scale = scale_of(row.sum);
    origin = kiln_exp_origin(row.max);
    KILN_UNROLL
    for (uint32_t k = 0, vector = s.first; k < HELD; k++, vector += KILN_BLOCK) {
        if (vector >= s.whole) break;
        kiln_vector_values(values, held[k]);
        kiln_add_exponentials(0.0f, values, origin);
        put(y + vector * KILN_VECTOR, values, scale);
    }
}
KILN_PROGRAMMATIC(softmax_cluster)
