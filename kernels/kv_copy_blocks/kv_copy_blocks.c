/* kv_copy_blocks, host side. */
#include "kernels/common/host.h"
#include "kernels/kv_copy_blocks/kv_copy_blocks_args.h"
#include <kiln/ops/cache.h>

extern const kiln_bundle kiln__bundle_kv_copy_blocks;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/kv_copy_blocks/kv_copy_blocks.def"
};

static kiln_status kv_copy_blocks(kiln_stream *stream, const kiln_kv_copy_blocks_params *params, size_t params_size,
                                  unsigned part, const char *name) {
    kiln_kv_copy_blocks_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t count = params->count, blocks = params->blocks, cols = params->cols;
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(kiln__size_check(name, "count", count, INT64_MAX >> 4));
    KILN__REQUIRE(blocks >= 0, "%s: blocks is %lld: must not be negative", name, (long long)blocks);
    KILN__REQUIRE(cols >= 0, "%s: cols is %lld: must not be negative", name, (long long)cols);
    KILN__TRY(kiln__index_type_check(name, params->index_type));
    KILN__TRY(kiln__cache_type_check(name, params->cache_type));
    if (KILN__UNLIKELY(!count || !blocks || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    KILN__TRY(kiln__cache_size(name, "cols", params->cache_type, size_log2, &cols));
    KILN__TRY(kiln__tensor_check(name, "key_cache", params->key_cache, blocks, cols, cols, size_log2));
    KILN__TRY(kiln__tensor_check(name, "value_cache", params->value_cache, blocks, cols, cols, size_log2));
    KILN__TRY(kiln__tensor_check(name, "pairs", params->pairs, count, 2, 2, kiln__index_size_log2(params->index_type)));

    const kiln_module *module;
    KILN__TRY(
        kiln__operator_require(stream, KILN__OPERATOR_kv_copy_blocks, part, &kiln__bundle_kv_copy_blocks, &module));
    kiln_kv_copy_blocks_args args = {
        .key_cache = params->key_cache,
        .value_cache = params->value_cache,
        .pairs = params->pairs,
        .blocks = blocks,
        .pairs_64 = params->index_type == KILN_INDEX_I64,
    };
    uint32_t wide =
        kiln__rows_wide((uintptr_t)params->key_cache | (uintptr_t)params->value_cache, blocks, cols, size_log2);
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise(name, count, cols, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_kv_copy_blocks], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(kv_copy_blocks, part)
KILN__FLOAT_PARTS(FUNCTION)
