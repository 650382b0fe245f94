/* kv_store, host side. */
#include "kernels/common/host.h"
#include "kernels/kv_store/kv_store_args.h"
#include <kiln/ops/cache.h>

extern const kiln_bundle kiln__bundle_kv_store;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/kv_store/kv_store.def"
};

/* Where elements become codes, a row is one head, so that it has one scale. */
KILN__HOST_SIDE kiln_status launch_e4m3(kiln_stream *stream, const kiln_module *module, const char *name,
                                        int64_t tokens, int64_t cols, unsigned size_log2, kiln_kv_store_args *args) {
    const unsigned codes_log2 = 4 - size_log2; /* of a vector's codes */
    const uintptr_t sources = (uintptr_t)args->key | (uintptr_t)args->value;
    const uint64_t caches = (uintptr_t)args->key_cache | (uintptr_t)args->value_cache |
                            (uint64_t)(args->key_cache_stride | args->value_cache_stride) |
                            (args->heads > 1 ? (uint64_t)cols : 0);
    uint32_t wide = kiln__rows_wide(sources, tokens, args->key_stride | args->value_stride, size_log2) &&
                    !(caches & ((1u << codes_log2) - 1));
    int64_t rows;
    KILN__REQUIRE(!__builtin_mul_overflow(tokens, (int64_t)args->heads, &rows), "%s: tokens is %lld: is too large",
                  name, (long long)tokens);
    kiln_launch_config config;
    /* Four vectors for each thread: finding its place takes as many instructions as a vector's codes (simulated). */
    KILN__TRY(kiln__elementwise(name, rows, cols, size_log2, wide, &args->shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_kv_store_e4m3], &config, args, sizeof *args);
}

/* Checks how many scales the keys and the values have in a cache of this type. */
KILN__HOST_SIDE kiln_status scales_check(const char *name, const kiln_kv_store_params *params) {
    const int64_t scales = params->cache_scales, most = scales ? scales : 1;
    const float *const tensors[] = {params->k_scale, params->v_scale};
    KILN__TRY(kiln__cache_type_check(name, params->cache_type));
    KILN__TRY(kiln__size_check(name, "cache_scales", scales, 1 << 16));
    KILN__REQUIRE(params->cols % most == 0, "%s: cache_scales is %lld: must divide cols, which is %lld", name,
                  (long long)scales, (long long)params->cols);
    for (int i = 0; i < 2; i++) {
        const char *tensor = i ? "v_scale" : "k_scale";
        if (tensors[i]) KILN__TRY(kiln__tensor_check(name, tensor, tensors[i], 1, most, most, 2));
    }
    return KILN_OK;
}

KILN__HOST_SIDE kiln_status kv_store(kiln_stream *stream, const kiln_kv_store_params *params, size_t params_size,
                                     unsigned part, const char *name) {
    kiln_kv_store_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t tokens = params->tokens, cols = params->cols, capacity = params->capacity;
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__REQUIRE(tokens >= 0, "%s: tokens is %lld: must not be negative", name, (long long)tokens);
    KILN__REQUIRE(cols >= 0, "%s: cols is %lld: must not be negative", name, (long long)cols);
    KILN__REQUIRE(capacity >= 0, "%s: capacity is %lld: must not be negative", name, (long long)capacity);
    KILN__TRY(kiln__index_type_check(name, params->index_type));
    KILN__TRY(scales_check(name, params));
    if (KILN__UNLIKELY(!tokens || !cols || !capacity)) return KILN_OK;

    const bool codes = params->cache_type == KILN_CACHE_E4M3;
    unsigned size_log2 = kiln__part_size_log2(part), cache_log2 = codes ? 0 : size_log2;
    kiln_kv_store_args args = {
        .key_cache = params->key_cache,
        .value_cache = params->value_cache,
        .key = params->key,
        .value = params->value,
        .slot_mapping = params->slot_mapping,
        .k_scale = params->k_scale,
        .v_scale = params->v_scale,
        .key_stride = params->key_stride ? params->key_stride : cols,
        .value_stride = params->value_stride ? params->value_stride : cols,
        .key_cache_stride = params->key_cache_stride ? params->key_cache_stride : cols,
        .value_cache_stride = params->value_cache_stride ? params->value_cache_stride : cols,
        .capacity = capacity,
        .slots_64 = params->index_type == KILN_INDEX_I64,
        .heads = params->cache_scales ? (uint32_t)params->cache_scales : 1,
    };
    KILN__TRY(kiln__tensor_check(name, "key_cache", args.key_cache, capacity, cols, args.key_cache_stride, cache_log2));
    KILN__TRY(
        kiln__tensor_check(name, "value_cache", args.value_cache, capacity, cols, args.value_cache_stride, cache_log2));
    KILN__TRY(kiln__tensor_check(name, "key", args.key, tokens, cols, args.key_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "value", args.value, tokens, cols, args.value_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "slot_mapping", args.slot_mapping, 1, tokens, tokens,
                                 kiln__index_size_log2(params->index_type)));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_kv_store, part, &kiln__bundle_kv_store, &module));
    if (codes) return launch_e4m3(stream, module, name, tokens, cols / args.heads, size_log2, &args);
    uint32_t wide = kiln__rows_wide((uintptr_t)args.key_cache | (uintptr_t)args.value_cache, capacity,
                                    args.key_cache_stride | args.value_cache_stride, size_log2) &
                    kiln__rows_wide((uintptr_t)args.key | (uintptr_t)args.value, tokens,
                                    args.key_stride | args.value_stride, size_log2);
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise_pairs(name, tokens, cols, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_kv_store], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(kv_store, part)
KILN__FLOAT_PARTS(FUNCTION)
