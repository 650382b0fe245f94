/* What the host sides of operators share: checks that name the parameter and the rule, and the shape of a launch. */
#ifndef KILN_KERNELS_COMMON_HOST_H
#define KILN_KERNELS_COMMON_HOST_H

#include "kernels/common/geometry.h"
#include "kernels/common/operators.h"
#include "loader/call.h"
#include "loader/plan.h"
#include "loader/tensor_map.h"
#include <kiln/ops/operator.h>
#include <string.h>

/* Points *params to a struct of this version's size: the caller's own, or *copy if the caller has another version. */
#define KILN__PARAMS(name, params, params_size, copy)                                                \
    do {                                                                                             \
        KILN__REQUIRE(params, "%s: params is NULL", name);                                           \
        if (KILN__UNLIKELY((params_size) != sizeof *(copy))) {                                       \
            KILN__TRY(kiln__params_copy(name, "params", copy, sizeof *(copy), params, params_size)); \
            (params) = (copy);                                                                       \
        }                                                                                            \
    } while (0)

/* Returns from a function whose call was made before, with parameters of this version's size: loader/call.h. */
#define KILN__CALL_AGAIN(stream, slot, params, params_size)                                                           \
    do {                                                                                                              \
        _Static_assert(sizeof *(params) <= KILN__CALL_PARAMS_BYTES && sizeof *(params) % 8 == 0, "they can be kept"); \
        kiln_status again;                                                                                            \
        if ((params_size) == sizeof *(params) && kiln__call_again(stream, slot, params, sizeof *(params), &again))    \
            return again;                                                                                             \
    } while (0)

/* Defines kiln_<op>_<part>_sized, which calls the operator's host side: kiln_status <op>(stream, params, params_size,
 * part, name). */
