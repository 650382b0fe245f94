/* argmax for sm_100 and later, in 16 bits: of rows, and of chunks of long ones, of which each thread of a block has two
 * or four vectors, the threads compare two elements at once; argmax_gpu.c does the others. Not measured. */
#include "kernels/arch/sm80.h"
#include "kernels/arch/sm90a.h"
#include "kernels/common/device.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY
#define KILN_ENTRY(kernel, args_type) __device__ __forceinline__ void kernel##_of_any(const args_type &args)
#include "kernels/argmax/argmax_gpu.c"
#undef KILN_ENTRY
#define KILN_ENTRY(kernel, args_type) KILN_ENTRY_OF_PART(kernel, KILN_PART, args_type)

#if defined(KILN_PART_f16)
#define GREATER_OR_NAN kiln_sm80_greater_or_nan_f16x2
#else
#define GREATER_OR_NAN kiln_sm80_greater_or_nan_bf16x2
#endif

/* What the threads of a block tell each other. */
typedef struct even_exchange {
    uint32_t greatest[KILN_SUBGROUPS];
    uint32_t first;
} even_exchange;

/* A row, or a chunk of one, of COUNT vectors for each thread. */
template <int COUNT> KILN_INLINE void argmax_even(const kiln_argmax_args &args, kiln_span s, even_exchange *exchange) {
    enum { WORDS = KILN_VECTOR_BYTES / 4 };
    const kiln_element *x = kiln_span_of_input(s, args.x, args.x_stride);
    kiln_vector held[KILN_HELD];
    KILN_UNROLL
    for (uint32_t k = 0; k < COUNT; k++)
        held[k] = kiln_vector_load(x + (s.first + k * KILN_BLOCK) * KILN_VECTOR);
    uint32_t pair = held[0].words[0];
    KILN_UNROLL
    for (int i = 1; i < COUNT * WORDS; i++)
        pair = GREATER_OR_NAN(pair, held[i / WORDS].words[i % WORDS]);
    float values[2];
    kiln_pair_values(values, pair);
    const uint32_t key = kiln_order_key(kiln_sm80_greater_or_nan_f32(values[0], values[1]));
    const uint32_t of_warp = kiln_sm90a_warp_greatest(key), lane = kiln_thread() % KILN_SUBGROUP;
    if (lane == 0) exchange->greatest[kiln_thread() / KILN_SUBGROUP] = of_warp;
    if (kiln_thread() == 0) exchange->first = NOWHERE;
    kiln_barrier();
    const uint32_t greatest = kiln_sm90a_warp_greatest(exchange->greatest[lane % KILN_SUBGROUPS]);
    if (key == greatest) kiln_shared_min(&exchange->first, first_with(key, s, x, held));
    kiln_barrier();
    if (kiln_thread() != 0) return;
    if (args.phase == KILN_ARGMAX_PARTIAL)
        args.partials[s.row * args.chunks + kiln_tile()] = kiln_argmax_best{greatest, exchange->first};
    else
        args.y[s.row] = (int32_t)exchange->first;
}

KILN_ENTRY(argmax, kiln_argmax_args) {
    KILN_SHARED even_exchange exchange;
    if (args.phase != KILN_ARGMAX_FINISH && args.shape.lanes_log2 == KILN_BLOCK_LOG2) {
        const kiln_span s = kiln_span_of(&args.shape);
        if (s.whole == 4 * KILN_BLOCK && s.count == 4 * KILN_BLOCK * KILN_VECTOR) {
            argmax_even<4>(args, s, &exchange);
            return;
        }
        if (s.whole == 2 * KILN_BLOCK && s.count == 2 * KILN_BLOCK * KILN_VECTOR) {
            argmax_even<2>(args, s, &exchange);
            return;
        }
    }
    argmax_of_any(args);
}

KILN_TUNED_PARTS(f16 bf16)
