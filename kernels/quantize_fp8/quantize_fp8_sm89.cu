/* quantize_fp8 for sm_89 and later: quantize_fp8_gpu.c, with the hardware's conversion to E4M3. */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm89_codes.h"
#include "kernels/common/device.h"
#include "kernels/common/encode_gpu.h"
#include "kernels/common/tuned.h"

/* kiln_e4m3_eight by the hardware, whose own bound is 448. */
KILN_INLINE kiln_eight_bytes converted(float *values, float bound) {
    if (bound < 448.0f) {
        KILN_UNROLL
        for (int i = 0; i < 8; i++) /* NaN stays */
            values[i] = values[i] == values[i] ? kiln_fast_clamp(values[i], bound) : values[i];
    }
    kiln_eight_bytes bytes = {{kiln_sm89_cvt_e4m3x4_f32(values), kiln_sm89_cvt_e4m3x4_f32(values + 4)}};
    return bytes;
}
#define KILN_QUANTIZE_EIGHT(values, bound) converted(values, bound)

#include "kernels/quantize_fp8/quantize_fp8_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_TUNED_ASSEMBLER(12.4.131)
