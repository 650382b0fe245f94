/* tree_accept: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_TREE_ACCEPT_ARGS_H
#define KILN_KERNELS_TREE_ACCEPT_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_TREE_ACCEPT_NODES = 1024 /* per tree, at most */ };

KILN_ARGS_BEGIN
typedef struct kiln_tree_accept_args {
    int32_t *path;
    int32_t *accepted;
    int32_t *next;
    const void *logits;  /* NULL: targets are given, and must be matched exactly */
    const void *targets; /* NULL: the likeliest */
    const void *tokens;
    const int32_t *parents;
    int64_t batch;
    int64_t logits_stride;
    uint32_t nodes;
    uint32_t depth;
    uint32_t vocabulary;
    uint32_t trees;
    uint32_t typical; /* non-zero: typical acceptance, by probability; else exact, by target */
    float inverse_temperature;
    float epsilon;
    float delta;
    uint32_t wide;      /* non-zero: the rows of logits are 16-byte aligned */
    uint32_t tokens_64; /* 1: targets and tokens have 64 bits; 0: 32 */
} kiln_tree_accept_args;
KILN_ARGS_END

#endif
