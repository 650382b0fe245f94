/* rope_kv_store, host side. */
#include "kernels/common/rotary/rotate_host.h"
#include "kernels/rope_kv_store/rope_kv_store_args.h"
#include <kiln/ops/cache.h>
#include <kiln/ops/rope.h>

extern const kiln_bundle kiln__bundle_rope_kv_store;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/rope_kv_store/rope_kv_store.def"
};

/* The sizes and options, of which none depends on a tensor. */
KILN__HOST_SIDE kiln_status params_check(const char *name, const kiln_rope_kv_store_params *params) {
    KILN__TRY(kiln__size_check(name, "tokens", params->tokens, INT64_MAX >> 8));
    KILN__TRY(kiln__size_check(name, "heads", params->heads, KILN__ROTATE_MOST));
    KILN__TRY(kiln__size_check(name, "kv_heads", params->kv_heads, KILN__ROTATE_MOST));
    KILN__TRY(kiln__size_check(name, "head_dim", params->head_dim, 2 * KILN__ROTATE_MOST));
    KILN__TRY(kiln__size_check(name, "pairs", params->pairs, KILN__ROTATE_MOST));
    KILN__TRY(kiln__size_check(name, "capacity", params->capacity, INT64_MAX));
    KILN__REQUIRE(!params->head_dim || 2 * params->pairs <= params->head_dim,
                  "%s: pairs is %lld: must be at most half of head_dim, %lld", name, (long long)params->pairs,
                  (long long)params->head_dim);
    KILN__REQUIRE((uint32_t)params->layout <= KILN_ROPE_HALF, "%s: layout is %d: must be interleaved (0) or half (1)",
                  name, params->layout);
    KILN__REQUIRE((uint32_t)params->table_type <= KILN_ROPE_TABLE_F32,
                  "%s: table_type is %d: must be part (0) or f32 (1)", name, params->table_type);
    KILN__REQUIRE(__builtin_isfinite(params->scale), "%s: scale is %g: must be finite", name, (double)params->scale);
    KILN__TRY(kiln__id_type_check(name, "position_type", params->position_type));
    KILN__TRY(kiln__id_type_check(name, "slot_type", params->slot_type));
    KILN__TRY(kiln__cache_type_check(name, params->cache_type));
    KILN__TRY(kiln__size_check(name, "cache_scales", params->cache_scales, KILN__ROTATE_MOST));
    KILN__REQUIRE(params->cache_scales <= 1 || !params->kv_heads || params->cache_scales == params->kv_heads,
                  "%s: cache_scales is %lld: must be 0, 1 or kv_heads, which is %lld", name,
                  (long long)params->cache_scales, (long long)params->kv_heads);
    return KILN_OK;
}

/* A tensor with a row for each token or slot. */
KILN__HOST_SIDE kiln_status rows_check(const char *name, const char *tensor, const void *data, int64_t rows,
                                       int64_t heads, const kiln_rope_kv_store_params *params, unsigned size_log2,
                                       int64_t *stride) {
    const int64_t cols = heads * params->head_dim;
    if (!*stride) *stride = cols;
    return kiln__tensor_check(name, tensor, data, rows, cols, *stride, size_log2);
}

/* What the rotation takes: positions, and frequencies or tables, whose vectors are read aligned. */
KILN__HOST_SIDE kiln_status turns_check(const char *name, const kiln_rope_kv_store_params *params, unsigned size_log2,
                                        kiln_rope_kv_store_args *args, uint32_t *wide) {
    const kiln__turn_table table = {.cosines = params->cosines,
                                    .sines = params->sines,
                                    .rows = params->table_rows,
                                    .pairs = params->pairs,
                                    .size_log2 = params->table_type == KILN_ROPE_TABLE_F32 ? 2 : size_log2};
    if (params->positions)
        KILN__TRY(kiln__tensor_check(name, "positions", params->positions, 1, params->tokens, params->tokens,
                                     kiln__index_size_log2(params->position_type)));
    if (!params->pairs) return KILN_OK;
    if (params->frequencies)
        KILN__TRY(kiln__tensor_check(name, "frequencies", params->frequencies, 1, params->pairs, params->pairs, 3));
    if (!params->frequencies || params->cosines || params->sines)
        KILN__TRY(kiln__turn_table_check(name, &table, &args->table_stride));
    *wide &= params->frequencies || kiln__turn_table_wide(&table, args->table_stride);
    return KILN_OK;
}

