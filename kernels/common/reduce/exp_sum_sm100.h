/* exp_sum.h on sm_100 for rows of which each thread has the same number of whole vectors, which it holds in registers:
 * without questions about each, by instructions for two f32, or for f32 and 16 bits together. */
#ifndef KILN_KERNELS_COMMON_REDUCE_EXP_SUM_SM100_H
#define KILN_KERNELS_COMMON_REDUCE_EXP_SUM_SM100_H

#include "kernels/arch/ptx.h"
#include "kernels/common/device.h"
#include "kernels/common/math/mixed.h"
#include "kernels/common/math/packed.h"
#include "kernels/common/math/pairs.h"
#include "kernels/common/reduce/exp_sum.h"

enum { KILN_VECTOR_PAIRS = KILN_VECTOR / 2 };

/* Of which threads exchange as many as a warp has. */
typedef struct kiln_even_exchange {
    kiln_exp_sum of[KILN_SUBGROUPS];
} __attribute__((aligned(8))) kiln_even_exchange;

/* Where a thread's vectors are: from element `first` of its row on, KILN_VECTOR << LANES_LOG2 elements apart. */
typedef struct kiln_even_place {
    uint64_t row;
    uint32_t first;
    bool inside; /* whether the row exists; a thread of one that does not has the last row's */
} kiln_even_place;

template <int LANES_LOG2> KILN_INLINE kiln_even_place kiln_even_place_of(const kiln_shape *shape) {
    kiln_even_place p;
    p.row = (kiln_block() << (KILN_BLOCK_LOG2 - LANES_LOG2)) + (kiln_thread() >> LANES_LOG2);
    p.inside = p.row < (uint64_t)shape->rows;
    p.row = p.inside ? p.row : (uint64_t)shape->rows - 1;
    p.first = (kiln_thread() & ((1u << LANES_LOG2) - 1)) * KILN_VECTOR;
    return p;
}

/* Whether each of the threads of a row, which is a tile, has that many vectors of it. */
KILN_INLINE bool kiln_rows_are_even(const kiln_shape *shape, uint32_t count, uint32_t lanes_log2) {
    return shape->wide && shape->lanes_log2 == lanes_log2 && shape->tile == count * KILN_VECTOR << lanes_log2;
}

#if defined(KILN_PART_f32)

#include "kernels/arch/sm80.h"

typedef ulonglong2 kiln_even_vector;

KILN_INLINE void kiln_even_pairs(kiln_packed *pairs, kiln_even_vector vector) {
    pairs[0] = vector.x;
    pairs[1] = vector.y;
}

/* The greatest of vectors' elements, none of which counts if it is NaN. */
template <int COUNT> KILN_INLINE float kiln_even_greatest(const kiln_even_vector *held) {
    float greatest = -KILN_INFINITY;
    KILN_UNROLL
    for (int k = 0; k < COUNT; k++) {
        kiln_packed pairs[KILN_VECTOR_PAIRS];
        float values[KILN_VECTOR];
        kiln_even_pairs(pairs, held[k]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR_PAIRS; i++)
            kiln_unpack(&values[2 * i], pairs[i]);
        greatest = kiln_greatest_value(values, greatest);
    }
    return greatest;
}

/* kiln_exp_from of a vector's elements, none of which is more than the origin. Whose exponentials are 0 are taken to be
 * 88 less than it, where the rounding error has no infinities. */
KILN_INLINE void kiln_even_exponentials(kiln_packed *results, kiln_even_vector vector, float origin) {
    const kiln_packed log2_e = kiln_pack(KILN_LOG2_E, KILN_LOG2_E), ln_2 = kiln_pack(-0x1.62e43p-1f, -0x1.62e43p-1f);
    const kiln_packed rest = kiln_pack(KILN_LOG2_E_REST, KILN_LOG2_E_REST), minus = kiln_pack(-1.0f, -1.0f);
    const kiln_packed less = kiln_pack(-KILN_LOG2_E, -KILN_LOG2_E), both = kiln_pack(origin, origin);
    kiln_even_pairs(results, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR_PAIRS; i++) {
        float differences[2], powers[2];
        kiln_unpack(differences, kiln_packed_fma(results[i], minus, both));
        KILN_UNROLL
        for (int e = 0; e < 2; e++)
            differences[e] = kiln_sm80_lesser_or_nan_f32(differences[e], 88.0f);
        const kiln_packed below = kiln_pack(differences[0], differences[1]);
        const kiln_packed power = kiln_packed_mul(below, less);
        const kiln_packed gained = kiln_packed_fma(below, rest, kiln_packed_fma(below, log2_e, power));
        kiln_unpack(powers, power);
        const kiln_packed y = kiln_pack(kiln_fast_exp2(powers[0]), kiln_fast_exp2(powers[1]));
        results[i] = kiln_packed_fma(kiln_packed_mul(y, ln_2), gained, y);
    }
}

