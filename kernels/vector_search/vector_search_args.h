/* vector_search: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_VECTOR_SEARCH_ARGS_H
#define KILN_KERNELS_VECTOR_SEARCH_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_VECTOR_SEARCH_QUERIES = 4, /* per block at a time, or one */
    KILN_VECTOR_SEARCH_ROWS = 4     /* of the table, that the threads that share a row have at a time */
};

/* kiln_vector_code */
typedef enum kiln_vector_search_code { KILN_CODE_BINARY, KILN_CODE_INT8, KILN_CODE_INT4 } kiln_vector_search_code;

KILN_ARGS_BEGIN
typedef struct kiln_vector_search_args {
    void *scores;     /* [queries, k]; NULL: not wanted */
    int32_t *indices; /* [queries, k] */
    void *all_scores; /* [queries, rows]; NULL: not wanted */
    const uint8_t *query_codes;
    const uint8_t *table_codes;
    const float *query_scales; /* NULL: 1 */
    const float *table_scales; /* NULL: 1 */
    const uint64_t *from;      /* [queries, rows], ranks that another launch left, or 0; NULL: the rows of the table */
    uint64_t *to;              /* [queries, slices, k], k of each slice, or 0; NULL: this launch writes the result */
    int64_t queries;
    int64_t rows; /* or ranks */
    int64_t query_stride;
    int64_t table_stride;
    uint32_t code_cols;
    uint32_t k;
    uint32_t slice;  /* rows or ranks that a block chooses from */
    uint32_t slices; /* the grid's x */
    uint32_t tile;   /* queries per block */
    uint32_t lanes_log2;
    uint32_t capacity; /* ranks per query that a block has room for: a power of two */
    uint32_t steps;    /* all of whose ranks there is room for beside k others */
    uint32_t code_type;
    uint32_t wide; /* non-zero: the rows of the table are 16-byte aligned */
} kiln_vector_search_args;
KILN_ARGS_END

#endif
