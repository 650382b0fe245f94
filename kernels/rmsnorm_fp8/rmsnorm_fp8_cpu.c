/* rmsnorm_fp8 on the CPU: the operator's definition. rmsnorm_fp8_gpu.c says what its blocks do.
 *
 * Floor: one read of each input that is given and one write of each output, at memory bandwidth.
 * Test: build/tests/ops/codes_test. Bench: build/kiln bench rmsnorm_fp8 --device cpu */
#include "kernels/common/quantize/rmsnorm_codes_cpu.h"

KILN_OUTLINED void rmsnorm_fp8(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    kiln_rmsnorm_codes(arguments, span, KILN_CODES_E4M3, dtype);
}
KILN_CPU_KERNEL(rmsnorm_fp8)
