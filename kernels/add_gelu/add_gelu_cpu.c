/* add_gelu on the CPU: the operator's definition. add_gelu_gpu.c says what its blocks do.
 *
 * Floor: one read and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/add_gelu_test. Bench: build/kiln bench add_gelu --device cpu */
#include "kernels/add_gelu/add_gelu_args.h"
#include "kernels/common/cpu.h"

KILN_OUTLINED void add_gelu(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_add_gelu_args args = *(const kiln_add_gelu_args *)arguments; /* a copy, which no store can change */
    bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    float x_tile[KILN_TILE], bias_tile[KILN_TILE] = {0};
    KILN_FOR_TILES(&args.shape, span, dtype, work, col, count) {
        const void *source = kiln_at(args.x, work.row * (uint64_t)args.x_stride + col, dtype);
        void *target = kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride + col, dtype);
        const float *x = kiln_tile_read(x_tile, source, count, dtype);
        const float *bias =
            args.bias ? kiln_tile_read(bias_tile, kiln_at(args.bias, col, dtype), count, dtype) : bias_tile;
        float *y = kiln_tile_target(x_tile, target, dtype, nontemporal);
        if (args.coefficients[2] == 0.0f) {
            KILN_INDEPENDENT
            for (size_t i = 0; i < count; i++)
                y[i] = kiln_gated(x[i] + bias[i], args.bound, args.coefficients, 2);
        } else {
            KILN_INDEPENDENT
            for (size_t i = 0; i < count; i++)
                y[i] = kiln_gated(x[i] + bias[i], args.bound, args.coefficients, KILN_ADD_GELU_COEFFICIENTS);
        }
        kiln_tile_write(target, y, count, dtype, nontemporal);
    }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(add_gelu)
