/* rope: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ROPE_ARGS_H
#define KILN_KERNELS_ROPE_ARGS_H

#include "kernels/common/geometry.h"

typedef struct kiln_rope_args {
    void *y;
    const void *x;
    const int32_t *positions;
    const uint64_t *frequencies;
    int64_t tokens;
    int64_t y_stride;
    int64_t y_head_stride;
    int64_t x_stride;
    int64_t x_head_stride;
    uint32_t heads;
    uint32_t pairs;
    uint32_t lanes_log2; /* of the threads that share a head */
    uint32_t step;       /* from the first to the second of a pair: 1, or pairs */
    uint32_t wide;       /* non-zero: heads and their halves are 16-byte aligned */
    uint32_t padding;
} kiln_rope_args;

KILN_ARGS_SIZE(kiln_rope_args, 96);
KILN_ARGS_OFFSET(kiln_rope_args, y, 0);
KILN_ARGS_OFFSET(kiln_rope_args, x, 8);
KILN_ARGS_OFFSET(kiln_rope_args, positions, 16);
KILN_ARGS_OFFSET(kiln_rope_args, frequencies, 24);
KILN_ARGS_OFFSET(kiln_rope_args, tokens, 32);
KILN_ARGS_OFFSET(kiln_rope_args, y_stride, 40);
KILN_ARGS_OFFSET(kiln_rope_args, y_head_stride, 48);
KILN_ARGS_OFFSET(kiln_rope_args, x_stride, 56);
KILN_ARGS_OFFSET(kiln_rope_args, x_head_stride, 64);
KILN_ARGS_OFFSET(kiln_rope_args, heads, 72);
KILN_ARGS_OFFSET(kiln_rope_args, pairs, 76);
KILN_ARGS_OFFSET(kiln_rope_args, lanes_log2, 80);
KILN_ARGS_OFFSET(kiln_rope_args, step, 84);
KILN_ARGS_OFFSET(kiln_rope_args, wide, 88);
KILN_ARGS_OFFSET(kiln_rope_args, padding, 92);

#endif
