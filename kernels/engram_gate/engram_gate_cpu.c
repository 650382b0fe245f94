/* engram_gate on the CPU: the operator's definition. engram_gate_gpu.c says what its blocks do.
 *
 * Floor: a read of key, query and value and a write of y and normed at memory bandwidth.
 * Test: build/tests/ops/engram_gate_test. Bench: build/kiln bench engram_gate --device cpu */
#include "kernels/common/reduce/row_cpu.h"

#include "kernels/engram_gate/gate.h"

enum { TILE = KILN_TILE / 2 }; /* elements: five tensors have a tile at the same time */

/* Partial sums, as many on every level. */
typedef struct lanes {
    float keys[KILN_LANES], queries[KILN_LANES], products[KILN_LANES], values[KILN_LANES];
} lanes;

/* Where a group of a row begins, in a tensor that has all groups. */
KILN_INLINE const void *group_at(const void *tensor, kiln_cpu_work work, int64_t stride, kiln_cpu_dtype dtype) {
    return kiln_at(tensor, work.row * (uint64_t)stride + work.col, dtype);
}

/* Weights as f32; ones where there are none. */
KILN_INLINE const float *weights_at(float *tile, const void *weight, uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    if (weight) return kiln_tile_load(tile, kiln_at(weight, col, dtype), count, dtype);
    for (size_t i = 0; i < count; i++)
        tile[i] = 1.0f;
    return tile;
}

KILN_INLINE kiln_engram_sums sums_of(const kiln_engram_gate_args *args, kiln_cpu_work work, const void *value,
                                     kiln_cpu_dtype dtype) {
    lanes l = {{0}, {0}, {0}, {0}};
    float key_tile[TILE], query_tile[TILE], value_tile[TILE], key_weight_tile[TILE], query_weight_tile[TILE];
    const void *key = group_at(args->key, work, args->key_stride, dtype);
    const void *query = group_at(args->query, work, args->query_stride, dtype);
    size_t cols = work.col_end - work.col;
    for (size_t start = 0; start < cols; start += TILE) {
        size_t n = kiln_min(cols - start, TILE);
        const float *keys = kiln_tile_load(key_tile, kiln_at(key, start, dtype), n, dtype);
        const float *queries = kiln_tile_load(query_tile, kiln_at(query, start, dtype), n, dtype);
        const float *values = kiln_tile_load(value_tile, kiln_at(value, start, dtype), n, dtype);
        const float *key_weights = weights_at(key_weight_tile, args->key_weight, work.col + start, n, dtype);
        const float *query_weights = weights_at(query_weight_tile, args->query_weight, work.col + start, n, dtype);
        for (size_t i = 0; i < n; i += KILN_LANES) {
            size_t some = kiln_min(n - i, KILN_LANES);
            KILN_INDEPENDENT
            for (size_t lane = 0; lane < some; lane++) {
                float k = keys[i + lane], q = queries[i + lane], v = values[i + lane];
                l.keys[lane] = KILN_FMA(k, k, l.keys[lane]);
                l.queries[lane] = KILN_FMA(q, q, l.queries[lane]);
                l.products[lane] = KILN_FMA(k * key_weights[i + lane], q * query_weights[i + lane], l.products[lane]);
                l.values[lane] = KILN_FMA(v, v, l.values[lane]);
            }
        }
    }
    kiln_engram_sums sums = {kiln_lanes_sum(l.keys), kiln_lanes_sum(l.queries), kiln_lanes_sum(l.products),
                             kiln_lanes_sum(l.values)};
    return sums;
}

/* Writes value * gate and, if it is wanted, its norm times the weights. */
KILN_INLINE void put(void *y, const void *value, const void *weight, uint64_t col, size_t cols, float gate, float norm,
                     kiln_cpu_dtype dtype, bool nontemporal) {
    float tile[TILE], weight_tile[TILE];
    for (size_t start = 0; start < cols; start += TILE) {
        size_t n = kiln_min(cols - start, TILE);
        void *target = kiln_at_mut(y, start, dtype);
        const float *values = kiln_tile_load(tile, kiln_at(value, start, dtype), n, dtype);
        const float *weights = weights_at(weight_tile, weight, col + start, n, dtype);
        float *results = kiln_tile_target(tile, target, dtype, nontemporal);
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            results[i] = values[i] * gate * norm * weights[i];
        kiln_tile_write(target, results, n, dtype, nontemporal);
    }
}

KILN_OUTLINED void engram_gate(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_engram_gate_args args =
        *(const kiln_engram_gate_args *)arguments; /* a copy, which no store can change */
    bool nontemporal = kiln_is_nontemporal(&args.shape, dtype);
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            const void *value = kiln_at(args.value, work.row * (uint64_t)args.value_stride, dtype);
            size_t cols = work.col_end - work.col;
            kiln_engram_sums sums = sums_of(&args, work, value, dtype);
            float gate = kiln_engram_sigmoid(&args, sums);
            put(kiln_at_mut(args.y, work.row * (uint64_t)args.y_stride + work.col, dtype), value, NULL, 0, cols, gate,
                1.0f, dtype, nontemporal);
            if (args.normed)
                put(kiln_at_mut(args.normed, work.row * (uint64_t)args.normed_stride + work.col, dtype), value,
                    args.norm_weight, work.col, cols, gate, kiln_engram_norm(&args, sums, gate), dtype, nontemporal);
        }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(engram_gate)
