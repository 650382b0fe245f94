/* The gate of a row by its sums: one source for all backends.
 * The includer (device.h, cpu.h) defines what math.h asks
 * for. */
#ifndef KILN_KERNELS_ENGRAM_GATE_GATE_H
#define KILN_KERNELS_ENGRAM_GATE_GATE_H

#include "kernels/common/math/root.h"
#include "kernels/engram_gate/engram_gate_args.h"

/* The sums over a row: the squares of key and of query, the products of the two with their weights, the squares of
 * value. */
typedef struct kiln_engram_sums {
    float keys, queries, products, values;
} kiln_engram_sums;

/* The sigmoid of the signed root of the norms' product. NaN stays NaN; below -80 the sigmoid is that of -80. */
KILN_INLINE float kiln_engram_sigmoid(const kiln_engram_gate_args *args, kiln_engram_sums sums) {
    float key = kiln_rsqrt(KILN_FMA(sums.keys, args->mean, args->eps));
    float query = kiln_rsqrt(KILN_FMA(sums.queries, args->mean, args->eps));
    float g = sums.products * key * query * args->scale, size = g < 0.0f ? -g : g;
    size = 1e-6f > size ? 1e-6f : size;
    float root = size * kiln_rsqrt(size);
    root = g < 0.0f ? -root : g > 0.0f ? root : g;
    root = root < -80.0f ? -80.0f : root;
    return kiln_reciprocal(1.0f + kiln_exp(-root));
}

/* The factor that normalises the gated values. */
KILN_INLINE float kiln_engram_norm(const kiln_engram_gate_args *args, kiln_engram_sums sums, float gate) {
    return kiln_rsqrt(KILN_FMA(gate * gate * sums.values, args->mean, args->norm_eps));
}

#endif
