/* add on the CPU: the operator's definition. add_gpu.c says what its blocks do.
 *
 * Floor: two reads and one write of the tensor at memory bandwidth.
 * Test: build/tests/ops/add_test. Bench: build/kiln bench add --device cpu */
#include "kernels/add/add_args.h"
#include "kernels/common/cpu.h"

KILN_OUTLINED void add(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_add_args args = *(const kiln_add_args *)arguments; /* a copy, which no store can change */
    bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    float a_tile[KILN_TILE], b_tile[KILN_TILE];
    KILN_FOR_TILES(&args.shape, span, dtype, work, col, count) {
        const float *a = kiln_tile_read(a_tile, kiln_at(args.a, col, dtype), count, dtype);
        const float *b = kiln_tile_read(b_tile, kiln_at(args.b, col, dtype), count, dtype);
        void *target = kiln_at_mut(args.y, col, dtype);
        float *y = kiln_tile_target(a_tile, target, dtype, nontemporal);
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            y[i] = a[i] + b[i];
        kiln_tile_write(target, y, count, dtype, nontemporal);
    }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(add)
