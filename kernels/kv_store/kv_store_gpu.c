/* kv_store: the keys and values of tokens, copied bit by bit into the rows of a cache that slot_mapping names, or as
 * codes of E4M3.
 *
 * A block copies a tile of several tokens, as in add_gelu: 1 to 256 threads share a token, each with up to four vectors
 * of 16 bytes. Without 16-byte alignment, and at a row's end, consecutive threads take consecutive elements. A slot
 * outside the cache is skipped: padding tokens have -1. Where elements become codes, a row is one head with its scale.
 * A thread reads vectors of both tensors, and the slot, before it stores any of them.
 *
 * Floor: one read and one write of both tensors at memory bandwidth, of a byte per element where they become codes.
 * docs/kernel-report.md has the instruction counts. Measured (H100 80GB HBM3, driver 580.159.04, 2026-11-26; bf16,
 * 16384 tokens of 4096 elements, a copy of half the bytes 90.2 us): 184.6 us; before, vector after vector, 187.8 us.
 * Test: build/tests/ops/kv_store_test. Bench: build/kiln bench kv_store */
#include "kernels/common/span.h"

#include "kernels/common/index.h"
#include "kernels/common/math/reciprocal_step.h"
#include "kernels/common/quantize/store_codes_gpu.h"
#include "kernels/kv_store/kv_store_args.h"

enum { AHEAD = 2 }; /* vectors of each tensor that a thread has in flight */

/* Of which so many become codes without a loop: all where its copies would cost more than the images' size. */
#if defined(__GFX9__)
enum { AT_ONCE = AHEAD };
#else
enum { AT_ONCE = 1 };
#endif

/* What a thread has of keys and values. */
typedef struct taken {
    kiln_vector keys[AHEAD], values[AHEAD];
} taken;

KILN_INLINE void take(taken *t, kiln_span s, uint32_t begin, const kiln_element *key, const kiln_element *value) {
    KILN_UNROLL
    for (uint32_t k = 0, vector = begin; k < AHEAD; k++, vector += s.lanes)
        if (vector < s.whole) {
            t->keys[k] = kiln_vector_load(key + vector * KILN_VECTOR);
            t->values[k] = kiln_vector_load(value + vector * KILN_VECTOR);
        }
}

KILN_ENTRY(kv_store, kiln_kv_store_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    const kiln_element *key = kiln_span_of_input(s, args.key, args.key_stride);
    const kiln_element *value = kiln_span_of_input(s, args.value, args.value_stride);
    taken t;
    take(&t, s, s.first, key, value);
    uint64_t slot = kiln_index(args.slot_mapping, args.slots_64, s.row);
    if (slot >= (uint64_t)args.capacity) return;
    kiln_element *keys = (kiln_element *)args.key_cache + slot * (uint64_t)args.key_cache_stride + s.start;
    kiln_element *values = (kiln_element *)args.value_cache + slot * (uint64_t)args.value_cache_stride + s.start;
    KILN_LOOP
    for (uint32_t begin = s.first; begin < s.whole; begin += AHEAD * s.lanes) {
        if (begin != s.first) take(&t, s, begin, key, value);
        KILN_UNROLL
        for (uint32_t k = 0, vector = begin; k < AHEAD; k++, vector += s.lanes)
            if (vector < s.whole) {
                kiln_vector_store(keys + vector * KILN_VECTOR, t.keys[k]);
                kiln_vector_store(values + vector * KILN_VECTOR, t.values[k]);
            }
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        keys[i] = key[i];
        values[i] = value[i];
    }
}

/* kiln_store_factor without a division, where kiln_reciprocal_step has its result. */
KILN_INLINE float factor_of(const float *scales, uint32_t head) {
    const float given = scales ? scales[head] : 1.0f;
    const float scale = given >= 0x1p-126f && given < KILN_INFINITY ? given : 1.0f;
    if (scale >= 0x1p-64f && scale <= 0x1p64f && ~kiln_bits(scale) << 9)
        return kiln_reciprocal_step(scale, kiln_fast_reciprocal(scale));
    return kiln_store_factor(scales, head);
}

KILN_ENTRY(kv_store_e4m3, kiln_kv_store_args) {
    kiln_span s = kiln_span_of(&args.shape);
    if (!s.count) return;
    uint64_t token = s.row;
    uint32_t head = 0;
    if (args.heads > 1) {
        token = s.row / args.heads;
        head = (uint32_t)s.row - (uint32_t)token * args.heads;
    }
    uint64_t col = head * (uint64_t)args.shape.cols + s.start;
    const uint64_t key_at = token * (uint64_t)args.key_stride + col;
    const uint64_t value_at = args.value_stride == args.key_stride ? key_at : token * (uint64_t)args.value_stride + col;
    const kiln_element *key = (const kiln_element *)args.key + key_at;
    const kiln_element *value = (const kiln_element *)args.value + value_at;
    taken t;
    take(&t, s, s.first, key, value);
    uint64_t slot = kiln_index(args.slot_mapping, args.slots_64, token);
    if (slot >= (uint64_t)args.capacity) return;
    const uint64_t keys_at = slot * (uint64_t)args.key_cache_stride + col;
    const uint64_t values_at =
        args.value_cache_stride == args.key_cache_stride ? keys_at : slot * (uint64_t)args.value_cache_stride + col;
    uint8_t *keys = (uint8_t *)args.key_cache + keys_at;
    uint8_t *values = (uint8_t *)args.value_cache + values_at;
    const float key_factor = factor_of(args.k_scale, head), value_factor = factor_of(args.v_scale, head);
    KILN_LOOP
    for (uint32_t begin = s.first; begin < s.whole; begin += AHEAD * s.lanes) {
        if (begin != s.first) take(&t, s, begin, key, value);
        KILN_LOOP
        for (uint32_t i = 0, vector = begin; i < AHEAD && vector < s.whole; i += AT_ONCE) {
            KILN_UNROLL
            for (uint32_t k = 0; k < AT_ONCE; k++, vector += s.lanes)
                if (vector < s.whole) {
                    kiln_store_codes(keys + vector * KILN_VECTOR, t.keys[k], key_factor);
                    kiln_store_codes(values + vector * KILN_VECTOR, t.values[k], value_factor);
                }
            t.keys[0] = t.keys[1];
            t.values[0] = t.values[1];
        }
    }
    KILN_LOOP
    KILN_FOR_REST(s, i) {
        keys[i] = kiln_e4m3_of(kiln_element_to_f32(key[i]) * key_factor);
        values[i] = kiln_e4m3_of(kiln_element_to_f32(value[i]) * value_factor);
    }
}
