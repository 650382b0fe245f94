/* The scale of a block of NVFP4 on devices, by the target's own conversion to E4M3 where it has one, from sm_89 on. The
 * result is that of nvfp4_scale.h, bit by bit. KILN_E2M1_INSTRUCTION is 1 where there are conversions to and from E2M1,
 * too, in the families of sm_100f and sm_120f. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_CODES_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_CODES_H

#include "kernels/common/device.h"
#include "kernels/common/formats/encode_gpu.h"

#if KILN_E4M3_INSTRUCTION
#include "kernels/arch/sm89.h"
#endif

#if defined(__CUDACC__) && defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000
#include "kernels/arch/sm100f.h"
#define KILN_E2M1_INSTRUCTION 1
#else
#define KILN_E2M1_INSTRUCTION 0
#endif

/* kiln_nvfp4_scale of a greatest magnitude. */
KILN_INLINE uint32_t kiln_nvfp4_block_scale(float greatest, float encode) {
#if KILN_E4M3_INSTRUCTION
    const float sixth = 1.0f / KILN_E2M1_GREATEST, near = greatest * sixth;
    const float quotient = KILN_FMA(KILN_FMA(-KILN_E2M1_GREATEST, near, greatest), sixth, near);
    return kiln_sm89_cvt_e4m3_f32((greatest < KILN_INFINITY ? quotient : greatest) * encode);
#else
    return kiln_nvfp4_scale_of(greatest, encode);
#endif
}

#endif
