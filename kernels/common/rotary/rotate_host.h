/* What the host sides of rope, rope3d and rope_kv_store share: a tensor of heads with two strides, tables of cosines
 * and sines, and the threads for a head. */
#ifndef KILN_KERNELS_COMMON_ROTARY_ROTATE_HOST_H
#define KILN_KERNELS_COMMON_ROTARY_ROTATE_HOST_H

#include "kernels/common/host.h"
#include "kernels/common/rotary/turn_source.h"

/* A tensor [tokens, heads, 2 * pairs]. */
typedef struct kiln__rotated {
    const char *name;
    const void *data;
    int64_t stride, head_stride; /* 0: packed, until kiln__rotated_check resolves it */
} kiln__rotated;

/* Checks the tensor and resolves strides of 0. The sizes have been checked. */
static inline kiln_status kiln__rotated_check(const char *name, kiln__rotated *tensor, int64_t tokens, int64_t heads,
                                              int64_t pairs, unsigned size_log2) {
    int64_t width;
    if (!tensor->head_stride) tensor->head_stride = 2 * pairs;
    KILN__REQUIRE(tensor->head_stride >= 2 * pairs,
                  "%s: %s_head_stride is %lld: must be 0 or at least the %lld elements of a head", name, tensor->name,
                  (long long)tensor->head_stride, (long long)(2 * pairs));
    bool overflow = __builtin_mul_overflow(heads, tensor->head_stride, &width);
    KILN__REQUIRE(!overflow, "%s: %s is too large: %lld heads with a stride of %lld elements", name, tensor->name,
                  (long long)heads, (long long)tensor->head_stride);
    if (!tensor->stride) tensor->stride = width;
    width -= tensor->head_stride - 2 * pairs; /* what follows the last head is not the tensor's */
    return kiln__tensor_check(name, tensor->name, tensor->data, tokens, width, tensor->stride, size_log2);
}

/* Checks that y has the strides of x if it is x. */
static inline kiln_status kiln__rotated_in_place_check(const char *name, const kiln__rotated *y,
                                                       const kiln__rotated *x) {
    KILN__TRY(kiln__in_place_check(name, "y", y->data, y->stride, "x", x->data, x->stride));
    KILN__REQUIRE(y->data != x->data || y->head_stride == x->head_stride,
                  "%s: y is x, but y_head_stride is %lld and x_head_stride %lld: must be equal", name,
                  (long long)y->head_stride, (long long)x->head_stride);
    return KILN_OK;
}

/* 1 if both halves of every head of y and x are 16-byte aligned, else 0. */
static inline uint32_t kiln__rotated_wide(const kiln__rotated *y, const kiln__rotated *x, int64_t tokens, int64_t heads,
                                          int64_t pairs, unsigned size_log2) {
    return kiln__rows_wide((uintptr_t)y->data | (uintptr_t)x->data, tokens, y->stride | x->stride, size_log2) &
           kiln__rows_wide(0, heads, y->head_stride | x->head_stride, size_log2) &
           kiln__rows_wide(0, 2, pairs, size_log2);
}

/* The tables of cosines and sines of a call, where it has them. */
typedef struct kiln__turn_table {
    const void *cosines, *sines;
    int64_t rows, pairs;
    unsigned size_log2; /* of an element, in bytes */
} kiln__turn_table;

/* Checks them, and resolves their stride where that is 0. */
static inline kiln_status kiln__turn_table_check(const char *name, const kiln__turn_table *table, int64_t *stride) {
    KILN__TRY(kiln__size_check(name, "table_rows", table->rows, INT64_MAX >> 8));
    KILN__REQUIRE(table->cosines && table->sines, "%s: %s is NULL: give frequencies, or cosines and sines", name,
                  table->cosines ? "sines"
                  : table->sines ? "cosines"
                                 : "frequencies");
    if (!*stride) *stride = table->pairs;
    KILN__REQUIRE(*stride >= table->pairs, "%s: table_stride is %lld: must be 0 or at least the %lld pairs", name,
                  (long long)*stride, (long long)table->pairs);
    int64_t rows = table->rows ? table->rows : 1;
    KILN__TRY(kiln__tensor_check(name, "cosines", table->cosines, rows, table->pairs, *stride, table->size_log2));
    return kiln__tensor_check(name, "sines", table->sines, rows, table->pairs, *stride, table->size_log2);
}

/* Whether their rows, if there are any, are 16-byte aligned. */
static inline uint32_t kiln__turn_table_wide(const kiln__turn_table *table, int64_t stride) {
    uint32_t wide = kiln__rows_wide((uintptr_t)table->cosines | (uintptr_t)table->sines, 2, stride, table->size_log2);
    return wide ? KILN_ROTATE_WIDE_TABLES : 0;
}

/* How many threads, as a logarithm, share a head: one for each vector of pairs, up to a block. */
static inline unsigned kiln__rotate_lanes_log2(int64_t pairs, unsigned size_log2) {
    uint64_t vectors = kiln__vectors(pairs, size_log2);
    unsigned lanes_log2 = vectors <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(vectors - 1);
    return lanes_log2 < KILN_BLOCK_LOG2 ? lanes_log2 : KILN_BLOCK_LOG2;
}

enum { KILN__ROTATE_MOST = 1 << 20 }; /* heads, and pairs of a head */

#endif