/* What is stored, and whether all of it is aligned: vectors of elements, and the codes of vectors. */
KILN__HOST_SIDE kiln_status stores_check(const char *name, const kiln_rope_kv_store_params *params, unsigned size_log2,
                                         kiln_rope_kv_store_args *args, uint32_t *wide) {
    const unsigned cache_log2 = params->cache_type == KILN_CACHE_E4M3 ? 0 : size_log2;
    const int64_t tokens = params->tokens, heads = params->kv_heads, capacity = params->capacity;
    const int64_t scales = params->cache_scales ? params->cache_scales : 1;
    KILN__TRY(rows_check(name, "key", args->key, tokens, heads, params, size_log2, &args->key_stride));
    KILN__TRY(rows_check(name, "value", args->value, tokens, heads, params, size_log2, &args->value_stride));
    KILN__TRY(
        rows_check(name, "key_cache", args->key_cache, capacity, heads, params, cache_log2, &args->key_cache_stride));
    KILN__TRY(rows_check(name, "value_cache", args->value_cache, capacity, heads, params, cache_log2,
                         &args->value_cache_stride));
    KILN__TRY(kiln__tensor_check(name, "slot_mapping", params->slot_mapping, 1, tokens, tokens,
                                 kiln__index_size_log2(params->slot_type)));
    if (args->k_scale) KILN__TRY(kiln__tensor_check(name, "k_scale", args->k_scale, 1, scales, scales, 2));
    if (args->v_scale) KILN__TRY(kiln__tensor_check(name, "v_scale", args->v_scale, 1, scales, scales, 2));
    const uint64_t caches = (uintptr_t)args->key_cache | (uintptr_t)args->value_cache |
                            (uint64_t)(args->key_cache_stride | args->value_cache_stride) << cache_log2;
    *wide &= kiln__rows_wide((uintptr_t)args->key | (uintptr_t)args->value, tokens,
                             args->key_stride | args->value_stride, size_log2) &
             !(caches & (((uint64_t)KILN_VECTOR_BYTES >> (size_log2 - cache_log2)) - 1));
    return KILN_OK;
}

KILN__HOST_SIDE kiln_status queries_check(const char *name, const kiln_rope_kv_store_params *params, unsigned size_log2,
                                          kiln_rope_kv_store_args *args, uint32_t *wide) {
    const int64_t tokens = params->tokens, heads = params->heads;
    KILN__TRY(
        rows_check(name, "query_out", args->query_out, tokens, heads, params, size_log2, &args->query_out_stride));
    KILN__TRY(rows_check(name, "query", args->query, tokens, heads, params, size_log2, &args->query_stride));
    *wide &= kiln__rows_wide((uintptr_t)args->query_out | (uintptr_t)args->query, tokens,
                             args->query_out_stride | args->query_stride, size_log2);
    return kiln__in_place_check(name, "query_out", args->query_out, args->query_out_stride, "query", args->query,
                                args->query_stride);
}

/* Whether a GPU's threads take a pair each, rather than vectors of them: as rope does, where there are so few that the
 * time is that of one thread after another computing its pairs' directions. */
static bool by_pairs(const kiln_module *module, uint64_t tokens, uint64_t heads, uint64_t pairs, bool by_frequency) {
    const uint64_t most = 1 << 16;
    return module->device->info.backend != KILN_BACKEND_CPU && by_frequency && tokens <= most &&
           heads * pairs <= most && tokens * heads * pairs <= most;
}

/* How threads share the heads of a token: one head each, spread over as many blocks as that takes, unless they are so
 * many that a device is busy with two each, whose directions are then computed once. */
static void divide(uint64_t tokens, uint64_t heads, kiln_rope_kv_store_args *args) {
    enum { BLOCKS_LOG2 = 8 };
    const unsigned most = KILN_BLOCK_LOG2 - args->lanes_log2;
    const bool many = tokens >= 1ull << 32 || tokens * heads >> most >= 1u << BLOCKS_LOG2;
    args->each = many ? KILN_ROPE_KV_STORE_HEADS : 1;
    const uint64_t wanted = (heads + args->each - 1) / args->each;
    const unsigned log2 = wanted <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(wanted - 1);
    args->slots_log2 = log2 < most ? log2 : most;
}

