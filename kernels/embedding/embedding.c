/* embedding, host side. */
#include "kernels/common/host.h"
#include "kernels/embedding/embedding_args.h"
#include <kiln/ops/embedding.h>

extern const kiln_bundle kiln__bundle_embedding;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/embedding/embedding.def"
};

KILN__HOST_SIDE kiln_status embedding(kiln_stream *stream, const kiln_embedding_params *params, size_t params_size,
                                      unsigned part, const char *name) {
    kiln_embedding_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t rows = params->rows, cols = params->cols, end;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    KILN__REQUIRE(params->vocabulary >= 0, "%s: vocabulary is %lld: must not be negative", name,
                  (long long)params->vocabulary);
    KILN__REQUIRE(!__builtin_add_overflow(params->first, params->vocabulary, &end),
                  "%s: first is %lld: is too large with a vocabulary of %lld: at most 2^63 - 1 together", name,
                  (long long)params->first, (long long)params->vocabulary);
    KILN__TRY(kiln__index_type_check(name, params->index_type));
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t y_stride = params->y_stride ? params->y_stride : cols;
    int64_t table_stride = params->table_stride ? params->table_stride : cols;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, rows, cols, y_stride, size_log2));
    KILN__TRY(kiln__tensor_check(name, "ids", params->ids, 1, rows, rows, kiln__index_size_log2(params->index_type)));
    if (params->vocabulary)
        KILN__TRY(kiln__tensor_check(name, "table", params->table, params->vocabulary, cols, table_stride, size_log2));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_embedding, part, &kiln__bundle_embedding, &module));
    kiln_embedding_args args = {
        .y = params->y,
        .table = params->table,
        .ids = params->ids,
        .y_stride = y_stride,
        .table_stride = table_stride,
        .vocabulary = params->vocabulary,
        .first = params->first,
        .ids_64 = params->index_type == KILN_INDEX_I64,
    };
    uint32_t wide = kiln__rows_wide((uintptr_t)params->y, rows, y_stride, size_log2) &
                    kiln__rows_wide((uintptr_t)params->table, params->vocabulary, table_stride, size_log2);
    kiln_launch_config config;
    KILN__TRY(kiln__elementwise(name, rows, cols, size_log2, wide, &args.shape, &config));
    return kiln__operator_launch(stream, &module->kernels[KERNEL_embedding], &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(embedding, part)
KILN__FLOAT_PARTS(FUNCTION)
