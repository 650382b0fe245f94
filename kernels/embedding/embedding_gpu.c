/* embedding: rows of a table, copied bit by bit; zeros where the table has no such row.
 *
 * A block computes a tile of several rows, as in add_gelu: 1 to 256 threads share a row, each with up to four vectors
 * of 16 bytes. Without 16-byte alignment, and at a row's end, consecutive threads take consecutive elements. Where a
 * table is divided by rows among devices, the first row of each device's table has an id of its own, and the sum of all
 * devices' results is the embedding.
 *
 * Floor: one read and one write of the result at memory bandwidth.
 * Test: build/tests/ops/embedding_test. Bench: build/kiln bench embedding */
#include "kernels/common/span.h"

#include "kernels/common/index.h"
#include "kernels/embedding/embedding_args.h"

KILN_ENTRY(embedding, kiln_embedding_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    uint64_t row = kiln_index(args.ids, args.ids_64, s.row) - (uint64_t)args.first;
    bool inside = row < (uint64_t)args.vocabulary;
    const kiln_element *source = (const kiln_element *)args.table;
    if (inside) source += row * (uint64_t)args.table_stride + s.start;
    kiln_element *y = kiln_span_in(s, args.y, args.y_stride);

    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector values = {{0}};
        if (inside) values = kiln_vector_load(source + vector * KILN_VECTOR);
        kiln_vector_store(y + vector * KILN_VECTOR, values);
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    y[i] = inside ? source[i] : (kiln_element)0;
}
