/* silu_mul on the CPU: the operator's definition. silu_mul_gpu.c says what its blocks do.
 *
 * Floor: two reads and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/silu_mul_test. Bench: build/kiln bench silu_mul --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/silu_mul/silu_mul_args.h"

KILN_OUTLINED void silu_mul(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_silu_mul_args args = *(const kiln_silu_mul_args *)arguments; /* a copy, which no store can change */
    bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    float gate_tile[KILN_TILE], up_tile[KILN_TILE];
    KILN_FOR_TILES(&args.shape, span, dtype, work, col, count) {
        const void *gates = kiln_at(args.gate, work.row * (uint64_t)args.gate_stride + col, dtype);
        const void *ups = kiln_at(args.up, work.row * (uint64_t)args.up_stride + col, dtype);
        void *target = kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride + col, dtype);
        const float *gate = kiln_tile_read(gate_tile, gates, count, dtype);
        const float *up = kiln_tile_read(up_tile, ups, count, dtype);
        float *y = kiln_tile_target(gate_tile, target, dtype, nontemporal);
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            y[i] = kiln_gated(gate[i], args.bound, args.coefficients, KILN_SILU_MUL_COEFFICIENTS) * up[i];
        kiln_tile_write(target, y, count, dtype, nontemporal);
    }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(silu_mul)
