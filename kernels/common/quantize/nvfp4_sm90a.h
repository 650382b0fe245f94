/* The scales and the codes of NVFP4 on sm_90a, in fewer instructions than encode_gpu.h takes. The results are the same,
 * bit by bit. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_SM90A_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_SM90A_H

#include "kernels/arch/sm89.h"
#include "kernels/common/quantize/nvfp4_quickly.h"

/* kiln_nvfp4_scale_of: an instruction rounds to E4M3. */
KILN_INLINE uint32_t kiln_nvfp4_scale_rounded(float greatest, float encode) {
    const float sixth = 1.0f / KILN_E2M1_GREATEST;
    float quotient = greatest * sixth;
    quotient = KILN_FMA(KILN_FMA(-KILN_E2M1_GREATEST, quotient, greatest), sixth, quotient);
    const float numbers[4] = {(greatest < KILN_INFINITY ? quotient : greatest) * encode};
    return kiln_sm89_cvt_e4m3x4_f32(numbers) & 0xffu;
}

/* kiln_e2m1_eight: a byte's two codes are joined before the bytes are. */
KILN_INLINE uint32_t kiln_e2m1_eight_joined(const float *values) {
    uint32_t pairs[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
        const float even = kiln_fast_min(__builtin_fabsf(values[2 * i]), KILN_E2M1_GREATEST);
        const float odd = kiln_fast_min(__builtin_fabsf(values[2 * i + 1]), KILN_E2M1_GREATEST);
        pairs[i] = kiln_e2m1_steps(even) + (kiln_e2m1_steps(odd) << 4); /* the sums' lowest byte is the code alone */
    }
    return kiln_bytes_of(pairs, 0) | (kiln_float_bytes(values, 2, 3) >> 4 & 0x08080808u) |
           (kiln_float_bytes(values + 1, 2, 3) & 0x80808080u);
}

#endif
