/* quantize_embedding, host side. */
#include "kernels/quantize_embedding/quantize_embedding_args.h"
#include <kiln/ops/vector.h>
#define KILN_HOST quantize_embedding
#include "kernels/common/operator.h"

_Static_assert((int)KILN_VECTOR_BINARY == (int)KILN_CODE_BINARY && (int)KILN_VECTOR_INT8 == (int)KILN_CODE_INT8 &&
                   (int)KILN_VECTOR_INT4 == (int)KILN_CODE_INT4,
               "kernels have the codes of ops/vector.h");

enum { COLS = 16384 };

static kiln_status check_sizes(const char *name, const kiln_quantize_embedding_params *params, uint32_t unit_bytes) {
    KILN__TRY(kiln__size_check(name, "rows", params->rows, INT64_MAX));
    KILN__TRY(kiln__size_check(name, "cols", params->cols, COLS));
    KILN__TRY(kiln__size_check(name, "code_cols", params->code_cols, COLS));
    int64_t needed = (params->cols * unit_bytes + KILN_EMBEDDING_UNIT - 1) / KILN_EMBEDDING_UNIT;
    KILN__REQUIRE(params->code_cols >= needed, "%s: code_cols is %lld: must be at least %lld, for %lld codes", name,
                  (long long)params->code_cols, (long long)needed, (long long)params->cols);
    return KILN_OK;
}

static kiln_status quantize_embedding(kiln_stream *stream, const kiln_quantize_embedding_params *params, unsigned part,
                                      const char *name) {
    static const uint8_t unit_bytes[] = {[KILN_CODE_BINARY] = 1, [KILN_CODE_INT8] = 8, [KILN_CODE_INT4] = 4};
    KILN__REQUIRE(params->code_type >= KILN_VECTOR_BINARY && params->code_type <= KILN_VECTOR_INT4,
                  "%s: code_type is %d: must be binary (0), int8 (1) or int4 (2)", name, params->code_type);
    KILN__REQUIRE(params->normalize == 0 || params->normalize == 1, "%s: normalize is %d: must be no (0) or yes (1)",
                  name, params->normalize);
    const uint32_t bytes = unit_bytes[params->code_type];
    KILN__TRY(check_sizes(name, params, bytes));
    const int64_t rows = params->rows, cols = params->cols;
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    kiln__tensor x = kiln__tensor_of("x", params->x, params->x_stride);
    kiln_quantize_embedding_args args = {
        .codes = params->codes,
        .scales = params->scales,
        .x = params->x,
        .shape = {.rows = rows, .cols = cols, .tile = (uint32_t)cols},
        .codes_stride = params->codes_stride ? params->codes_stride : params->code_cols,
        .code_cols = (uint32_t)params->code_cols,
        .units = ((uint32_t)params->code_cols + bytes - 1) / bytes,
        .unit_bytes = bytes,
        .code_type = (uint32_t)params->code_type,
        .normalize = params->normalize && params->code_type != KILN_VECTOR_BINARY,
        .smax = params->code_type == KILN_VECTOR_INT8 ? 127.0f : 7.0f,
    };
    KILN__TRY(kiln__tensors_check(name, &x, 1, rows, cols, kiln__part_size_log2(part), &args.shape.wide));
    KILN__TRY(kiln__tensor_check(name, "codes", params->codes, rows, params->code_cols, args.codes_stride, 0));
    if (params->scales) KILN__TRY(kiln__tensor_check(name, "scales", params->scales, 1, rows, rows, 2));
    args.x_stride = x.stride;
    uintptr_t places = (uintptr_t)args.codes | (rows > 1 ? (uintptr_t)args.codes_stride : 0) | args.code_cols;
    args.whole = (places & (bytes - 1)) == 0;
    args.shape.lanes_log2 = args.units > 4 * KILN_SUBGROUP ? KILN_BLOCK_LOG2
                            : args.units > 1               ? 32u - (uint32_t)__builtin_clz(args.units - 1)
                                                           : 0;
    if (args.units > KILN_SUBGROUP && args.shape.lanes_log2 < KILN_BLOCK_LOG2)
        args.shape.lanes_log2 = KILN_SUBGROUP_LOG2;
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, kiln__blocks(rows, args.shape.lanes_log2), &config));
    return launch(stream, part, KERNEL_quantize_embedding, &config, &args, sizeof args);
}
