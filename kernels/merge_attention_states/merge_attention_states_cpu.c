/* merge_attention_states on the CPU: the operator's definition. merge_attention_states_gpu.c says what its blocks
 * do.
 *
 * Floor: one read of all parts and one write at memory bandwidth.
 * Test: build/tests/ops/merge_attention_states_test. Bench: build/kiln bench merge_attention_states --device cpu */
#include "kernels/common/cpu.h"

#define KILN_LOOP
#include "kernels/merge_attention_states/query.h"

KILN_INLINE void put(const kiln_merge_attention_states_args *args, const kiln_query *q, uint64_t col, size_t count,
                     kiln_cpu_dtype dtype) {
    float tile[KILN_TILE], sums[KILN_TILE] = {0}, scale = kiln_query_scale(q);
    for (uint32_t i = 0; i < args->parts; i++) {
        float weight = kiln_query_weight(q, i);
        const float *values =
            kiln_tile_read(tile, kiln_at(args->x, q->x + i * args->x_part_stride + col, dtype), count, dtype);
        for (size_t j = 0; j < count; j++)
            sums[j] = KILN_FMA(values[j], weight, sums[j]);
    }
    void *target_at = kiln_at_mut(args->out, q->out + col, dtype);
    float *target = kiln_tile_target(tile, target_at, dtype, false);
    for (size_t j = 0; j < count; j++)
        target[j] = sums[j] * scale;
    kiln_tile_write(target_at, target, count, dtype, false);
}

KILN_OUTLINED void merge_attention_states(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_merge_attention_states_args args = *(const kiln_merge_attention_states_args *)arguments;
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            kiln_query q = kiln_query_at(&args, (uint32_t)work.row);
            kiln_query_weigh(&q, args.parts);
            for (uint64_t col = 0; col < (uint64_t)args.shape.cols; col += KILN_TILE)
                put(&args, &q, col, kiln_min((uint64_t)args.shape.cols - col, KILN_TILE), dtype);
            kiln_query_put_lse(&args, &q);
        }
}
KILN_CPU_KERNEL(merge_attention_states)