/* The sum of the exponentials of vectors with +inf. */
template <int COUNT> KILN_INLINE float kiln_even_infinite(const kiln_even_vector *held) {
    bool nan = false;
    KILN_UNROLL
    for (int k = 0; k < COUNT; k++) {
        kiln_packed pairs[KILN_VECTOR_PAIRS];
        kiln_even_pairs(pairs, held[k]);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR_PAIRS; i++) {
            float values[2];
            kiln_unpack(values, pairs[i]);
            nan |= (values[0] != values[0]) | (values[1] != values[1]);
        }
    }
    return nan ? __builtin_nanf("") : KILN_INFINITY;
}

#else

typedef kiln_vector kiln_even_vector;

/* NaN if all are. */
template <int COUNT> KILN_INLINE float kiln_even_greatest(const kiln_even_vector *held) {
    uint32_t greatest = held[0].words[0];
    float pair[2];
    KILN_UNROLL
    for (int i = 1; i < 4 * COUNT; i++)
        greatest = kiln_pair_max(greatest, held[i / 4].words[i % 4]);
    kiln_pair_values(pair, greatest);
    return kiln_fast_max(pair[0], pair[1]);
}

KILN_INLINE void kiln_even_exponentials(kiln_packed *results, kiln_even_vector vector, float origin) {
    float values[KILN_VECTOR];
    kiln_vector_less(values, vector, origin);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR_PAIRS; i++)
        results[i] =
            kiln_pack(kiln_fast_exp2(values[2 * i] * KILN_LOG2_E), kiln_fast_exp2(values[2 * i + 1] * KILN_LOG2_E));
}

#endif

template <int COUNT, int LANES_LOG2> KILN_INLINE void kiln_even_load(kiln_even_vector *held, const kiln_element *from) {
    KILN_UNROLL
    for (int k = 0; k < COUNT; k++)
        held[k] = *(const kiln_even_vector *)(from + (k * KILN_VECTOR << LANES_LOG2));
}

KILN_INLINE void kiln_vector_store_pairs(kiln_element *target, const kiln_packed *pairs) {
#if defined(KILN_PART_f32)
    *(kiln_even_vector *)target = kiln_even_vector{pairs[0], pairs[1]};
#else
    kiln_vector_store(target, kiln_vector_of_pairs(pairs));
#endif
}

/* The sum with that of a vector's exponentials. */
KILN_INLINE kiln_packed kiln_even_add(kiln_packed sum, const kiln_packed *exponentials) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR_PAIRS; i++)
        sum = kiln_packed_add(sum, exponentials[i]);
    return sum;
}

/* The sum of the exponentials of a thread's vectors against their greatest element. */
template <int COUNT>
KILN_INLINE kiln_exp_sum kiln_exp_sum_of_even(kiln_packed sum, float greatest, const kiln_even_vector *held) {
    float sums[2];
    kiln_unpack(sums, sum);
    kiln_exp_sum total = {greatest, sums[0] + sums[1]};
#if defined(KILN_PART_f32)
    if (greatest == KILN_INFINITY) total.sum = kiln_even_infinite<COUNT>(held);
#endif
    return total;
}

