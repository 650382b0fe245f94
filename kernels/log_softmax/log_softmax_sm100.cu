/* log_softmax for sm_100 and later: rows of which each thread has four whole vectors, in f32 four or eight, are held in
 * registers and computed by instructions for two numbers (exp_sum_sm100.h); log_softmax_gpu.c does the others, and long
 * rows. Not measured. */
#include "kernels/common/reduce/exp_sum_sm100.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY
#define KILN_ENTRY(kernel, args_type) __device__ __forceinline__ void kernel##_of_any(const args_type &args)
#include "kernels/log_softmax/log_softmax_gpu.c"
#undef KILN_ENTRY
#define KILN_ENTRY(kernel, args_type) KILN_ENTRY_OF_PART(kernel, KILN_PART, args_type)

/* Of 16 bits the elements are held less the greatest of a thread's own, none of which is more; what is left to subtract
 * is not negative. */
#if defined(KILN_PART_f32)
typedef kiln_even_vector held_vector;
#else
typedef struct held_vector {
    float values[KILN_VECTOR];
} held_vector;
#endif

template <int COUNT, int LANES_LOG2> KILN_INLINE kiln_exp_sum take_even(held_vector *held, const kiln_element *x) {
#if defined(KILN_PART_f32)
    kiln_even_load<COUNT, LANES_LOG2>(held, x);
    return kiln_exp_sum_even<COUNT>(held);
#else
    kiln_even_vector vectors[COUNT];
    kiln_even_load<COUNT, LANES_LOG2>(vectors, x);
    kiln_exp_sum total = {kiln_even_greatest<COUNT>(vectors), 0.0f};
    KILN_UNROLL
    for (int k = 0; k < COUNT; k++) {
        kiln_vector_less(held[k].values, vectors[k], kiln_exp_origin(total.max));
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++) {
            const float y = kiln_fast_exp2(held[k].values[i] * KILN_LOG2_E);
            total.sum = k || i ? total.sum + y : y;
        }
    }
    return total;
#endif
}

/* Writes vectors less the row's origin and the logarithm of its sum. */
template <int COUNT, int LANES_LOG2>
KILN_INLINE void put_even(kiln_element *y, const held_vector *held, float taken, float origin, float log_sum) {
#if defined(KILN_PART_f32)
    KILN_UNROLL
    for (int k = 0; k < COUNT; k++, y += KILN_VECTOR << LANES_LOG2) {
        kiln_packed results[KILN_VECTOR_PAIRS];
        kiln_even_pairs(results, held[k]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR_PAIRS; i++) {
            results[i] = kiln_packed_add(results[i], kiln_pack(-origin, -origin));
            results[i] = kiln_packed_add(results[i], kiln_pack(-log_sum, -log_sum));
        }
        kiln_vector_store_pairs(y, results);
    }
#else
    const float left = (origin - kiln_exp_origin(taken)) + log_sum;
    KILN_UNROLL
    for (int k = 0; k < COUNT; k++, y += KILN_VECTOR << LANES_LOG2) {
        float results[KILN_VECTOR];
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            results[i] = held[k].values[i] - left;
        kiln_vector_store(y, kiln_vector_of(results));
    }
#endif
}

/* finish, with one question where there is nothing special. */
KILN_INLINE float finish_even(float *lse, float sum, float origin, bool first) {
    float log_sum, less;
    if (sum < KILN_INFINITY && sum > 0.0f) {
        less = log_sum = kiln_log(sum);
    } else {
        log_sum = sum == 0.0f ? -KILN_INFINITY : sum;
        less = sum == 0.0f ? 0.0f : __builtin_nanf("");
    }
    if (first) *lse = origin + log_sum;
    return less;
}

template <int COUNT, int LANES_LOG2>
KILN_INLINE void log_softmax_even(const kiln_log_softmax_args &args, kiln_even_exchange *exchange) {
    const kiln_even_place p = kiln_even_place_of<LANES_LOG2>(&args.shape);
    held_vector held[COUNT];
    const kiln_exp_sum own =
        take_even<COUNT, LANES_LOG2>(held, (const kiln_element *)args.x + p.row * (uint64_t)args.x_stride + p.first);
    const kiln_exp_sum row = kiln_exp_sum_even_row<LANES_LOG2>(own, exchange);
    if (!p.inside) return;
    const float origin = kiln_exp_origin(row.max),
                log_sum = finish_even(args.lse + p.row, row.sum, origin, p.first == 0);
    if (!args.y) return;
    put_even<COUNT, LANES_LOG2>((kiln_element *)args.y + p.row * (uint64_t)args.y_stride + p.first, held, own.max,
                                origin, log_sum);
}

KILN_ENTRY(log_softmax, kiln_log_softmax_args) {
    KILN_SHARED kiln_even_exchange exchange;
    if (args.phase == KILN_LOG_SOFTMAX_ROWS) {
        KILN_EVEN_ROWS(log_softmax_even, args, &exchange)
    }
    log_softmax_of_any(args);
}

KILN_TUNED_PARTS(f32 f16 bf16)
