/* What the host sides of operators share: checks that name the parameter and the rule, and the shape of a launch. */
#ifndef KILN_KERNELS_COMMON_HOST_H
#define KILN_KERNELS_COMMON_HOST_H

#include "kernels/common/geometry.h"
#include "loader/operator.h"
#include <string.h>

/* Makes *params point to a struct of this version's size: itself, or *copy for a caller of another version. */
#define KILN__PARAMS(name, params, params_size, copy)                                                \
    do {                                                                                             \
        KILN__REQUIRE(params, "%s: params is NULL", name);                                           \
        if (KILN__UNLIKELY((params_size) != sizeof *(copy))) {                                       \
            KILN__TRY(kiln__params_copy(name, "params", copy, sizeof *(copy), params, params_size)); \
            (params) = (copy);                                                                       \
        }                                                                                            \
    } while (0)

/* Defines kiln_<op>_<part>_sized by the operator's host side, which is
 * kiln_status <op>(stream, params, params_size, part, name). */
#define KILN__OPERATOR_FUNCTION(op, part)                                                         \
    kiln_status kiln_##op##_##part##_sized(kiln_stream *stream, const kiln_##op##_params *params, \
                                           size_t params_size) {                                  \
        return op(stream, params, params_size, KILN__PART_##part, #op "_" #part);                 \
    }

/* Before an operator's host side, which is compiled once for each precision: as a constant it folds into the checks. */
#define KILN__HOST_SIDE static inline __attribute__((always_inline))

/* The parts of an operator by their number, with the logarithm of an element's bytes. */
static inline unsigned kiln__part_size_log2(unsigned part) {
    return part == KILN__PART_f32 ? 2 : 1;
}

/* True only if neither is NULL, by one test. Two addresses without a common bit are false too. */
static inline bool kiln__both_set(const void *one, const void *other) {
    return (uintptr_t)one & (uintptr_t)other;
}

/* True only if the stream is open and params are of this version; as kiln__both_set. */
static inline bool kiln__is_current(const kiln_stream *stream, const void *params, size_t params_size, size_t size) {
    return kiln__both_set(stream, params) && params_size == size && stream->device;
}

/* The operator on the stream's device, which is loaded if it is not yet. */
static inline kiln_status kiln__operator_require(kiln_stream *stream, unsigned operator_number, unsigned part,
                                                 const kiln_bundle *bundle, const kiln_module **out_module) {
    if (!kiln__operator_get(stream, operator_number, part))
        KILN__TRY(kiln__operator_load(stream, operator_number, part, bundle));
    *out_module = kiln__operator_get(stream, operator_number, part);
    return KILN_OK;
}

static inline kiln_status kiln__size_check(const char *name, const char *size, int64_t value, int64_t most) {
    KILN__REQUIRE(value >= 0, "%s: %s is %lld: must not be negative", name, size, (long long)value);
    KILN__REQUIRE(value <= most, "%s: %s is %lld: is too large: at most %lld", name, size, (long long)value,
                  (long long)most);
    return KILN_OK;
}

/* Says which rule a tensor of rows x cols breaks. */
kiln_status kiln__tensor_explain(const char *name, const char *tensor, const void *data, int64_t rows, int64_t cols,
                                 int64_t stride, unsigned size_log2) __attribute__((cold));

/* Checks a tensor of rows x cols, both positive: not NULL, aligned to its elements, rows that do not overlap and less
 * than 2^62 bytes in all. stride is resolved already. */
static inline kiln_status kiln__tensor_check(const char *name, const char *tensor, const void *data, int64_t rows,
                                             int64_t cols, int64_t stride, unsigned size_log2) {
    int64_t count;
    bool overflow = __builtin_mul_overflow(rows, stride, &count);
    if (KILN__LIKELY(!overflow && count <= INT64_MAX >> 3 && stride >= cols && data &&
                     !((uintptr_t)data & ((1u << size_log2) - 1))))
        return KILN_OK;
    return kiln__tensor_explain(name, tensor, data, rows, cols, stride, size_log2);
}

/* 1 where every row of some tensors of so many rows is 16-byte aligned, else 0. The tensors' addresses are or-ed, and
 * so are their strides. */
static inline uint32_t kiln__rows_wide(uintptr_t addresses, int64_t rows, int64_t strides, unsigned size_log2) {
    uint64_t steps = rows > 1 ? (uint64_t)strides << size_log2 : 0;
    return ((addresses | steps) & (KILN_VECTOR_BYTES - 1)) == 0;
}

/* The grid of tiles x blocks of geometry.h. */
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

/* How many threads, as a logarithm, share a row of so many vectors: KILN_THREAD_VECTORS for each, up to a block. */
static inline unsigned kiln__lanes_log2(uint64_t vectors) {
    if (vectors <= KILN_THREAD_VECTORS) return 0;
    unsigned lanes_log2 = 62 - (unsigned)__builtin_clzll(vectors - 1);
    return lanes_log2 < KILN_BLOCK_LOG2 ? lanes_log2 : KILN_BLOCK_LOG2;
}

/* How many blocks do so many rows. */
static inline uint64_t kiln__blocks(int64_t rows, unsigned lanes_log2) {
    return ((uint64_t)rows + (KILN_BLOCK >> lanes_log2) - 1) >> (KILN_BLOCK_LOG2 - lanes_log2);
}

/* The launch of an operator that goes element by element over rows x cols. */
static inline kiln_status kiln__elementwise(const char *name, int64_t rows, int64_t cols, unsigned size_log2,
                                            uint32_t wide, kiln_shape *shape, kiln_launch_config *config) {
    uint64_t vectors = kiln__vectors(cols, size_log2);
    unsigned lanes_log2 = kiln__lanes_log2(vectors);
    uint64_t tile = (uint64_t)KILN_THREAD_VECTORS << lanes_log2;
    shape->rows = rows;
    shape->cols = cols;
    shape->tile = (uint32_t)tile << (4 - size_log2);
    shape->lanes_log2 = lanes_log2;
    shape->wide = wide;
    uint64_t blocks = rows == 1 ? 1 : kiln__blocks(rows, lanes_log2); /* folds where an operator has one row */
    return kiln__grid(name, (vectors + tile - 1) >> (lanes_log2 + 2), blocks, config);
}

/* ---- The ordinary call -------------------------------------------------------------------------------------------
 *
 * Most calls have few rows of middling length, aligned, all tensors with the same stride. A host side knows them by a
 * few tests, each of which covers several rules, and gives every other call, wrong ones among them, to its exact path.
 */

/* Whether tensors of rows x cols are of that kind: 1 to KILN_GRID_BLOCKS rows of more than KILN_THREAD_VECTORS and up
 * to vectors_max vectors, 16-byte aligned and not overlapping; no product of theirs overflows. addresses are or-ed,
 * stride is resolved. */
static inline bool kiln__is_ordinary(int64_t rows, int64_t cols, int64_t stride, uintptr_t addresses,
                                     unsigned size_log2, unsigned vectors_max) {
    const uint64_t above = KILN_THREAD_VECTORS * KILN_VECTOR_BYTES >> size_log2;
    const uint64_t most = (uint64_t)vectors_max * KILN_VECTOR_BYTES >> size_log2;
    return !((addresses | (uint64_t)stride << size_log2) & (KILN_VECTOR_BYTES - 1)) &&
           (uint64_t)stride - (uint64_t)cols < 1u << 30 && (uint64_t)cols - above - 1 < most - above &&
           (uint64_t)rows - 1 < KILN_GRID_BLOCKS;
}

/* The last two fields of params, an option and what is reserved, as one number: the option where it is valid, else
 * more than any option. */
static inline uint64_t kiln__option(const void *option_and_reserved) {
    uint64_t option;
    memcpy(&option, option_and_reserved, sizeof option);
    return option;
}

/* kiln__lanes_log2 of an ordinary row, but not limited to a block. */
static inline unsigned kiln__ordinary_lanes_log2(int64_t cols, unsigned size_log2) {
    return ((unsigned)__builtin_clzll((uint64_t)cols - 1) ^ 63) - (5 - size_log2);
}

/* The launch of ordinary rows, a tile each. */
static inline void kiln__ordinary_launch(int64_t rows, unsigned lanes_log2, uint32_t shared_bytes,
                                         kiln_launch_config *config) {
    static const kiln_launch_config one_block = {.grid = {1, 1, 1}, .block = {KILN_BLOCK, 1, 1}};
    *config = one_block;
    config->grid[1] = ((uint32_t)(rows - 1) << lanes_log2 >> KILN_BLOCK_LOG2) + 1;
    config->dynamic_shared_bytes = shared_bytes;
}

/* The vectors of a tile, the most that an ordinary row has where an operator goes element by element. */
enum { KILN__TILE_VECTORS = KILN_THREAD_VECTORS << KILN_BLOCK_LOG2 };

/* kiln__elementwise for an ordinary call. */
static inline void kiln__ordinary_elementwise(int64_t rows, int64_t cols, unsigned size_log2, kiln_shape *shape,
                                              kiln_launch_config *config) {
    unsigned lanes_log2 = kiln__ordinary_lanes_log2(cols, size_log2);
    *shape = (kiln_shape){
        .rows = rows,
        .cols = cols,
        .tile = (uint32_t)(KILN_THREAD_VECTORS * KILN_VECTOR_BYTES) >> size_log2 << lanes_log2,
        .lanes_log2 = lanes_log2,
        .wide = 1,
    };
    kiln__ordinary_launch(rows, lanes_log2, 0, config);
}

static inline kiln_status kiln__stream_check(const char *name, const kiln_stream *stream) {
    KILN__REQUIRE(stream && stream->device, "%s: stream is %s", name, stream ? "not open" : "NULL");
    return KILN_OK;
}

/* Checks what every call on rows has. */
static inline kiln_status kiln__sizes_check(const char *name, const kiln_stream *stream, int64_t rows, int64_t cols) {
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__REQUIRE(rows >= 0, "%s: rows is %lld: must not be negative", name, (long long)rows);
    KILN__REQUIRE(cols >= 0, "%s: cols is %lld: must not be negative", name, (long long)cols);
    return KILN_OK;
}

/* Checks that a tensor written in place has the strides of the one that it replaces. */
static inline kiln_status kiln__in_place_check(const char *name, const char *output, const void *y, int64_t y_stride,
                                               const char *input, const void *x, int64_t x_stride) {
    KILN__REQUIRE(y != x || y_stride == x_stride,
                  "%s: %s is %s, but %s_stride is %lld and %s_stride %lld: must be equal", name, output, input, output,
                  (long long)y_stride, input, (long long)x_stride);
    return KILN_OK;
}

#endif
