/* tree_verify_sampled: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_TREE_VERIFY_SAMPLED_ARGS_H
#define KILN_KERNELS_TREE_VERIFY_SAMPLED_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_TREE_VERIFY_NODES = 1024 /* per tree, at most */ };

KILN_ARGS_BEGIN
typedef struct kiln_tree_verify_sampled_args {
    int32_t *path;
    int32_t *accepted;
    int32_t *next;
    const void *target;
    const void *draft; /* NULL: children were chosen */
    const void *tokens;
    const int32_t *parents;
    const int64_t *row_seed;  /* NULL: seed */
    const void *row_position; /* NULL: position */
    int64_t batch;
    int64_t target_stride;
    int64_t draft_stride;
    uint64_t seed;
    uint64_t position;
    uint32_t nodes;
    uint32_t depth;
    uint32_t vocabulary;
    uint32_t trees;
    uint32_t positions_64; /* non-zero: row_position has 64 bits, else 32 */
    uint32_t tokens_64;    /* 1: tokens has 64 bits; 0: 32 */
} kiln_tree_verify_sampled_args;
KILN_ARGS_END

#endif
