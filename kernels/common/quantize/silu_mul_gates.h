/* Whether gates are within SiLU's bound, where kiln_glu_within is its result, from sm_80 on: of many gates at once, two
 * at a time. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_GATES_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_GATES_H

#include "kernels/arch/sm80.h"
#include "kernels/common/device.h"
#include "kernels/common/math/glu_packed.h"
#include "kernels/common/math/pairs.h"

/* What is known of the gates that were taken. */
#if defined(KILN_PART_f32)

typedef kiln_packed kiln_gates; /* the sum of their squares */

KILN_INLINE kiln_gates kiln_gates_none(void) {
    return kiln_packed_of(0.0f);
}
KILN_INLINE void kiln_gates_take(kiln_gates *gates, kiln_packed pair) {
    *gates = kiln_packed_fma(pair, pair, *gates);
}
KILN_INLINE bool kiln_gates_within(kiln_gates gates, float bound) {
    return kiln_packed_within(gates, bound);
}

#elif KILN_PAIRS_COMPARED

typedef uint32_t kiln_gates; /* the greatest magnitudes, or NaN, with some sign */

#if defined(KILN_PART_f16)
#define KILN_GATES_BOUND 0x5500u /* SiLU's bound, 80, as an element */
#else
#define KILN_GATES_BOUND 0x42a0u
#endif

KILN_INLINE kiln_gates kiln_gates_none(void) {
    return 0;
}
KILN_INLINE void kiln_gates_take(kiln_gates *gates, uint32_t pair) {
    *gates = kiln_pair_greater_or_nan(*gates, pair);
}
KILN_INLINE bool kiln_gates_within(kiln_gates gates, float) {
    return kiln_pair_greater_or_nan(gates, gates >> 16) << 17 <= KILN_GATES_BOUND << 17;
}

#else

typedef uint32_t kiln_gates; /* the sums of their squares */

#if defined(KILN_PART_f16)
#define KILN_GATES_FMA(a, b, c) kiln_sm80_fma_f16x2(a, b, c)
#else
#define KILN_GATES_FMA(a, b, c) kiln_sm80_fma_bf16x2(a, b, c)
#endif

KILN_INLINE kiln_gates kiln_gates_none(void) {
    return 0;
}
KILN_INLINE void kiln_gates_take(kiln_gates *gates, uint32_t pair) {
    *gates = KILN_GATES_FMA(pair, pair, *gates);
}
/* No sum of squares, two at a time, is less than one of them, rounded as 80 squared need not be. */
KILN_INLINE bool kiln_gates_within(kiln_gates gates, float bound) {
    float pair[2];
    kiln_pair_values(pair, gates);
    return pair[0] + pair[1] < bound * bound;
}

#endif

#endif
