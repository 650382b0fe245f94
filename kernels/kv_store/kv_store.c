/* kv_store, host side. */
#include "kernels/common/host.h"
#include "kernels/kv_store/kv_store_args.h"
#include <kiln/ops/cache.h>

extern const kiln_bundle kiln__bundle_kv_store;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/kv_store/kv_store.def"
};

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
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!tokens || !cols || !capacity)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    kiln_kv_store_args args = {
        .key_cache = params->key_cache,
        .value_cache = params->value_cache,
        .key = params->key,
        .value = params->value,
        .slot_mapping = params->slot_mapping,
        .key_stride = params->key_stride ? params->key_stride : cols,
        .value_stride = params->value_stride ? params->value_stride : cols,
        .key_cache_stride = params->key_cache_stride ? params->key_cache_stride : cols,
        .value_cache_stride = params->value_cache_stride ? params->value_cache_stride : cols,
        .capacity = capacity,
        .wide_slots = params->index_type == KILN_INDEX_I64,
    };
    KILN__TRY(kiln__tensor_check(name, "key_cache", args.key_cache, capacity, cols, args.key_cache_stride, size_log2));
    KILN__TRY(
        kiln__tensor_check(name, "value_cache", args.value_cache, capacity, cols, args.value_cache_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "key", args.key, tokens, cols, args.key_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "value", args.value, tokens, cols, args.value_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "slot_mapping", args.slot_mapping, 1, tokens, tokens,
                                 kiln__index_size_log2(params->index_type)));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_kv_store, part, &kiln__bundle_kv_store, &module));
    uint32_t wide = kiln__rows_wide((uintptr_t)args.key_cache | (uintptr_t)args.value_cache, capacity,
                                    args.key_cache_stride | args.value_cache_stride, size_log2) &
                    kiln__rows_wide((uintptr_t)args.key | (uintptr_t)args.value, tokens,
                                    args.key_stride | args.value_stride, size_log2);
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise(name, tokens, cols, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_kv_store], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(kv_store, part)
KILN__FLOAT_PARTS(FUNCTION)
