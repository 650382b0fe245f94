/* mha_quantize on all backends: the formula of a scale. The includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_MHA_QUANTIZE_SCALE_H
#define KILN_KERNELS_MHA_QUANTIZE_SCALE_H

#include "kernels/common/attention/mha_quantize_args.h"
#include "kernels/common/formats/float8.h"
#include "kernels/common/formats/small_integer.h"

/* As quantize_fp8 and quantize_int8 have it. */
KILN_INLINE float scale_of(float amax, float greatest) {
    float finite = amax < 0x1.fffffep127f ? amax : 0x1.fffffep127f;
    return finite >= greatest * 0x1p-126f ? finite / greatest : 1.0f;
}

KILN_INLINE float greatest_code(const kiln_mha_quantize_args *args) {
    return args->e4m3 ? KILN_E4M3_GREATEST : 127.0f;
}

KILN_INLINE uint8_t code_of(float number, bool e4m3) {
    return e4m3 ? kiln_e4m3_of(number) : (uint8_t)kiln_int8_of(number);
}

KILN_INLINE float value_scale(float amax) {
    return scale_of(amax, KILN_E4M3_GREATEST);
}

#endif
