/* kv_compact, host side. */
#include "kernels/kv_compact/kv_compact_args.h"
#include <kiln/ops/cache.h>
#define KILN_HOST kv_compact
#include "kernels/common/operator.h"

static kiln_status check_sizes(const char *name, const kiln_kv_compact_params *params) {
    KILN__TRY(kiln__size_check(name, "batch", params->batch, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "nodes", params->nodes, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "depth", params->depth, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "cols", params->cols, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "capacity", params->capacity, INT64_MAX));
    KILN__TRY(kiln__index_type_check(name, params->index_type));
    return kiln__cache_type_check(name, params->cache_type);
}

static kiln_status kv_compact(kiln_stream *stream, const kiln_kv_compact_params *params, unsigned part,
                              const char *name) {
    KILN__TRY(check_sizes(name, params));
    int64_t batch = params->batch, cols = params->cols, capacity = params->capacity;
    if (KILN__UNLIKELY(!batch || !params->nodes || !params->depth || !cols || !capacity)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t strides[] = {params->key_cache_stride, params->value_cache_stride};
    KILN__TRY(kiln__cache_size(name, "cols", params->cache_type, size_log2, &cols));
    KILN__TRY(kiln__cache_size(name, "key_cache_stride", params->cache_type, size_log2, &strides[0]));
    KILN__TRY(kiln__cache_size(name, "value_cache_stride", params->cache_type, size_log2, &strides[1]));
    kiln__tensor caches[] = {kiln__tensor_of("key_cache", params->key_cache, strides[0]),
                             kiln__tensor_of("value_cache", params->value_cache, strides[1])};
    uint32_t wide;
    KILN__TRY(kiln__tensors_check(name, caches, 2, capacity, cols, size_log2, &wide));
    KILN__TRY(kiln__tensor_check(name, "slot_mapping", params->slot_mapping, batch, params->nodes, params->nodes,
                                 kiln__index_size_log2(params->index_type)));
    KILN__TRY(kiln__tensor_check(name, "path", params->path, batch, params->depth, params->depth, 2));
    KILN__TRY(kiln__tensor_check(name, "accepted", params->accepted, 1, batch, batch, 2));
    kiln_kv_compact_args args = {
        .key_cache = params->key_cache,
        .value_cache = params->value_cache,
        .slot_mapping = params->slot_mapping,
        .path = params->path,
        .accepted = params->accepted,
        .key_cache_stride = caches[0].stride,
        .value_cache_stride = caches[1].stride,
        .capacity = capacity,
        .nodes = (uint32_t)params->nodes,
        .depth = (uint32_t)params->depth,
        .slots_64 = params->index_type == KILN_INDEX_I64,
    };
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise_of(name, batch, cols, size_log2, wide, 0, &args.shape, &config));
    return launch(stream, part, KERNEL_kv_compact, &config, &args, sizeof args);
}
