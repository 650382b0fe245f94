/* causal_conv1d on the CPU: the operator's definition. causal_conv1d_gpu.c says what its blocks do.
 *
 * Floor: a read of x and of residual and a write of y at memory bandwidth, and a read and a write of the states.
 * Test: build/tests/ops/causal_conv1d_test. Bench: build/kiln bench causal_conv1d --device cpu */
#include "kernels/common/cpu.h"

#include "kernels/causal_conv1d/place.h"

/* Several channels of a place as f32. */
KILN_INLINE const float *load(float *tile, kiln_conv_place place, uint64_t channel, size_t count,
                              kiln_cpu_dtype dtype) {
    if (place.tensor) return kiln_tile_load(tile, kiln_at(place.tensor, place.element + channel, dtype), count, dtype);
    for (size_t i = 0; i < count; i++)
        tile[i] = 0.0f;
    return tile;
}

/* Computes several channels of a token. */
KILN_INLINE void put(const kiln_causal_conv1d_args *args, kiln_varlen_sequence sequence, uint64_t token,
                     uint64_t channel, size_t count, kiln_cpu_dtype dtype) {
    static const float coefficients[1] = {1.0f};
    float sums[KILN_TILE], input_tile[KILN_TILE], tile[KILN_TILE];
    uint32_t place = (uint32_t)token - sequence.begin;
    const kiln_conv_place bias = {args->bias, 0};
    const kiln_conv_place residual = {args->residual, token * (uint64_t)args->residual_stride};
    const float *biases = load(tile, bias, channel, count, dtype);
    for (size_t i = 0; i < count; i++)
        sums[i] = biases[i];
    for (uint32_t row = 0; row < args->width; row++) {
        const kiln_conv_place factor = {args->weight, row * (uint64_t)args->shape.cols};
        uint32_t before = (args->width - 1 - row) * args->dilation;
        const float *factors = load(tile, factor, channel, count, dtype);
        const float *inputs = load(input_tile, kiln_conv_before(args, sequence, place, before), channel, count, dtype);
        for (size_t i = 0; i < count; i++)
            sums[i] = KILN_FMA(factors[i], inputs[i], sums[i]);
    }
    if (args->activation)
        for (size_t i = 0; i < count; i++)
            sums[i] = kiln_gated(sums[i], 80.0f, coefficients, 1);
    const float *residuals = load(tile, residual, channel, count, dtype);
    void *target = kiln_at_mut(args->y, token * (uint64_t)args->y_stride + channel, dtype);
    float *results = kiln_tile_target(input_tile, target, dtype, false);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        results[i] = sums[i] + residuals[i];
    kiln_tile_write(target, results, count, dtype, false);
}

/* Writes a sequence's next state, from the oldest row on: a row that it takes over from the previous state lies further
 * on there. */
KILN_INLINE void put_state(const kiln_causal_conv1d_args *args, kiln_varlen_sequence sequence, uint64_t channel,
                           size_t count, kiln_cpu_dtype dtype) {
    uint64_t state = kiln_conv_state(args, sequence.number);
    uint32_t length = sequence.end - sequence.begin;
    if (state >= (uint64_t)args->states) return;
    for (uint32_t row = 0; row < args->history; row++) {
        kiln_conv_place place = kiln_conv_before(args, sequence, length, args->history - row);
        void *target = kiln_at_mut(args->final_states, kiln_conv_state_row(args, state, row) + channel, dtype);
        size_t size = count * kiln_dtype_size(dtype);
        if (place.tensor)
            memmove(target, kiln_at(place.tensor, place.element + channel, dtype), size);
        else
            memset(target, 0, size);
    }
}

/* All channels of a block's tile. */
KILN_INLINE void put_tile(const kiln_causal_conv1d_args *args, kiln_varlen_sequence sequence, uint64_t token,
                          kiln_cpu_work work, kiln_cpu_dtype dtype) {
    for (uint64_t col = work.col, count; col < work.col_end; col += count) {
        count = kiln_min(work.col_end - col, KILN_TILE);
        put(args, sequence, token, col, count, dtype);
    }
}

KILN_OUTLINED void causal_conv1d(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_causal_conv1d_args args =
        *(const kiln_causal_conv1d_args *)arguments; /* a copy, which no store can change */
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            kiln_varlen_sequence sequence = kiln_varlen_find(&args.varlen, (uint32_t)work.row);
            if (sequence.number >= args.varlen.batch) continue;
            put_tile(&args, sequence, work.row, work, dtype);
            if (args.final_states) put_state(&args, sequence, work.col, work.col_end - work.col, dtype);
        }
}
KILN_CPU_KERNEL(causal_conv1d)

KILN_OUTLINED void causal_conv1d_states(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_causal_conv1d_args args =
        *(const kiln_causal_conv1d_args *)arguments; /* a copy, which no store can change */
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++)
            put_state(&args, kiln_varlen_of(&args.varlen, (uint32_t)work.row, args.tokens), work.col,
                      work.col_end - work.col, dtype);
}
KILN_CPU_KERNEL(causal_conv1d_states)
