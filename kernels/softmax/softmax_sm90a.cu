/* softmax for sm_90a: softmax_gpu.c, whose kernel may begin before the preceding kernel has ended, and
 * softmax_cluster for long rows, of which a cluster of eight blocks holds one in registers (exp_sum_sm90a.h), so that
 * it is read once. A thread takes its exponentials once more after the blocks have met.
 *
 * Measured (H100 80GB HBM3, driver 580.159.04, 2026-11-26, a prototype; bf16, a copy of [16384, 4096] 2.98 TB/s):
 * [1024, 131072] 191.5 us, 2.80 TB/s, [64, 128256] 14.9 us and [1, 131072] 4.0 us; the two launches of softmax_gpu.c
 * take 271, 19.3 and 5.4 us. Clusters of four blocks with the row in shared memory, copied in bulk, take 185 us, of two
 * 368; blocks of 512 threads that read a row twice 262 us. The kernel itself takes 198.1 us; of f32 it is
 * not measured. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/reduce/exp_sum_sm90a.h"
#include "kernels/common/tuned.h"

#include "kernels/softmax/softmax_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_PROGRAMMATIC(softmax_rows)

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD KILN_CLUSTER_ENTRY_HEAD

template <uint32_t THREADS>
KILN_INLINE void softmax_cluster(const kiln_softmax_args &args, kiln_cluster_exchange *exchange) {
    kiln_span s = kiln_cluster_span(&args.shape);
    if (s.row >= (uint64_t)args.shape.rows) return; /* the whole cluster */
    kiln_vector held[KILN_EXP_SUM_HELD];
    kiln_cluster_hold<THREADS>(held, s, kiln_span_of_input(s, args.x, args.x_stride));
    kiln_exp_sum row = kiln_exp_sum_cluster<THREADS>(held, s, exchange);
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);
    float values[KILN_VECTOR], scale = scale_of(row.sum), origin = kiln_exp_origin(row.max);
    KILN_FOR_CLUSTER_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        kiln_vector_values(values, held[k]);
        kiln_add_exponentials(0.0f, values, origin);
        put(y + vector * KILN_VECTOR, values, scale);
    }
}

KILN_ENTRY(softmax_cluster, kiln_softmax_args) {
    KILN_SHARED kiln_cluster_exchange exchange;
    KILN_CLUSTER_OF(softmax_cluster, args, &exchange);
}
KILN_PROGRAMMATIC(softmax_cluster)
