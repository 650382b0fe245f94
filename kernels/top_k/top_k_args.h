/* top_k: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_TOP_K_ARGS_H
#define KILN_KERNELS_TOP_K_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_TOP_K_RANKS = 1024, /* the most that can be chosen from a row */
    KILN_TOP_K_CHUNK = 4096  /* elements of a row, or candidates, that a block chooses from */
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
    kiln_shape shape;                 /* of the elements or candidates; a tile is a chunk */
    int64_t x_stride;
    uint32_t k;
    uint32_t to_count;
} kiln_top_k_args;
KILN_ARGS_END

#endif
