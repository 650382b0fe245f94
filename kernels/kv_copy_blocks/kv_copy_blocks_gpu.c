/* kv_copy_blocks: blocks of a cache of keys and values, copied bit by bit within it.
 *
 * A pair is a row: a block copies a tile of several rows, as in add_gelu, with up to four vectors of 16 bytes for each
 * thread. Without 16-byte alignment, and at a row's end, consecutive threads take consecutive elements.
 *
 * Floor: one read and one write of both caches' blocks at memory bandwidth.
 * Test: build/tests/ops/kv_copy_blocks_test. Bench: build/kiln bench kv_copy_blocks */
#include "kernels/common/span.h"

#include "kernels/common/index.h"
#include "kernels/kv_copy_blocks/kv_copy_blocks_args.h"

KILN_INLINE void copy(kiln_span s, void *cache, uint64_t from, uint64_t to, int64_t cols) {
    const kiln_element *source = (const kiln_element *)cache + from * (uint64_t)cols + s.start;
    kiln_element *target = (kiln_element *)cache + to * (uint64_t)cols + s.start;
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector)
    kiln_vector_store(target + vector * KILN_VECTOR, kiln_vector_load(source + vector * KILN_VECTOR));
    KILN_LOOP
    KILN_FOR_REST(s, i)
    target[i] = source[i];
}

KILN_ENTRY(kv_copy_blocks, kiln_kv_copy_blocks_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    uint64_t from = kiln_index(args.pairs, args.pairs_64, 2 * s.row);
    uint64_t to = kiln_index(args.pairs, args.pairs_64, 2 * s.row + 1);
    if (from >= (uint64_t)args.blocks || to >= (uint64_t)args.blocks) return;
    copy(s, args.key_cache, from, to, args.shape.cols);
    copy(s, args.value_cache, from, to, args.shape.cols);
}
