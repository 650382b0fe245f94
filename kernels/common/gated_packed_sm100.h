/* SiLU of gated_exactly.h for two gates at once on sm_100, bit by bit. */
#ifndef KILN_KERNELS_COMMON_GATED_PACKED_SM100_H
#define KILN_KERNELS_COMMON_GATED_PACKED_SM100_H

#include "kernels/common/gated_exactly.h"
#include "kernels/common/packed.h"

/* A constant twice, as a constant. */
KILN_INLINE kiln_packed kiln_packed_of(float value) {
    const uint64_t bits = kiln_bits(value);
    return bits << 32 | bits;
}

/* kiln_gated_within(t, t) of both. */
KILN_INLINE kiln_packed kiln_packed_silu_within(kiln_packed t) {
    const float magic = 0x1.8p23f + 127.0f;
    const kiln_packed shifted = kiln_packed_fma(t, kiln_packed_of(-0x1.715476p0f), kiln_packed_of(magic));
    const kiln_packed rounded = kiln_packed_add(shifted, kiln_packed_of(-magic));
    const kiln_packed r = kiln_packed_fma(rounded, kiln_packed_of(0x1.62e43p-1f), t);
    kiln_packed q = kiln_packed_fma(kiln_packed_of(0x1.6a2436p-10f), r, kiln_packed_of(-0x1.1239ep-7f));
    q = kiln_packed_fma(q, r, kiln_packed_of(0x1.5558f2p-5f));
    q = kiln_packed_fma(q, r, kiln_packed_of(-0x1.555492p-3f));
    q = kiln_packed_fma(q, r, kiln_packed_of(0x1.fffffcp-2f));
    q = kiln_packed_fma(q, r, kiln_packed_of(-1.0f));
    q = kiln_packed_fma(q, r, kiln_packed_of(1.0f));
    float powers[2], sums[2], starts[2];
    kiln_unpack(powers, shifted);
    KILN_UNROLL
    for (int i = 0; i < 2; i++)
        powers[i] = KILN_GATED_SHL(powers[i], 23);
    kiln_unpack(sums, kiln_packed_fma(q, kiln_pack(powers[0], powers[1]), kiln_packed_of(1.0f)));
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        sums[i] = KILN_GATED_AND(sums[i], ~1u);
        starts[i] = kiln_fast_reciprocal(sums[i]);
    }
    const kiln_packed start = kiln_pack(starts[0], starts[1]);
    const kiln_packed opposite = kiln_packed_mul(kiln_pack(sums[0], sums[1]), kiln_packed_of(-1.0f));
    const kiln_packed error = kiln_packed_fma(opposite, start, kiln_packed_of(1.0f)); /* kiln_reciprocal_step */
    return kiln_packed_mul(t, kiln_packed_fma(error, start, start));
}

/* Whether none of the numbers whose squares were added is beyond a bound in magnitude, which is certain if the sum is
 * less than the bound's square by more than the rounding of sums. NaN is beyond it. */
KILN_INLINE bool kiln_packed_within(kiln_packed squares, float bound) {
    float sums[2];
    kiln_unpack(sums, squares);
    return sums[0] + sums[1] < bound * bound * 0.999f;
}

#endif
