/* silu_mul_nvfp4 on the CPU: the operator's definition. silu_mul_nvfp4_gpu.c says what its blocks do.
 *
 * Floor: one read of gate and up and one write of the codes, at memory bandwidth.
 * Test: build/tests/ops/codes_test. Bench: build/kiln bench silu_mul_nvfp4 --device cpu */
#include "kernels/common/quantize/silu_mul_codes_cpu.h"

KILN_OUTLINED void silu_mul_nvfp4(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    kiln_silu_mul_codes(arguments, span, KILN_CODES_NVFP4, dtype);
}
KILN_CPU_KERNEL(silu_mul_nvfp4)
