/* quantize_embedding: rows as bits, int8 or int4, and their scales.
 *
 * The threads that share a row are as many as it has units of eight columns, up to 32, or a whole block. A thread
 * converts a unit at a time and stores its codes with one access. Where there are scales, an earlier pass finds the
 * greatest magnitude; a thread's first unit, which is all that it has of most rows, stays in registers, and the rest is
 * read twice, the second time from a cache. The squares are summed in the pass that makes the codes, in units of the
 * scale, where they can neither overflow nor vanish.
 *
 * Floor: one read of x and one write of the codes at memory bandwidth; docs/kernel-report.md has the instruction counts
 * and the time that they take. Not measured.
 * Test: build/tests/ops/vector_search_test. Bench: build/kiln bench quantize_embedding */
#include "kernels/common/reduce.h"
#include "kernels/common/span.h"
#include "kernels/common/values.h"
#include "kernels/quantize_embedding/embedding_codes.h"

enum { UNIT = KILN_EMBEDDING_UNIT };

/* The elements of a unit; zeros beyond the row. */
KILN_INLINE void take_unit(float *values, const kiln_element *x, uint32_t unit, const kiln_shape *shape) {
    const uint32_t cols = (uint32_t)shape->cols, first = unit * UNIT;
    if (shape->wide && first + UNIT <= cols) {
        KILN_UNROLL
        for (uint32_t i = 0; i < UNIT; i += KILN_VECTOR)
            kiln_vector_values(values + i, kiln_vector_load(x + first + i));
        return;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < UNIT; i++)
        values[i] = first + i < cols ? kiln_element_to_f32(x[first + i]) : 0.0f;
}

KILN_INLINE void put_unit(const kiln_quantize_embedding_args *args, uint8_t *codes, uint32_t unit, uint64_t code) {
    const uint32_t at = unit * args->unit_bytes;
    if (args->whole && args->code_type == KILN_CODE_INT8) {
        *(uint64_t *)(codes + at) = code;
    } else if (args->whole && args->code_type == KILN_CODE_INT4) {
        *(uint32_t *)(codes + at) = (uint32_t)code;
    } else {
        KILN_LOOP
        for (uint32_t i = 0; i < args->unit_bytes && at + i < args->code_cols; i++, code >>= 8)
            codes[at + i] = (uint8_t)code;
    }
}

KILN_ENTRY(quantize_embedding, kiln_quantize_embedding_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    const uint32_t lanes_log2 = args.shape.lanes_log2, lanes = 1u << lanes_log2, lane = kiln_thread() & (lanes - 1);
    const uint64_t row = (kiln_block() << (KILN_BLOCK_LOG2 - lanes_log2)) + (kiln_thread() >> lanes_log2);
    if (row - (kiln_thread() >> lanes_log2) >= (uint64_t)args.shape.rows) return; /* the whole block */
    const uint32_t units = row < (uint64_t)args.shape.rows ? args.units : 0;
    const kiln_element *x = (const kiln_element *)args.x + row * (uint64_t)args.x_stride;
    float kept[UNIT], values[UNIT], greatest = 0.0f, squares = 0.0f, scale = 1.0f;
    if (lane < units) take_unit(kept, x, lane, &args.shape);

    if (args.code_type != KILN_CODE_BINARY) { /* by all threads, including those without a row */
        KILN_LOOP
        for (uint32_t unit = lane; unit < units; unit += lanes) {
            KILN_UNROLL
            for (uint32_t i = 0; i < UNIT; i++)
                values[i] = kept[i];
            if (unit != lane) take_unit(values, x, unit, &args.shape);
            KILN_UNROLL
            for (uint32_t i = 0; i < UNIT; i++)
                greatest = kiln_max(kiln_embedding_magnitude(values[i]), greatest);
        }
        scale = kiln_embedding_scale(kiln_reduce(greatest, lanes_log2, exchange, KILN_REDUCE_MAX), args.smax);
    }
    const float factor = 1.0f / scale;
    uint8_t *codes = args.codes + row * (uint64_t)args.codes_stride;
    KILN_LOOP
    for (uint32_t unit = lane; unit < units; unit += lanes) {
        KILN_UNROLL
        for (uint32_t i = 0; i < UNIT; i++)
            values[i] = kept[i];
        if (unit != lane) take_unit(values, x, unit, &args.shape);
        KILN_UNROLL
        for (uint32_t i = 0; i < UNIT; i++) {
            values[i] *= factor;
            float number = kiln_embedding_bounded(values[i], args.smax);
            squares = KILN_FMA(number, number, squares);
        }
        put_unit(&args, codes, unit, kiln_embedding_codes(values, args.smax, args.code_type));
    }
    if (!args.scales) return;
    if (args.normalize) squares = kiln_reduce(squares, lanes_log2, exchange, KILN_REDUCE_SUM);
    if (lane == 0 && units) args.scales[row] = args.normalize ? kiln_embedding_normalized(scale, squares) : scale;
}
