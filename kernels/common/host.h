/* What the host sides of operators share: checks that name the parameter and the rule, and the shape of a launch. */
#ifndef KILN_KERNELS_COMMON_HOST_H
#define KILN_KERNELS_COMMON_HOST_H

#include "kernels/common/geometry.h"
#include "loader/operator.h"

/* Makes *params point to a struct of this version's size: itself, or *copy for a caller of another version. */
#define KILN__PARAMS(name, params, params_size, copy)                                      \
    do {                                                                                   \
        KILN__REQUIRE(params, "%s: params is NULL", name);                                 \
        if (KILN__UNLIKELY((params_size) != sizeof *(copy))) {                             \
            KILN__TRY(kiln__params_copy(name, copy, sizeof *(copy), params, params_size)); \
            (params) = (copy);                                                             \
        }                                                                                  \
    } while (0)

/* The parts of an operator by their number, with the logarithm of an element's bytes. */
static inline unsigned kiln__part_size_log2(unsigned part) {
    return part == KILN__PART_f32 ? 2 : 1;
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

/* 1 where the tensor's rows are all 16-byte aligned, else 0. */
static inline uint32_t kiln__tensor_wide(const void *data, int64_t rows, int64_t stride, unsigned size_log2) {
    uint64_t step = rows > 1 ? (uint64_t)stride << size_log2 : 0;
    return (((uintptr_t)data | step) & (KILN_VECTOR_BYTES - 1)) == 0;
}

/* The grid of tiles x blocks of geometry.h. */
static inline kiln_status kiln__grid(const char *name, uint64_t tiles, uint64_t blocks, kiln_launch_config *config) {
    uint64_t beyond = (blocks + KILN_GRID_BLOCKS - 1) >> KILN_GRID_BLOCKS_LOG2;
    KILN__REQUIRE(tiles <= KILN_GRID_LIMIT_X && beyond <= KILN_GRID_LIMIT_Z,
                  "%s: the tensor is too large for one launch (%llu x %llu groups)", name, (unsigned long long)tiles,
                  (unsigned long long)blocks);
    config->grid[0] = (uint32_t)tiles;
    config->grid[1] = blocks < KILN_GRID_BLOCKS ? (uint32_t)blocks : KILN_GRID_BLOCKS;
    config->grid[2] = (uint32_t)beyond;
    config->group[0] = KILN_GROUP;
    return KILN_OK;
}

/* How many threads, as a logarithm, share a row of so many vectors: four vectors each, or the whole group. */
static inline unsigned kiln__lanes_log2(uint64_t vectors, uint64_t subgroup_vectors) {
    if (vectors > subgroup_vectors) return KILN_GROUP_LOG2;
    if (vectors <= 4) return 0;
    unsigned lanes_log2 = 62 - (unsigned)__builtin_clzll(vectors - 1);
    return lanes_log2 < KILN_SUBGROUP_LOG2 ? lanes_log2 : KILN_SUBGROUP_LOG2;
}

#endif
