/* quantize_fp8 on the CPU: the operator's definition. quantize_fp8_gpu.c says what its blocks do.
 *
 * Floor: one read of the tensor and one write of its codes at memory bandwidth.
 * Test: build/tests/ops/quantize_test. Bench: build/kiln bench quantize_fp8 --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/formats/float8.h"
#define KILN_QUANTIZE_CODE(value, bound) kiln_e4m3_within(value, bound)
#include "kernels/common/quantize/quantize_cpu.h"
#include "kernels/common/quantize/quantize_transposed_cpu.h"

KILN_OUTLINED void quantize_fp8(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    kiln_quantize(arguments, span, dtype);
}
KILN_CPU_KERNEL(quantize_fp8)

KILN_OUTLINED void quantize_fp8_transposed(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    kiln_quantize_transposed(arguments, span, dtype);
}
KILN_CPU_KERNEL(quantize_fp8_transposed)
