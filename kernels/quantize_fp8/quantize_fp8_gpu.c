/* quantize_fp8: codes = E4M3 of x / scale, and the decode scales amax / smax.
 *
 * Where each row, or each group of 128 of its columns, has a scale, the threads that share it reduce by shuffles alone,
 * or are a whole block. Where the scales or the greatest magnitudes are known beforehand, the launch goes element by
 * element. A scale of 128 rows by 128 columns takes a block. Each thread keeps the first vector that it reads, which is
 * all of its share of a group; the rest of a longer row is read twice, the second time from a cache. Keeping four made
 * the code too large: each further vector in registers lengthens it as much again.
 *
 * Floor: one read of x and one write of a byte for each element at memory bandwidth, 5 bytes an element of f32, 3 of 16
 * bits; docs/kernel-report.md has the instruction counts and the time that they take.
 * Test: build/tests/ops/quantize_test. Bench: build/kiln bench quantize_fp8 */
#include "kernels/common/device.h"
#include "kernels/common/e4m3_eight.h"
#define KILN_QUANTIZE_EIGHT(values, bound) kiln_e4m3_eight_of(values, bound)
#include "kernels/common/quantize_gpu.h"

/* The codes of four finite numbers of which none is beyond 448 by more than rounding. */
KILN_INLINE uint32_t finite(const float *values) {
#if defined(__HIP__)
#if defined(__gfx942__)
    float halves[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i += 2) {
        const kiln_two pair = kiln_two_of(values[i], values[i + 1]) * 0.5f;
        halves[i] = pair.x;
        halves[i + 1] = pair.y;
    }
    const uint32_t codes = kiln_gfx942_cvt_fnuz_x4(halves); /* with signs, but for -0 */
#else
    float magnitudes[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        magnitudes[i] = __builtin_fabsf(values[i]);
    const uint32_t codes = kiln_e4m3_four_magnitudes(magnitudes);
#endif
    return codes | (kiln_float_bytes(values, 1, 3) & 0x80808080u);
#elif KILN_E4M3_INSTRUCTION
    return kiln_e4m3_word(values);
#else
    uint32_t steps[2];
    KILN_UNROLL
    for (int i = 0; i < 2; i++) { /* kiln_steps (encode_gpu.h) of two numbers, which are added as halves of a word */
        float powers[2], sums[2];
        KILN_UNROLL
        for (int j = 0; j < 2; j++) {
            const float magnitude = __builtin_fabsf(values[2 * i + j]);
            powers[j] = kiln_float_and(kiln_fast_max(magnitude, 0x1p-6f), 0x7f800000u);
            sums[j] = KILN_FMA(powers[j], 0x1.00007p20f, magnitude);
        }
        steps[i] = kiln_ptx_prmt(sums[0], sums[1], 0x5410) + (kiln_ptx_prmt(powers[0], powers[1], 0x7632) >> 4);
    }
    return __byte_perm(steps[0], steps[1], 0x6420) | (kiln_float_bytes(values, 1, 3) & 0x80808080u);
#endif
}
#define KILN_QUANTIZE_MOST           448.0f
#define KILN_QUANTIZE_FINITE(values) finite(values)
#include "kernels/common/quantize_transposed_tile.h"

KILN_ENTRY(quantize_fp8, kiln_quantize_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_quantize(&args, exchange);
}

#if defined(__CUDACC__) /* no fewer blocks resident than without the codes of whole tiles */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 6) void
#endif

KILN_ENTRY(quantize_fp8_transposed, kiln_quantize_transposed_args) {
    KILN_SHARED kiln_quantize_transposed_shared shared;
    KILN_DYNAMIC_SHARED(kiln_vector, tiles);
    if (!kiln_quantize_transposed_tile(&args, tiles)) kiln_quantize_transposed(&args, tiles, &shared);
}
