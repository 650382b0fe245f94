/* rope_kv_store on the CPU: the operator's definition. rope_kv_store_gpu.c says what its blocks do.
 *
 * Floor: one read and one write of the tensors at memory bandwidth, of a byte per element where they become codes.
 * Test: build/tests/ops/rope_kv_store_test. Bench: build/kiln bench rope_kv_store --device cpu */
#include "kernels/common/rotary/rotate_cpu.h"

#include "kernels/common/index.h"
#include "kernels/common/quantize/store_codes_cpu.h"
#include "kernels/rope_kv_store/rope_kv_store_args.h"

/* Heads of a token as codes, rotated: each tile is rounded to the precision first. */
KILN_OUTLINED void turn_codes(const kiln_heads *heads, const kiln_place *place, uint8_t *codes, const float *scales,
                              uint32_t scale_step, kiln_cpu_dtype dtype) {
    kiln_directions d;
    float tile[KILN_TILE], rounded[KILN_TILE];
    const size_t size = kiln_dtype_size(dtype);
    for (uint32_t pair = 0; pair < heads->pairs; pair += KILN_TILE_PAIRS) {
        const size_t count = kiln_min(heads->pairs - pair, KILN_TILE_PAIRS);
        kiln_take_directions(&d, heads, place, pair, count, dtype);
        for (uint32_t head = heads->first; head < heads->end; head++) {
            const float factor = kiln_store_factor(scales, head * (uint64_t)scale_step);
            const uint64_t begin = heads->step == 1 ? 2 * (uint64_t)pair : pair;
            const void *x = kiln_at(heads->x, head * (uint64_t)heads->x_head_stride + begin, dtype);
            uint8_t *to = codes + head * (uint64_t)heads->y_head_stride + begin;
            if (heads->step == 1) {
                kiln_turn_neighbours(&d, tile, rounded, x, count, dtype, false);
                kiln_store_codes(tile, to, rounded, 2 * count, factor, dtype);
                continue;
            }
            memcpy(rounded, x, count * size);
            memcpy(kiln_at_mut(rounded, count, dtype), kiln_at(x, heads->step, dtype), count * size);
            kiln_turn_halves(&d, tile, rounded, rounded, (uint32_t)count, count, dtype, false);
            kiln_store_codes(tile, to, rounded, count, factor, dtype);
            kiln_store_codes(tile, to + heads->step, kiln_at(rounded, count, dtype), count, factor, dtype);
        }
    }
}

/* Elements of each head from `first` on, as codes. */
KILN_OUTLINED void copy_codes(const kiln_heads *heads, uint32_t first, uint32_t head_dim, uint8_t *codes,
                              const float *scales, uint32_t scale_step, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE];
    for (uint32_t head = heads->first; head < heads->end; head++) {
        const uint64_t at = head * (uint64_t)head_dim + first;
        kiln_store_codes(tile, codes + at, kiln_at(heads->x, at, dtype), head_dim - first,
                         kiln_store_factor(scales, head * (uint64_t)scale_step), dtype);
    }
}

/* The same as they are, unless they are where they belong already. */
KILN_OUTLINED void copy_elements(const kiln_heads *heads, uint32_t first, uint32_t head_dim, kiln_cpu_dtype dtype) {
    if (heads->y == heads->x) return;
    for (uint32_t head = heads->first; head < heads->end; head++) {
        const uint64_t at = head * (uint64_t)head_dim + first;
        kiln_row_copy(kiln_at_mut(heads->y, at, dtype), kiln_at(heads->x, at, dtype),
                      (head_dim - first) * kiln_dtype_size(dtype), heads->nontemporal);
    }
}

/* Those of a token's heads, numbered from `first` of the query's on, that belong to one tensor, which begins at head
 * number `base` and has `count`. */
KILN_INLINE kiln_heads heads_of(const kiln_heads *all, uint64_t base, uint64_t count) {
    kiln_heads heads = *all;
    const uint64_t first = all->first > base ? all->first - base : 0, end = all->end > base ? all->end - base : 0;
    heads.first = (uint32_t)kiln_min(first, count);
    heads.end = (uint32_t)kiln_min(end, count);
    return heads;
}

