/* top_k: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_TOP_K_ARGS_H
#define KILN_KERNELS_TOP_K_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_TOP_K_RANKS = 1024,      /* the most that can be chosen from a row */
    KILN_TOP_K_CHUNK = 16384,     /* elements of a row, or candidates, that a block chooses from, at least */
    KILN_TOP_K_SHORT_COLS = 1024, /* of rows that subgroups choose from, a block from several */
    KILN_TOP_K_SHORT_RANKS = 16   /* the most that they choose */
};

/* An element that may be among the k greatest: a key that orders elements as their numbers are ordered, and its column.
 */
typedef struct kiln_top_k_candidate {
    uint32_t key;
    uint32_t col;
} kiln_top_k_candidate;

KILN_ARGS_BEGIN
typedef struct kiln_top_k_args {
    void *values;     /* [rows, k]; NULL: not wanted */
    int32_t *indices; /* [rows, k] */
    const void *x;
    const kiln_top_k_candidate *from; /* [rows, shape.cols]; NULL: the elements of x */
    kiln_top_k_candidate *to;         /* [rows, to_count], k of each chunk; NULL: this launch writes the result */
    kiln_shape shape; /* of the elements or candidates; a tile is a chunk; a row is a subgroup's or a block's */
    int64_t x_stride;
    uint32_t k;
    uint32_t to_count;
    uint32_t group_log2; /* of the threads whose greatest elements are taken as one, in a block that shares a row */
    uint32_t padding;
} kiln_top_k_args;
KILN_ARGS_END

#endif
