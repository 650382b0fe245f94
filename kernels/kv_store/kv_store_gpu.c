/* kv_store: the keys and values of tokens, copied bit by bit into the rows of a cache that slot_mapping names, or as
 * codes of E4M3.
 *
 * A block copies a tile of several tokens, as in add_gelu: 1 to 256 threads share a token, each with up to four vectors
 * of 16 bytes. Without 16-byte alignment, and at a row's end, consecutive threads take consecutive elements. A slot
 * outside the cache is skipped: padding tokens have -1. Where elements become codes, a row is one head with its scale.
 *
 * Floor: one read and one write of both tensors at memory bandwidth, of a byte per element where they become codes.
 * Codes are made in software; docs/kernel-report.md has the instruction counts. Test: build/tests/ops/kv_store_test.
 * Bench: build/kiln bench kv_store */
#include "kernels/common/span.h"

#include "kernels/common/index.h"
#include "kernels/kv_store/store_scale.h"

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
    uint64_t slot = kiln_index(args.slot_mapping, args.slots_64, s.row);
    if (slot >= (uint64_t)args.capacity) return;
    kiln_element *keys = (kiln_element *)args.key_cache + slot * (uint64_t)args.key_cache_stride + s.start;
    kiln_element *values = (kiln_element *)args.value_cache + slot * (uint64_t)args.value_cache_stride + s.start;
    copy(s, keys, kiln_span_of_input(s, args.key, args.key_stride));
    copy(s, values, kiln_span_of_input(s, args.value, args.value_stride));
}

/* As many codes as a vector has elements. */
typedef struct codes {
    uint32_t words[KILN_QUADS];
} __attribute__((aligned(KILN_VECTOR))) codes;

KILN_INLINE void encode(kiln_span s, uint8_t *target, const kiln_element *source, float factor) {
    KILN_LOOP
    KILN_FOR_WHOLE(s, vector) {
        kiln_vector elements = kiln_vector_load(source + vector * KILN_VECTOR);
        codes result;
        KILN_UNROLL
        for (int quad = 0; quad < KILN_QUADS; quad++) {
            float values[4];
            kiln_quad_take(&elements, values);
            result.words[quad] = 0;
            KILN_UNROLL
            for (int i = 0; i < 4; i++)
                result.words[quad] |= (uint32_t)kiln_e4m3_of(values[i] * factor) << 8 * i;
        }
        *(codes *)(target + vector * KILN_VECTOR) = result;
    }
    KILN_LOOP
    KILN_FOR_REST(s, i)
    target[i] = kiln_e4m3_of(kiln_element_to_f32(source[i]) * factor);
}

KILN_ENTRY(kv_store_e4m3, kiln_kv_store_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    uint64_t token = s.row, head = 0;
    if (args.heads > 1) {
        token = s.row / args.heads;
        head = s.row % args.heads;
    }
    uint64_t slot = kiln_index(args.slot_mapping, args.slots_64, token);
    if (slot >= (uint64_t)args.capacity) return;
    uint64_t col = head * (uint64_t)args.shape.cols + s.start;
    KILN_LOOP
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t from = token * (uint64_t)(i ? args.value_stride : args.key_stride) + col;
        uint64_t to = slot * (uint64_t)(i ? args.value_cache_stride : args.key_cache_stride) + col;
        encode(s, (uint8_t *)(i ? args.value_cache : args.key_cache) + to,
               (const kiln_element *)(i ? args.value : args.key) + from,
               kiln_store_factor(i ? args.v_scale : args.k_scale, head));
    }
}
