/* amax: the greatest magnitudes of x, as the quantising operators take them.
 *
 * The threads that share a row, or a group of 128 of its columns, reduce it: by shuffles alone, or as a whole block.
 * Where several rows share a result, a block takes 8 whole rows, or 128 rows of groups; of rows longer than 8192
 * elements it takes that many. A second launch then reduces the partial results, which the workspace holds. A maximum
 * does not depend on the order in which it is found.
 *
 * Where columns are not adjacent a block turns tiles of 128 columns by 64 rows of 16 bits, or 32 of f32, in shared
 * memory: one for groups of columns, else up to eight, side by side.
 *
 * Floor: one read of the tensor at memory bandwidth, 4 bytes an element of f32, 2 of 16 bits; docs/kernel-report.md has
 * the instruction counts and the time that they take. Not measured.
 * Test: build/tests/ops/amax_test. Bench: build/kiln bench amax */
#include "kernels/amax/amax_args.h"
#include "kernels/amax/amax_transposed_args.h"
#include "kernels/common/quantize/transposed_greatest.h"
#include "kernels/common/reduce/greatest_magnitude.h"
#include "kernels/common/reduce/row_reduce.h"
#include "kernels/common/span.h"

/* The greatest among 1 << lanes_log2 threads: on each vendor by what takes it fewer instructions. */
KILN_INLINE float reduce(float greatest, uint32_t lanes_log2, float *exchange) {
#if defined(__HIP__)
    return kiln_row_reduce(greatest, lanes_log2, exchange, KILN_REDUCE_MAX);
#else
    return kiln_reduce(greatest, lanes_log2, exchange, KILN_REDUCE_MAX);
#endif
}

/* The partial result of a block, or those of its rows. */
KILN_INLINE void find(const kiln_amax_args *args, float *exchange) {
    kiln_span s = kiln_span_of(&args->shape);
    uint32_t lanes_log2 = args->shape.lanes_log2, step = KILN_BLOCK >> lanes_log2;
    uint64_t rows = (uint64_t)args->shape.rows, first = kiln_block() * args->block_rows;
    if (first >= rows) return; /* the whole block */
    uint64_t end = first + args->block_rows < rows ? first + args->block_rows : rows;
    uint64_t left = (uint64_t)args->shape.cols - s.start;
    s.count = left < args->shape.tile ? (uint32_t)left : args->shape.tile;
    s.whole = args->shape.wide ? s.count / KILN_VECTOR : 0;
    kiln_greatest_magnitude own = kiln_greatest_magnitude_none();
    KILN_LOOP
    for (s.row = first + (kiln_thread() >> lanes_log2); s.row < end; s.row += step) {
        const kiln_element *x = kiln_span_of_input(s, args->x, args->x_stride);
        KILN_LOOP
        KILN_FOR_WHOLE(s, vector)
        kiln_greatest_magnitude_take(&own, kiln_vector_load(x + vector * KILN_VECTOR));
        KILN_LOOP
        KILN_FOR_REST(s, i)
        kiln_greatest_magnitude_take_one(&own, x[i]);
    }
    const float greatest =
        reduce(kiln_greatest_magnitude_value(own), args->shared ? KILN_BLOCK_LOG2 : lanes_log2, exchange);
    uint64_t row = args->shared ? kiln_block() : first + (kiln_thread() >> lanes_log2);
    bool writes = args->shared ? kiln_thread() == 0 : s.first == 0 && row < end;
    if (writes) args->partials[row * (uint64_t)args->partial_cols + kiln_tile()] = greatest;
}

/* The result of a block. */
KILN_INLINE void join(const kiln_amax_args *args, float *exchange) {
    uint64_t first = kiln_block() * (uint64_t)args->join_rows, rows = (uint64_t)args->partial_rows;
    if (first >= rows) return; /* the whole block */
    uint64_t end = first + (uint64_t)args->join_rows < rows ? first + (uint64_t)args->join_rows : rows;
    const float *partials = args->partials + kiln_tile() * (uint64_t)args->join_cols;
    float greatest = 0.0f;
    /* Where there are several columns the threads go along the rows, else down the one column. */
    uint64_t along = args->join_cols > 1 ? KILN_BLOCK : 1, down = args->join_cols > 1 ? 1 : KILN_BLOCK;
    KILN_LOOP
    for (uint64_t row = first + (down > 1 ? kiln_thread() : 0); row < end; row += down) {
        KILN_LOOP
        for (uint64_t i = along > 1 ? kiln_thread() : 0; i < (uint64_t)args->join_cols; i += along)
            greatest = kiln_max(partials[row * (uint64_t)args->partial_cols + i], greatest);
    }
    greatest = reduce(greatest, KILN_BLOCK_LOG2, exchange);
    if (kiln_thread() == 0) args->y[kiln_block() * (uint64_t)args->scale_cols + kiln_tile()] = greatest;
}

KILN_ENTRY(amax, kiln_amax_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    if (args.joining)
        join(&args, exchange);
    else
        find(&args, exchange);
}

KILN_ENTRY(amax_transposed, kiln_amax_transposed_args) {
    KILN_SHARED kiln_vector tile[KILN_TRANSPOSED_VECTORS];
    KILN_SHARED float of_lines[KILN_TRANSPOSED_LINES];
    const kiln_transposed *t = &args.x;
    const uint64_t row = kiln_block() << t->rows_log2;
    if (row >= (uint64_t)t->rows) return; /* the whole block */
    kiln_greatest_magnitude greatest = kiln_greatest_magnitude_none();
    KILN_LOOP
    for (uint32_t i = 0; i < args.tiles; i++) {
        const uint64_t col = (kiln_tile() * (uint64_t)args.tiles + i) << KILN_TRANSPOSED_COLS_LOG2;
        if (col >= (uint64_t)t->cols) break;
        kiln_transposed_load(t, kiln_transposed_at(t, row, col), tile);
        kiln_barrier();
        kiln_transposed_take(t, tile, &greatest);
        kiln_barrier();
    }
    kiln_transposed_tell(greatest, of_lines);
    kiln_barrier();
    const uint32_t own = kiln_thread();
    if (own >= (args.shared ? 1u : kiln_transposed_inside(t->rows, row, t->rows_log2))) return;
    args.partials[(args.shared ? kiln_block() : row + own) * (uint64_t)args.partial_cols + kiln_tile()] =
        kiln_transposed_greatest(t, of_lines, own, args.shared != 0);
}
