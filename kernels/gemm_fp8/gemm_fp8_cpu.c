/* gemm_fp8 on the CPU: the operator's definition, which is in w8a8_cpu.h.
 *
 * Floor: 2 m n k operations for gemm_fp8_tiles, one read of b at memory bandwidth for gemm_fp8_rows.
 * Test: build/tests/ops/w8a8_test. Bench: build/kiln bench gemm_fp8 --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/formats/float8_cpu.h"

#define W8A8_INTEGERS 0
#define CODES_UNIT    KILN_E4M3_UNIT
enum { CODES_VECS = KILN_E4M3_VECS, CODES_PARTS = KILN_E4M3_PARTS };

KILN_INLINE void codes_load(float *tile, const uint8_t *codes, size_t count) {
    kiln_e4m3_load(tile, codes, count);
}

KILN_INLINE void codes_vecs(kiln_vec *to, const uint8_t *codes, size_t part) {
    kiln_e4m3_part(to, codes, part);
}

#include "kernels/common/matmul/w8a8_cpu.h"

KILN_INLINE void gemm_fp8_tiles(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    w8a8_tiles(arguments, span, dtype);
}
KILN_CPU_KERNEL(gemm_fp8_tiles)

KILN_INLINE void gemm_fp8_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    w8a8_rows(arguments, span, dtype);
}
KILN_CPU_KERNEL(gemm_fp8_rows)

KILN_INLINE void gemm_fp8_join(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    w8a8_join(arguments, span, dtype);
}
KILN_CPU_KERNEL(gemm_fp8_join)
