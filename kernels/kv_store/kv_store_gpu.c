/* kv_store: the keys and values of tokens, copied bit by bit into the rows of a cache that slot_mapping names.
 *
 * A block does a tile of some tokens, as in add_gelu: a token has 1 to 256 threads, each with up to four vectors
 * of 16 bytes. Without 16-byte alignment, and at a row's end, threads go by elements, side by side. A slot outside of
 * the cache is skipped: padding tokens have -1.
 *
 * Floor: one read and one write of both tensors at memory bandwidth.
 * Test: build/tests/ops/kv_store_test. Bench: build/kiln bench kv_store */
#include "kernels/common/span.h"

#include "kernels/common/index.h"
#include "kernels/kv_store/kv_store_args.h"

KILN_INLINE void copy(kiln_span s, kiln_element *target, const kiln_element *source) {
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector)
    kiln_vector_store(target + vector * KILN_VECTOR, kiln_vector_load(source + vector * KILN_VECTOR));
    KILN_LOOP
    KILN_FOR_REST(s, i)
    target[i] = source[i];
}

KILN_ENTRY(kv_store, kiln_kv_store_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    uint64_t slot = kiln_index(args.slot_mapping, args.wide_slots, s.row);
    if (slot >= (uint64_t)args.capacity) return;
    kiln_element *keys = (kiln_element *)args.key_cache + slot * (uint64_t)args.key_cache_stride + s.start;
    kiln_element *values = (kiln_element *)args.value_cache + slot * (uint64_t)args.value_cache_stride + s.start;
    copy(s, keys, kiln_span_of_input(s, args.key, args.key_stride));
    copy(s, values, kiln_span_of_input(s, args.value, args.value_stride));
}
