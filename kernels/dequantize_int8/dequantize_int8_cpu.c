/* dequantize_int8 on the CPU: the operator's definition. dequantize_int8_gpu.c says what its blocks do.
 *
 * Floor: one read of the codes and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/dequantize_test. Bench: build/kiln bench dequantize_int8 --device cpu */
#include "kernels/common/cpu.h"

KILN_INLINE void codes_load(float *to, const uint8_t *codes, size_t count) {
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        to[i] = (float)(int8_t)codes[i];
}

#include "kernels/common/quantize/dequantize_cpu.h"

KILN_OUTLINED void dequantize_int8(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    kiln_dequantize(arguments, span, dtype);
}
KILN_CPU_KERNEL(dequantize_int8)
