/* softmax for sm_100 and later: rows of which each thread has four whole vectors, in f32 four or eight, are held in
 * registers and computed by instructions for two numbers (exp_sum_sm100.h); softmax_gpu.c does the others, and long
 * rows. Not measured. */
#include "kernels/common/reduce/exp_sum_sm100.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY
#define KILN_ENTRY(kernel, args_type) __device__ __forceinline__ void kernel##_of_any(const args_type &args)
#include "kernels/softmax/softmax_gpu.c"
#undef KILN_ENTRY
#define KILN_ENTRY(kernel, args_type) KILN_ENTRY_OF_PART(kernel, KILN_PART, args_type)

template <int COUNT, int LANES_LOG2>
KILN_INLINE void softmax_even(const kiln_softmax_args &args, kiln_even_exchange *exchange) {
    const kiln_even_place p = kiln_even_place_of<LANES_LOG2>(&args.shape);
    kiln_even_vector held[COUNT];
    kiln_packed exponentials[COUNT][KILN_VECTOR_PAIRS];
    kiln_even_load<COUNT, LANES_LOG2>(held, (const kiln_element *)args.x + p.row * (uint64_t)args.x_stride + p.first);
    const kiln_exp_sum own = kiln_exp_sum_even<COUNT>(exponentials, held);
    const kiln_exp_sum row = kiln_exp_sum_even_row<LANES_LOG2>(own, exchange);
    if (!p.inside) return;
    const float factor = scale_of(row.sum) * kiln_exp_from(own.max, kiln_exp_origin(row.max));
    kiln_element *y = (kiln_element *)args.y + p.row * (uint64_t)args.y_stride + p.first;
    KILN_UNROLL
    for (int k = 0; k < COUNT; k++, y += KILN_VECTOR << LANES_LOG2) {
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR_PAIRS; i++)
            exponentials[k][i] = kiln_packed_mul(exponentials[k][i], kiln_pack(factor, factor));
        kiln_vector_store_pairs(y, exponentials[k]);
    }
}

KILN_ENTRY(softmax_rows, kiln_softmax_args) {
    KILN_SHARED kiln_even_exchange exchange;
    if (args.phase == KILN_SOFTMAX_ROWS) {
        KILN_EVEN_ROWS(softmax_even, args, &exchange)
    }
    softmax_rows_of_any(args);
}

KILN_TUNED_PARTS(f32 f16 bf16)