KILN_OUTLINED void rope_kv_store(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_rope_kv_store_args copy = *(const kiln_rope_kv_store_args *)arguments; /* which no store can change */
    const kiln_rope_kv_store_args *args = &copy;
    const uint64_t all = args->heads + 2 * (uint64_t)args->kv_heads, count = (uint64_t)args->each << args->slots_log2;
    const uint64_t tiles = span->grid[0], turned = 2 * (uint64_t)args->pairs;
    const uint32_t tokens_log2 = KILN_BLOCK_LOG2 - args->lanes_log2 - args->slots_log2; /* of a block */
    const kiln_cpu_dtype of_table = args->source == KILN_TURN_BY_TABLE_F32 ? KILN_CPU_f32 : dtype;
    const bool nontemporal =
        (uint64_t)args->tokens * all * args->head_dim * kiln_dtype_size(dtype) >= KILN_NONTEMPORAL_BYTES;
    for (uint64_t work = span->begin << tokens_log2; work < span->end << tokens_log2; work++) {
        const uint64_t block = work >> tokens_log2, first = block % tiles * count;
        const uint64_t token = (block / tiles << tokens_log2) + (work & ((1u << tokens_log2) - 1));
        if (token >= (uint64_t)args->tokens || first >= all) continue;
        const uint64_t position = args->positions ? kiln_index(args->positions, args->positions_64, token) : token;
        const bool by_table = args->source != KILN_TURN_BY_FREQUENCY;
        const bool inside = !by_table || position < (uint64_t)args->table_rows;
        const uint64_t row = by_table && inside ? position * (uint64_t)args->table_stride : 0;
        const kiln_place place = {{position}, args->pairs, args->pairs};
        const kiln_heads of_token = {
            .y_head_stride = args->head_dim,
            .x_head_stride = args->head_dim,
            .first = (uint32_t)first,
            .end = (uint32_t)kiln_min(first + count, all),
            .pairs = args->pairs,
            .step = args->step,
            .frequencies = args->frequencies,
            .cosines = kiln_at(args->cosines, row, of_table),
            .sines = kiln_at(args->sines, row, of_table),
            .scale = args->scale,
            .source = inside ? args->source : KILN_TURN_BY_NOTHING,
            .nontemporal = nontemporal,
        };
        kiln_heads query = heads_of(&of_token, 0, args->heads);
        if (query.first < query.end) {
            query.x = kiln_at(args->query, token * (uint64_t)args->query_stride, dtype);
            query.y = kiln_at_mut(args->query_out, token * (uint64_t)args->query_out_stride, dtype);
            kiln_turn_heads(&query, &place, dtype);
            copy_elements(&query, (uint32_t)turned, args->head_dim, dtype);
        }
        if (!args->kv_heads) continue;
        const uint64_t slot = kiln_index(args->slot_mapping, args->slots_64, token);
        if (slot >= (uint64_t)args->capacity) continue;
        kiln_heads key = heads_of(&of_token, args->heads, args->kv_heads);
        kiln_heads value = heads_of(&of_token, args->heads + (uint64_t)args->kv_heads, args->kv_heads);
        const uint64_t key_at = slot * (uint64_t)args->key_cache_stride;
        const uint64_t value_at = slot * (uint64_t)args->value_cache_stride;
        key.x = kiln_at(args->key, token * (uint64_t)args->key_stride, dtype);
        value.x = kiln_at(args->value, token * (uint64_t)args->value_stride, dtype);
        if (args->codes) {
            uint8_t *keys = (uint8_t *)args->key_cache + key_at, *values = (uint8_t *)args->value_cache + value_at;
            if (key.first < key.end) turn_codes(&key, &place, keys, args->k_scale, args->scale_step, dtype);
            copy_codes(&key, (uint32_t)turned, args->head_dim, keys, args->k_scale, args->scale_step, dtype);
            copy_codes(&value, 0, args->head_dim, values, args->v_scale, args->scale_step, dtype);
            continue;
        }
        key.y = kiln_at_mut(args->key_cache, key_at, dtype);
        value.y = kiln_at_mut(args->value_cache, value_at, dtype);
        if (key.first < key.end) kiln_turn_heads(&key, &place, dtype);
        copy_elements(&key, (uint32_t)turned, args->head_dim, dtype);
        copy_elements(&value, 0, args->head_dim, dtype);
    }
    if (nontemporal) kiln_nontemporal_fence();
}
KILN_CPU_KERNEL(rope_kv_store)