#define KILN__OPERATOR_FUNCTION(op, part)                                                         \
    kiln_status kiln_##op##_##part##_sized(kiln_stream *stream, const kiln_##op##_params *params, \
                                           size_t params_size) {                                  \
        return op(stream, params, params_size, KILN__PART_##part, #op "_" #part);                 \
    }

/* The same of an operator whose calls are kept: it launches by kiln__call_launch. */
#define KILN__KEPT_OPERATOR_FUNCTION(op, part)                                                                       \
    kiln_status kiln_##op##_##part##_sized(kiln_stream *stream, const kiln_##op##_params *params,                    \
                                           size_t params_size) {                                                     \
        const unsigned slot = kiln__operator_slot(KILN__OPERATOR_##op, KILN__PART_##part);                           \
        kiln__call call;                                                                                             \
        KILN__CALL_AGAIN(stream, slot, params, params_size);                                                         \
        kiln__call_begin(&call);                                                                                     \
        const kiln_status status = op(stream, params, params_size, KILN__PART_##part, #op "_" #part);                \
        return kiln__call_end(&call, stream, slot, params, params_size == sizeof *params ? params_size : 0, status); \
    }

/* Before an operator's host side: compiles it once for each precision, a constant that folds into the checks. */
#define KILN__HOST_SIDE static inline __attribute__((always_inline))

/* The bytes of an element of a part, as a logarithm. */
static inline unsigned kiln__part_size_log2(unsigned part) {
    return part == KILN__PART_f32 ? 2 : 1;
}

extern const char *const kiln__part_names[KILN__PART_COUNT];

/* The operator's module on the stream's device, which is loaded on first use. */
static inline kiln_status kiln__operator_require(kiln_stream *stream, unsigned operator_number, unsigned part,
                                                 const kiln_bundle *bundle, const kiln_module **out_module) {
    _Static_assert((int)KILN__OPERATOR_COUNT * (int)KILN__PART_COUNT <= (int)KILN__OPERATOR_SLOTS, "a slot for each");
    const unsigned slot = kiln__operator_slot(operator_number, part);
    if (!kiln__operator_get(stream, slot)) KILN__TRY(kiln__operator_load(stream, slot, bundle, kiln__part_names[part]));
    *out_module = kiln__operator_get(stream, slot);
    return KILN_OK;
}

static inline kiln_status kiln__size_check(const char *name, const char *size, int64_t value, int64_t most) {
    KILN__REQUIRE(value >= 0, "%s: %s is %lld: must not be negative", name, size, (long long)value);
    KILN__REQUIRE(value <= most, "%s: %s is %lld: must be at most %lld", name, size, (long long)value, (long long)most);
    return KILN_OK;
}

/* Says which rule a tensor of rows x cols breaks. */
kiln_status kiln__tensor_explain(const char *name, const char *tensor, const void *data, int64_t rows, int64_t cols,
                                 int64_t stride, unsigned size_log2) __attribute__((cold));

/* Checks a tensor of rows x cols, both positive: not NULL, aligned to its elements, with rows that do not overlap and
 * less than 2^62 bytes in all. stride is not 0. */
static inline kiln_status kiln__tensor_check(const char *name, const char *tensor, const void *data, int64_t rows,
                                             int64_t cols, int64_t stride, unsigned size_log2) {
    int64_t count;
    bool overflow = __builtin_mul_overflow(rows, stride, &count);
    if (KILN__LIKELY(!overflow && count <= INT64_MAX >> 3 && stride >= cols && data &&
                     !((uintptr_t)data & ((1u << size_log2) - 1))))
        return KILN_OK;
    return kiln__tensor_explain(name, tensor, data, rows, cols, stride, size_log2);
}

/* 1 if every row of several tensors of `rows` rows is 16-byte aligned, else 0. addresses is the bitwise or of the
 * tensors' addresses, strides that of their strides. */
static inline uint32_t kiln__rows_wide(uintptr_t addresses, int64_t rows, int64_t strides, unsigned size_log2) {
    uint64_t steps = rows > 1 ? (uint64_t)strides << size_log2 : 0;
    return ((addresses | steps) & (KILN_VECTOR_BYTES - 1)) == 0;
}

/* A tensor of a call. */
typedef struct kiln__tensor {
    const char *name;
    const void *data;
    int64_t stride; /* 0: packed */
    bool one_row;   /* one row for all rows; data may be NULL */
} kiln__tensor;

static inline kiln__tensor kiln__tensor_of(const char *name, const void *data, int64_t stride) {
    return (kiln__tensor){.name = name, .data = data, .stride = stride};
}
static inline kiln__tensor kiln__optional_row(const char *name, const void *data) {
    return (kiln__tensor){.name = name, .data = data, .one_row = true};
}

/* Checks the workspace of a call that needs a number of bytes. */
static inline kiln_status kiln__workspace_check(const char *name, const void *workspace, size_t workspace_size,
                                                uint64_t needed) {
    KILN__REQUIRE(workspace_size >= needed, "%s: workspace_size is %zu: must be at least %llu", name, workspace_size,
                  (unsigned long long)needed);
    KILN__REQUIRE(workspace && !((uintptr_t)workspace & (KILN_VECTOR_BYTES - 1)),
                  "%s: workspace is %p: must be 16-byte aligned device memory", name, workspace);
    return KILN_OK;
}

/* Checks tensors of rows x cols, both positive, and resolves strides of 0. *out_wide is as of kiln__rows_wide. Inlined
 * and unrolled, so that the tensors need not be in memory: 100 instructions fewer for the five of add_rmsnorm. */
static inline __attribute__((always_inline)) kiln_status kiln__tensors_check(const char *name, kiln__tensor *tensors,
                                                                             size_t count, int64_t rows, int64_t cols,
                                                                             unsigned size_log2, uint32_t *out_wide) {
    *out_wide = 1;
    _Pragma("GCC unroll 8") for (size_t i = 0; i < count; i++) {
        kiln__tensor *tensor = &tensors[i];
        if (tensor->one_row && !tensor->data) continue;
        int64_t tensor_rows = tensor->one_row ? 1 : rows;
        if (!tensor->stride) tensor->stride = cols;
        KILN__TRY(kiln__tensor_check(name, tensor->name, tensor->data, tensor_rows, cols, tensor->stride, size_log2));
        *out_wide &= kiln__rows_wide((uintptr_t)tensor->data, tensor_rows, tensor->stride, size_log2);
    }
    return KILN_OK;
}

/* The grid of tiles x blocks as in geometry.h. */
static inline kiln_status kiln__grid(const char *name, uint64_t tiles, uint64_t blocks, kiln_launch_config *config) {
    uint64_t beyond = (blocks + KILN_GRID_BLOCKS - 1) >> KILN_GRID_BLOCKS_LOG2;
    KILN__REQUIRE(tiles <= KILN_GRID_LIMIT_X && beyond <= KILN_GRID_LIMIT_Z,
                  "%s: its sizes are too large for one launch: %llu x %llu blocks, at most %u x %llu", name,
                  (unsigned long long)tiles, (unsigned long long)blocks, KILN_GRID_LIMIT_X,
                  (unsigned long long)KILN_GRID_LIMIT_Z << KILN_GRID_BLOCKS_LOG2);
    *config = (kiln_launch_config){
        .grid = {(uint32_t)tiles, blocks < KILN_GRID_BLOCKS ? (uint32_t)blocks : KILN_GRID_BLOCKS, (uint32_t)beyond},
        .block = {KILN_BLOCK, 1, 1},
    };
    return KILN_OK;
}

/* The 16-byte vectors of a row. */
static inline uint64_t kiln__vectors(int64_t cols, unsigned size_log2) {
    return ((uint64_t)cols + (KILN_VECTOR_BYTES >> size_log2) - 1) >> (4 - size_log2);
}

enum { KILN_THREAD_VECTORS_LOG2 = 2 };
_Static_assert(1 << KILN_THREAD_VECTORS_LOG2 == KILN_THREAD_VECTORS, "the logarithm of it");

/* How many threads, as a logarithm, share a row of that many vectors: 1 << each_log2 for each, up to a block. */
static inline unsigned kiln__lanes_log2_of(uint64_t vectors, unsigned each_log2) {
    if (vectors <= 1ull << each_log2) return 0;
    unsigned lanes_log2 = 64 - (unsigned)__builtin_clzll(vectors - 1) - each_log2;
    return lanes_log2 < KILN_BLOCK_LOG2 ? lanes_log2 : KILN_BLOCK_LOG2;
}
static inline unsigned kiln__lanes_log2(uint64_t vectors) {
    return kiln__lanes_log2_of(vectors, KILN_THREAD_VECTORS_LOG2);
}

/* How many vectors, as a logarithm, a thread takes: fewer where the blocks would be so few that most of a device stood
 * idle while each waits for one vector after the other (measured on an H200: 64 x 4096 elements of bf16 take 4.5 us
 * with four each, of which a launch is 1.1). */
static inline unsigned kiln__thread_vectors_log2_of(int64_t rows, uint64_t vectors, unsigned most_log2) {
    enum { BLOCKS_LOG2 = 7 };
    unsigned log2 = most_log2;
    uint64_t all = (uint64_t)rows >= 1ull << 32 || vectors >= 1ull << 31 ? UINT64_MAX : (uint64_t)rows * vectors;
    while (log2 && all >> (KILN_BLOCK_LOG2 + BLOCKS_LOG2) < 1ull << log2)
        log2--;
    return log2;
}

static inline unsigned kiln__thread_vectors_log2(int64_t rows, uint64_t vectors) {
    return kiln__thread_vectors_log2_of(rows, vectors, KILN_THREAD_VECTORS_LOG2);
}

/* How many blocks a number of rows takes. */
static inline uint64_t kiln__blocks(int64_t rows, unsigned lanes_log2) {
    return ((uint64_t)rows + (KILN_BLOCK >> lanes_log2) - 1) >> (KILN_BLOCK_LOG2 - lanes_log2);
}

/* The launch of an elementwise operator over rows x cols, a thread of which takes up to 1 << most_log2 vectors. */
static inline kiln_status kiln__elementwise_of(const char *name, int64_t rows, int64_t cols, unsigned size_log2,
                                               uint32_t wide, unsigned most_log2, kiln_shape *shape,
                                               kiln_launch_config *config) {
    uint64_t vectors = kiln__vectors(cols, size_log2);
    unsigned each_log2 = kiln__thread_vectors_log2_of(rows, vectors, most_log2);
    unsigned lanes_log2 = kiln__lanes_log2_of(vectors, each_log2);
    uint64_t tile = 1ull << (lanes_log2 + each_log2);
    shape->rows = rows;
    shape->cols = cols;
    shape->tile = (uint32_t)tile << (4 - size_log2);
    shape->lanes_log2 = lanes_log2;
    shape->wide = wide;
    return kiln__grid(name, (vectors + tile - 1) >> (lanes_log2 + each_log2), kiln__blocks(rows, lanes_log2), config);
}

static inline kiln_status kiln__elementwise(const char *name, int64_t rows, int64_t cols, unsigned size_log2,
                                            uint32_t wide, kiln_shape *shape, kiln_launch_config *config) {
    return kiln__elementwise_of(name, rows, cols, size_log2, wide, KILN_THREAD_VECTORS_LOG2, shape, config);
}

/* The same for kernels whose threads read two vectors before they use one (measured on an H100: 1 to 2 % faster than
 * two such pairs for each thread). */
static inline kiln_status kiln__elementwise_pairs(const char *name, int64_t rows, int64_t cols, unsigned size_log2,
                                                  uint32_t wide, kiln_shape *shape, kiln_launch_config *config) {
    return kiln__elementwise_of(name, rows, cols, size_log2, wide, 1, shape, config);
}

/* The checks and the launch of an elementwise operator over one row of count elements, which is positive. */
static inline kiln_status kiln__one_row(const char *name, kiln__tensor *tensors, size_t tensor_count, int64_t count,
                                        unsigned part, kiln_shape *shape, kiln_launch_config *config) {
    uint32_t wide;
    unsigned size_log2 = kiln__part_size_log2(part);
    KILN__TRY(kiln__tensors_check(name, tensors, tensor_count, 1, count, size_log2, &wide));
    return kiln__elementwise(name, 1, count, size_log2, wide, shape, config);
}

static inline kiln_status kiln__stream_check(const char *name, const kiln_stream *stream) {
    KILN__REQUIRE(stream && stream->device, "%s: stream is %s", name, stream ? "not open" : "NULL");
    return KILN_OK;
}

/* Checks a field that tells the type of ids. */
static inline kiln_status kiln__id_type_check(const char *name, const char *field, int32_t type) {
    KILN__REQUIRE(type == KILN_INDEX_I32 || type == KILN_INDEX_I64, "%s: %s is %d: must be i32 (0) or i64 (1)", name,
                  field, type);
    return KILN_OK;
}

static inline kiln_status kiln__index_type_check(const char *name, int32_t index_type) {
    return kiln__id_type_check(name, "index_type", index_type);
}

static inline kiln_status kiln__cache_type_check(const char *name, int32_t cache_type) {
    KILN__REQUIRE(cache_type == KILN_CACHE_OF_PRECISION || cache_type == KILN_CACHE_E4M3,
                  "%s: cache_type is %d: must be part (0) or u8 (1)", name, cache_type);
    return KILN_OK;
}

/* Converts a size or a stride of a cache into elements of the precision: it counts codes if the cache has codes. */
static inline kiln_status kiln__cache_size(const char *name, const char *size, int32_t cache_type, unsigned size_log2,
                                           int64_t *value) {
    if (cache_type != KILN_CACHE_E4M3) return KILN_OK;
    KILN__REQUIRE(!(*value & ((1 << size_log2) - 1)), "%s: %s is %lld: must be a multiple of %d with cache_type u8",
                  name, size, (long long)*value, 1 << size_log2);
    *value >>= size_log2;
    return KILN_OK;
}

static inline unsigned kiln__index_size_log2(int32_t index_type) {
    return index_type == KILN_INDEX_I64 ? 3 : 2;
}

/* Checks the stream and the sizes of a call on rows. */
static inline kiln_status kiln__sizes_check(const char *name, const kiln_stream *stream, int64_t rows, int64_t cols) {
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__REQUIRE(rows >= 0, "%s: rows is %lld: must not be negative", name, (long long)rows);
    KILN__REQUIRE(cols >= 0, "%s: cols is %lld: must not be negative", name, (long long)cols);
    return KILN_OK;
}

/* Checks that a tensor that is written in place has the strides of the one that it replaces. */
static inline kiln_status kiln__in_place_check(const char *name, const char *output, const void *y, int64_t y_stride,
                                               const char *input, const void *x, int64_t x_stride) {
    KILN__REQUIRE(y != x || y_stride == x_stride,
                  "%s: %s is %s, but %s_stride is %lld and %s_stride %lld: must be equal", name, output, input, output,
                  (long long)y_stride, input, (long long)x_stride);
    return KILN_OK;
}

static inline kiln_status kiln__tensor_in_place_check(const char *name, const kiln__tensor *y, const kiln__tensor *x) {
    return kiln__in_place_check(name, y->name, y->data, y->stride, x->name, x->data, x->stride);
}

#endif
