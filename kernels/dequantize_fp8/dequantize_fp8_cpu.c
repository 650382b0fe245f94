/* dequantize_fp8 on the CPU: the operator's definition. dequantize_fp8_gpu.c says what its blocks do.
 *
 * Floor: one read of the codes and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/dequantize_test. Bench: build/kiln bench dequantize_fp8 --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/formats/float8_cpu.h"

KILN_INLINE void codes_load(float *to, const uint8_t *codes, size_t count) {
    kiln_e4m3_load(to, codes, count);
}

#include "kernels/common/quantize/dequantize_cpu.h"

KILN_OUTLINED void dequantize_fp8(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    kiln_dequantize(arguments, span, dtype);
}
KILN_CPU_KERNEL(dequantize_fp8)
