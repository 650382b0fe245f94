/* rope: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ROPE_ARGS_H
#define KILN_KERNELS_ROPE_ARGS_H

#include "kernels/common/geometry.h"
#include "kernels/common/turn_source.h"

typedef struct kiln_rope_args {
    void *y;
    const void *x;
    const void *positions; /* NULL: 0, 1, 2 and so on */
    const uint64_t *frequencies;
    const void *cosines;
    const void *sines;
    int64_t tokens;
    int64_t y_stride;
    int64_t y_head_stride;
    int64_t x_stride;
    int64_t x_head_stride;
    int64_t table_rows;
    int64_t table_stride;
    uint32_t heads;
    uint32_t pairs;
    uint32_t lanes_log2;     /* of the threads that share a head */
    uint32_t step;           /* from the first to the second of a pair: 1, or pairs */
    uint32_t wide;           /* non-zero: heads and their halves are 16-byte aligned */
    uint32_t wide_positions; /* non-zero: positions are of 64 bits, else of 32 */
    uint32_t source;         /* kiln_turn_source */
    float scale;
} kiln_rope_args;

KILN_ARGS_SIZE(kiln_rope_args, 136);
KILN_ARGS_OFFSET(kiln_rope_args, y, 0);
KILN_ARGS_OFFSET(kiln_rope_args, x, 8);
KILN_ARGS_OFFSET(kiln_rope_args, positions, 16);
KILN_ARGS_OFFSET(kiln_rope_args, frequencies, 24);
KILN_ARGS_OFFSET(kiln_rope_args, cosines, 32);
KILN_ARGS_OFFSET(kiln_rope_args, sines, 40);
KILN_ARGS_OFFSET(kiln_rope_args, tokens, 48);
KILN_ARGS_OFFSET(kiln_rope_args, y_stride, 56);
KILN_ARGS_OFFSET(kiln_rope_args, y_head_stride, 64);
KILN_ARGS_OFFSET(kiln_rope_args, x_stride, 72);
KILN_ARGS_OFFSET(kiln_rope_args, x_head_stride, 80);
KILN_ARGS_OFFSET(kiln_rope_args, table_rows, 88);
KILN_ARGS_OFFSET(kiln_rope_args, table_stride, 96);
KILN_ARGS_OFFSET(kiln_rope_args, heads, 104);
KILN_ARGS_OFFSET(kiln_rope_args, pairs, 108);
KILN_ARGS_OFFSET(kiln_rope_args, lanes_log2, 112);
KILN_ARGS_OFFSET(kiln_rope_args, step, 116);
KILN_ARGS_OFFSET(kiln_rope_args, wide, 120);
KILN_ARGS_OFFSET(kiln_rope_args, wide_positions, 124);
KILN_ARGS_OFFSET(kiln_rope_args, source, 128);
KILN_ARGS_OFFSET(kiln_rope_args, scale, 132);

#endif