KILN__HOST_SIDE kiln_status rope_kv_store(kiln_stream *stream, const kiln_rope_kv_store_params *params,
                                          size_t params_size, unsigned part, const char *name) {
    kiln_rope_kv_store_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(params_check(name, params));
    const bool stores = params->kv_heads && params->capacity;
    if (KILN__UNLIKELY(!params->tokens || !params->head_dim || (!params->heads && !stores))) return KILN_OK;

    const unsigned size_log2 = kiln__part_size_log2(part);
    kiln_rope_kv_store_args args = {
        .query_out = params->query_out,
        .key_cache = params->key_cache,
        .value_cache = params->value_cache,
        .query = params->query,
        .key = params->key,
        .value = params->value,
        .slot_mapping = params->slot_mapping,
        .positions = params->positions,
        .frequencies = (const uint64_t *)params->frequencies,
        .cosines = params->cosines,
        .sines = params->sines,
        .k_scale = params->k_scale,
        .v_scale = params->v_scale,
        .tokens = params->tokens,
        .query_out_stride = params->query_out_stride,
        .query_stride = params->query_stride,
        .key_stride = params->key_stride,
        .value_stride = params->value_stride,
        .key_cache_stride = params->key_cache_stride,
        .value_cache_stride = params->value_cache_stride,
        .capacity = params->capacity,
        .table_rows = params->table_rows,
        .table_stride = params->table_stride,
        .heads = (uint32_t)params->heads,
        .kv_heads = stores ? (uint32_t)params->kv_heads : 0,
        .head_dim = (uint32_t)params->head_dim,
        .pairs = (uint32_t)params->pairs,
        .step = params->layout == KILN_ROPE_HALF ? (uint32_t)params->pairs : 1,
        .positions_64 = !params->positions || params->position_type == KILN_INDEX_I64,
        .slots_64 = params->slot_type == KILN_INDEX_I64,
        .source = params->frequencies                         ? KILN_TURN_BY_FREQUENCY
                  : params->table_type == KILN_ROPE_TABLE_F32 ? KILN_TURN_BY_TABLE_F32
                                                              : KILN_TURN_BY_TABLE,
        .scale_step = params->cache_scales > 1,
        .scale = params->scale == 0.0f ? 1.0f : params->scale,
        .codes = params->cache_type == KILN_CACHE_E4M3,
    };
    uint32_t wide = kiln__rows_wide(0, 2, params->head_dim | params->pairs, size_log2);
    KILN__TRY(turns_check(name, params, size_log2, &args, &wide));
    if (params->heads) KILN__TRY(queries_check(name, params, size_log2, &args, &wide));
    if (stores) KILN__TRY(stores_check(name, params, size_log2, &args, &wide));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_rope_kv_store, part, &kiln__bundle_rope_kv_store, &module));
    const uint64_t tokens = (uint64_t)args.tokens, heads = args.heads + 2 * (uint64_t)args.kv_heads;
    const bool each_pair = by_pairs(module, tokens, heads, args.pairs, args.source == KILN_TURN_BY_FREQUENCY);
    /* By pairs as for elements of 16 bytes; where nothing is rotated, threads are those of the elements copied. */
    const int64_t shared = params->pairs ? params->pairs : params->head_dim;
    args.lanes_log2 = kiln__rotate_lanes_log2(shared, each_pair ? 4 : size_log2);
    args.wide = wide && !each_pair ? KILN_ROTATE_WIDE_HEADS : 0;
    divide(tokens, heads, &args);
    kiln_launch_config config;
    const uint64_t tile = (uint64_t)args.each << args.slots_log2;
    KILN__TRY(kiln__grid(name, (heads + tile - 1) / tile, kiln__blocks(args.tokens, args.lanes_log2 + args.slots_log2),
                         &config));
    return kiln__call_launch(stream, &module->kernels[KERNEL_rope_kv_store], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__KEPT_OPERATOR_FUNCTION(rope_kv_store, part)
KILN__FLOAT_PARTS(FUNCTION)
