/* SiLU of glu_exactly.h for two gates at once, bit by bit: by instructions for two numbers on sm_100. */
#ifndef KILN_KERNELS_COMMON_MATH_GLU_PACKED_H
#define KILN_KERNELS_COMMON_MATH_GLU_PACKED_H

#include "kernels/arch/ptx.h"
#include "kernels/common/device.h"
#include "kernels/common/math/glu_exactly.h"
#include "kernels/common/math/packed.h"

#if __CUDA_ARCH__ >= 1000

/* A constant twice, as a constant. */
KILN_INLINE kiln_packed kiln_packed_of(float value) {
    const uint64_t bits = kiln_bits(value);
    return bits << 32 | bits;
}

/* kiln_glu_reciprocal of two sums. */
KILN_INLINE kiln_packed kiln_packed_glu_reciprocal(float *sums) {
    float starts[2];
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
#if defined(KILN_PART_f32)
        sums[i] = kiln_float_and(sums[i], ~1u);
#endif
        starts[i] = kiln_fast_reciprocal(sums[i]);
    }
#if defined(KILN_PART_f32)
    const kiln_packed opposite = kiln_packed_mul(kiln_pack(sums[0], sums[1]), kiln_packed_of(-1.0f));
#else
    const kiln_packed opposite =
        kiln_pack(kiln_ptx_and_or(sums[0], ~1u, 0x80000000u), kiln_ptx_and_or(sums[1], ~1u, 0x80000000u));
#endif
    const kiln_packed start = kiln_pack(starts[0], starts[1]);
    return kiln_packed_fma(kiln_packed_fma(opposite, start, kiln_packed_of(1.0f)), start, start);
}

/* kiln_glu_within(t, t) of both. */
KILN_INLINE kiln_packed kiln_packed_silu_within(kiln_packed t) {
    const float magic = 0x1.8p23f + 127.0f;
    const kiln_packed shifted = kiln_packed_fma(t, kiln_packed_of(-0x1.715476p0f), kiln_packed_of(magic));
    const kiln_packed rounded = kiln_packed_add(shifted, kiln_packed_of(-magic));
    const kiln_packed r = kiln_packed_fma(rounded, kiln_packed_of(0x1.62e43p-1f), t);
    kiln_packed q = kiln_packed_fma(kiln_packed_of(0x1.5b3004p-5f), r, kiln_packed_of(-0x1.583e6ep-3f));
    q = kiln_packed_fma(q, r, kiln_packed_of(0x1.fff564p-2f));
    q = kiln_packed_fma(q, r, kiln_packed_of(-0x1.fff9a4p-1f));
    q = kiln_packed_fma(q, r, kiln_packed_of(1.0f));
    float powers[2], sums[2];
    kiln_unpack(powers, shifted);
    KILN_UNROLL
    for (int i = 0; i < 2; i++)
        powers[i] = KILN_GLU_SHL(powers[i], 23);
    kiln_unpack(sums, kiln_packed_fma(q, kiln_pack(powers[0], powers[1]), kiln_packed_of(1.0f)));
    return kiln_packed_mul(t, kiln_packed_glu_reciprocal(sums));
}

#else

KILN_INLINE kiln_packed kiln_packed_of(float value) {
    return kiln_pack(value, value);
}

KILN_INLINE kiln_packed kiln_packed_silu_within(kiln_packed t) {
    return kiln_pack(kiln_glu_within(t.x, t.x), kiln_glu_within(t.y, t.y));
}

#endif

/* Whether none of the numbers whose squares were added is beyond a bound in magnitude, which is certain if the sum is
 * less than the bound's square by more than the rounding of sums. NaN is beyond it. */
KILN_INLINE bool kiln_packed_within(kiln_packed squares, float bound) {
    float sums[2];
    kiln_unpack(sums, squares);
    return sums[0] + sums[1] < bound * bound * 0.999f;
}

#endif
