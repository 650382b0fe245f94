/* quantize_int8 on the CPU: the operator's definition. quantize_int8_gpu.c says what its blocks do.
 *
 * Floor: one read of the tensor and one write of its codes at memory bandwidth.
 * Test: build/tests/ops/quantize_test. Bench: build/kiln bench quantize_int8 --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/formats/small_integer.h"
#define KILN_QUANTIZE_CODE(value, bound) kiln_int8_within(value, bound)
#include "kernels/common/quantize/quantize_cpu.h"
#include "kernels/common/quantize/quantize_transposed_cpu.h"

KILN_OUTLINED void quantize_int8(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    kiln_quantize(arguments, span, dtype);
}
KILN_CPU_KERNEL(quantize_int8)

KILN_OUTLINED void quantize_int8_transposed(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    kiln_quantize_transposed(arguments, span, dtype);
}
KILN_CPU_KERNEL(quantize_int8_transposed)
