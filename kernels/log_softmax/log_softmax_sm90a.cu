/* log_softmax for sm_90a: log_softmax_gpu.c, whose kernel may begin before the preceding kernel has ended, and
 * log_softmax_cluster for long rows, of which a cluster of eight blocks holds one in registers (exp_sum_sm90a.h), so
 * that it is read once: [1024, 131072] in bf16 takes 194.9 us (H100 80GB HBM3, driver 580.159.04, 2026-11-26), the time
 * of a copy, and 275 us by two launches. f32 is not measured. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/reduce/exp_sum_sm90a.h"
#include "kernels/common/tuned.h"

#include "kernels/log_softmax/log_softmax_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_PROGRAMMATIC(log_softmax)

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD KILN_CLUSTER_ENTRY_HEAD

template <uint32_t THREADS>
KILN_INLINE void log_softmax_cluster(const kiln_log_softmax_args &args, kiln_cluster_exchange *exchange) {
    kiln_span s = kiln_cluster_span(&args.shape);
    if (s.row >= (uint64_t)args.shape.rows) return; /* the whole cluster */
    kiln_vector held[KILN_EXP_SUM_HELD];
    kiln_cluster_hold<THREADS>(held, s, kiln_span_of_input(s, args.x, args.x_stride));
    kiln_exp_sum row = kiln_exp_sum_cluster<THREADS>(held, s, exchange);
    bool first = kiln_thread() == 0 && kiln_tile() == 0;
    float origin = kiln_exp_origin(row.max), log_sum = finish(args.lse + s.row, row, origin, first);
    if (!args.y) return;
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);
    KILN_FOR_CLUSTER_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        put_vector(y + vector * KILN_VECTOR, held[k], origin, log_sum);
    }
}

KILN_ENTRY(log_softmax_cluster, kiln_log_softmax_args) {
    KILN_SHARED kiln_cluster_exchange exchange;
    KILN_CLUSTER_OF(log_softmax_cluster, args, &exchange);
}
KILN_PROGRAMMATIC(log_softmax_cluster)
