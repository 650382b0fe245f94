/* What codes_four_gpu.h has, for codes of NVFP4: rows of whole blocks of 16 columns, with a global scale that is
 * computed for each. Two neighbouring threads share each block, and both find its scale. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_FOUR_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_FOUR_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/formats/e2m1_eight.h"
#include "kernels/common/quantize/codes_four_gpu.h"
#include "kernels/common/quantize/nvfp4_quickly.h"

/* kiln_nvfp4_scale_of where encode is at least 2^-117, whereby infinity's scale is the greatest. */
KILN_INLINE uint32_t kiln_nvfp4_four_scale(float greatest, float encode) {
    const float sixth = 1.0f / KILN_E2M1_GREATEST, finite = kiln_fast_min(greatest, 0x1.fffffep127f);
    const float near = finite * sixth;
    const float quotient = KILN_FMA(KILN_FMA(-KILN_E2M1_GREATEST, near, finite), sixth, near);
    const float scale = kiln_fast_min(quotient * encode, KILN_E4M3_GREATEST);
#if defined(__gfx942__)
    const float half[4] = {scale * 0.5f};
    return kiln_gfx942_cvt_fnuz_x4(half) & 0xffu;
#else
    return kiln_steps(scale, 0x1p-6f, 3, 56) & 0xffu;
#endif
}

/* Writes a thread's eights, which are lost, and the scales. greatest: of each eight; of_row: of the row. */
KILN_INLINE void kiln_nvfp4_four_put(const kiln_codes_args *args, kiln_codes_place p, float (*values)[KILN_EIGHT],
                                     const float *greatest, float of_row) {
    const uint32_t own = p.inside ? (uint32_t)args->shape.cols / KILN_EIGHT : 0, blocks = (uint32_t)args->scale_cols;
    const float global = kiln_nvfp4_global_quickly(of_row), encode = kiln_nvfp4_encode_quickly(global);
    if (args->global_scale && p.inside && p.lane == 0) args->global_scale[p.row] = global;
    const uint32_t all = p.row < (uint64_t)args->shape.rows ? args->eights : 0, block = p.lane / 2;
    const uint32_t step = args->swizzled ? p.lanes / 8 * 512 : p.lanes / 2;
    uint8_t *scales = (uint8_t *)args->scales +
                      (args->swizzled ? kiln_nvfp4_swizzled(p.row, block, blocks) : p.row * (uint64_t)blocks + block);
    uint8_t *codes = args->codes + p.row * (uint64_t)args->codes_stride + p.lane * (KILN_EIGHT / 2);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_FOUR; i++, scales += step, codes += p.lanes * (KILN_EIGHT / 2)) {
        const uint32_t eight = p.lane + i * p.lanes;
        uint32_t scale = kiln_nvfp4_four_scale(kiln_greater_of_halves(greatest[i], 0), encode);
        const float factor = kiln_nvfp4_factor_quickly(scale, encode);
        KILN_UNROLL
        for (int e = 0; e < KILN_EIGHT; e++)
            values[i][e] *= factor;
        uint32_t word = kiln_e2m1_eight_of(values[i]);
        if (eight >= own) word = scale = 0; /* after a row of NaN there are zeros, too */
        if (eight < all) {
            if (p.lane % 2 == 0) *scales = (uint8_t)scale;
            if (p.inside) *(uint32_t *)codes = word;
        }
    }
}

#endif
