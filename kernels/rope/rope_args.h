/* rope: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ROPE_ARGS_H
#define KILN_KERNELS_ROPE_ARGS_H

#include "kernels/common/geometry.h"
#include "kernels/common/rotary/turn_source.h"

/* The heads of a token that a thread has a share of, at most. */
enum { KILN_ROPE_HEADS = 2 };

/* 1 << (lanes_log2 + slots_log2) threads of a block share a token. */
KILN_ARGS_BEGIN
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
    uint32_t lanes_log2;   /* of the threads that share a head */
    uint32_t step;         /* elements from the first to the second of a pair: 1, or pairs */
    uint32_t wide;         /* kiln_rotate_wide */
    uint32_t positions_64; /* non-zero: positions have 64 bits, else 32 */
    uint32_t source;       /* kiln_turn_source */
    float scale;
    uint32_t slots_log2; /* of the heads that a block begins with at once; thread by thread, the next heads follow */
    uint32_t padding;
} kiln_rope_args;
KILN_ARGS_END

#endif