/* The same, with the exponentials, or without. */
template <int COUNT>
KILN_INLINE kiln_exp_sum kiln_exp_sum_even(kiln_packed (*exponentials)[KILN_VECTOR_PAIRS],
                                           const kiln_even_vector *held) {
    const float greatest = kiln_even_greatest<COUNT>(held), origin = kiln_exp_origin(greatest);
    kiln_packed sum = kiln_pack(0.0f, 0.0f);
    KILN_UNROLL
    for (int k = 0; k < COUNT; k++) {
        kiln_even_exponentials(exponentials[k], held[k], origin);
        sum = kiln_even_add(sum, exponentials[k]);
    }
    return kiln_exp_sum_of_even<COUNT>(sum, greatest, held);
}
template <int COUNT> KILN_INLINE kiln_exp_sum kiln_exp_sum_even(const kiln_even_vector *held) {
    const float greatest = kiln_even_greatest<COUNT>(held), origin = kiln_exp_origin(greatest);
    kiln_packed sum = kiln_pack(0.0f, 0.0f), exponentials[KILN_VECTOR_PAIRS];
    KILN_UNROLL
    for (int k = 0; k < COUNT; k++) {
        kiln_even_exponentials(exponentials, held[k], origin);
        sum = kiln_even_add(sum, exponentials);
    }
    return kiln_exp_sum_of_even<COUNT>(sum, greatest, held);
}

template <int STEP> KILN_INLINE float kiln_even_max_step(float max) {
    return kiln_fast_max(max, kiln_ptx_shfl_bfly<STEP>(max));
}
template <int STEP> KILN_INLINE float kiln_even_sum_step(float sum) {
    return sum + kiln_ptx_shfl_bfly<STEP>(sum);
}

/* kiln_exp_sum_row of four or eight warps. */
template <int LANES_LOG2>
KILN_INLINE kiln_exp_sum kiln_exp_sum_even_row(kiln_exp_sum total, kiln_even_exchange *exchange) {
    enum { EIGHT = LANES_LOG2 == KILN_BLOCK_LOG2, OTHERS = EIGHT ? 7 : 3 };
    static_assert(EIGHT || LANES_LOG2 == KILN_BLOCK_LOG2 - 1, "as these steps have it");
    const uint32_t warp = kiln_thread() / KILN_SUBGROUP;
    float max = kiln_even_max_step<1>(kiln_even_max_step<2>(total.max));
    max = kiln_even_max_step<4>(kiln_even_max_step<8>(kiln_even_max_step<16>(max)));
    float sum = kiln_exp_sum_moved(total, max);
    sum = kiln_even_sum_step<1>(kiln_even_sum_step<2>(sum));
    sum = kiln_even_sum_step<4>(kiln_even_sum_step<8>(kiln_even_sum_step<16>(sum)));
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange->of[warp] = kiln_exp_sum{max, sum};
    kiln_barrier();
    total = exchange->of[(EIGHT ? 0 : warp & ~OTHERS) | (kiln_thread() & OTHERS)];
    max = kiln_even_max_step<1>(kiln_even_max_step<2>(total.max));
    if (EIGHT) max = kiln_even_max_step<4>(max);
    sum = kiln_exp_sum_moved(total, max);
    sum = kiln_even_sum_step<1>(kiln_even_sum_step<2>(sum));
    if (EIGHT) sum = kiln_even_sum_step<4>(sum);
    return kiln_exp_sum{max, sum};
}

/* Calls do_rows<count, lanes_log2>(args, exchange) where rows are even, and returns then: of four vectors for each
 * thread, or eight of f32. */
#define KILN_EVEN_ROWS_OF(do_rows, args, exchange, count, lanes_log2) \
    if (kiln_rows_are_even(&(args).shape, count, lanes_log2)) {       \
        do_rows<count, lanes_log2>(args, exchange);                   \
        return;                                                       \
    }
#if defined(KILN_PART_f32)
#define KILN_EVEN_ROWS(do_rows, args, exchange)                    \
    KILN_EVEN_ROWS_OF(do_rows, args, exchange, 8, KILN_BLOCK_LOG2) \
    KILN_EVEN_ROWS_OF(do_rows, args, exchange, 4, KILN_BLOCK_LOG2)
#else
#define KILN_EVEN_ROWS(do_rows, args, exchange)                    \
    KILN_EVEN_ROWS_OF(do_rows, args, exchange, 4, KILN_BLOCK_LOG2) \
    KILN_EVEN_ROWS_OF(do_rows, args, exchange, 4, (KILN_BLOCK_LOG2 - 1))
#endif

#endif
