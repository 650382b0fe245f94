/* Vector search: quantisation of embeddings to codes of 1, 4 and 8 bits, and search for the rows of a table that are
 * nearest to queries. ops.h has the rules for every operator. */
#ifndef KILN_OPS_VECTOR_H
#define KILN_OPS_VECTOR_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The format of a vector's codes. */
typedef enum kiln_vector_code {
    KILN_VECTOR_BINARY, /* bits, the highest of a byte first, as in numpy.packbits */
    KILN_VECTOR_INT8,   /* int8, two's complement */
    KILN_VECTOR_INT4    /* two per byte, the first in the low half, each with 8 added: 0 to 15 represent -8 to 7 */
} kiln_vector_code;

/* ---- quantize_embedding: rows of x as codes ---------------------------------------------------------------------- */

typedef struct kiln_quantize_embedding_params {
    uint8_t *codes; /* [rows, code_cols] */
    float *scales;  /* [rows]; NULL: not written. Of binary codes they are 1 */
    const void *x;  /* [rows, cols] */
    int64_t rows;
    int64_t cols;         /* at most 16384 */
    int64_t code_cols;    /* bytes of a row of codes, at least those of cols codes, at most 16384 */
    int64_t codes_stride; /* in bytes; 0: code_cols */
    int64_t x_stride;     /* 0: cols */
    int32_t code_type;    /* kiln_vector_code */
    int32_t normalize;    /* 0 or 1. 1: scales are those of the rows divided by their L2 norms */
} kiln_quantize_embedding_params;

/* Binary: the bit of an element is 1 if the element is above 0. int8 and int4, with smax = 127 and 7:
 *
 *     scale = amax / smax     where that is at least 2^-126, else 1; amax: the row's greatest magnitude
 *     code = x * (1 / scale)  rounded to the nearest integer, ties to even
 *
 * so that for int8 the codes and scales equal those of quantize_int8 with a scale for each row. amax ignores NaN, whose
 * code represents 0, as do the codes beyond cols; an infinity sets amax to the greatest f32 and has the code of +-smax.
 * Codes, and scales without normalize, are bit-identical on every device.
 *
 * normalize divides each row by its L2 norm, which does not change the codes: scale = 1 / sqrt(sum (x / scale)^2),
 * within 2^-16, and 1 for a row of zeros. Products of normalised rows are their cosine similarities.
 *
 * To truncate embeddings trained for truncation (Kusupati et al., "Matryoshka Representation Learning", arXiv
 * 2205.13147), pass fewer cols and the x_stride of the complete rows; the norm is then that of the truncated rows. */
KILN_OPERATOR_FUNCTION(quantize_embedding_f32, kiln_quantize_embedding_params)
KILN_OPERATOR_FUNCTION(quantize_embedding_f16, kiln_quantize_embedding_params)
KILN_OPERATOR_FUNCTION(quantize_embedding_bf16, kiln_quantize_embedding_params)

/* ---- vector_search: the k rows of a table that are nearest to each query ----------------------------------------- */

enum { KILN_VECTOR_SEARCH_MOST = 1024, KILN_VECTOR_CODE_COLS_MOST = 8192 };

typedef struct kiln_vector_search_params {
    void *scores;               /* [queries, k], the nearest first; NULL: not written */
    int32_t *indices;           /* [queries, k], the rows of the table */
    void *all_scores;           /* [queries, rows], of every row in the order of the table; NULL: not written */
    const uint8_t *query_codes; /* [queries, code_cols] */
    const uint8_t *table_codes; /* [rows, code_cols] */
    const float *query_scales;  /* [queries]; NULL: 1. Not read if the codes are binary */
    const float *table_scales;  /* [rows]; NULL: 1. Not read if the codes are binary */
    int64_t queries;            /* at most 2^31 - 1 */
    int64_t rows;               /* at most 2^31 - 1 */
    int64_t code_cols;          /* bytes of a row of codes, at most KILN_VECTOR_CODE_COLS_MOST */
    int64_t k;                  /* at most rows and KILN_VECTOR_SEARCH_MOST */
    int64_t query_codes_stride; /* in bytes; 0: code_cols */
    int64_t table_codes_stride; /* in bytes; 0: code_cols */
    int32_t code_type;          /* kiln_vector_code */
    int32_t reserved;           /* must be 0 */
    void *workspace;            /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size;      /* at least kiln_vector_search_<precision>_workspace_size() */
} kiln_vector_search_params;

/* Exhaustive search, in one pass over the table per four queries (per query if code_cols exceeds 3072, or 1536 for
 * int4). The score of a row is
 *
 *     binary      the Hamming distance, the number of bits that differ; the least are nearest
 *     int8, int4  (sum of the products of codes) * (query scale * table scale); the greatest are nearest
 *
 * where the sum is exact and both products are rounded to f32. Rows are ranked by these scores before they are rounded
 * to the precision. all_scores contains the same numbers. Equal scores are ordered by row, the lowest first, and are
 * selected in this order; NaN, which a scale may be, ranks above all numbers, and a score of -0 becomes 0. Results are
 * bit-identical on every device. All bytes of a row are compared: the bytes beyond the vector must be the same in
 * queries and table, as written by quantize_embedding. If queries or k is 0, nothing is written. */
KILN_OPERATOR_FUNCTION(vector_search_f32, kiln_vector_search_params)
KILN_OPERATOR_FUNCTION(vector_search_f16, kiln_vector_search_params)
KILN_OPERATOR_FUNCTION(vector_search_bf16, kiln_vector_search_params)

/* Computes the workspace size in bytes, for the k best rows of each of at most 1024 slices of the table; the pointers
 * are ignored. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(vector_search_f32, kiln_vector_search_params)
KILN_WORKSPACE_FUNCTION(vector_search_f16, kiln_vector_search_params)
KILN_WORKSPACE_FUNCTION(vector_search_bf16, kiln_vector_search_params)

#ifdef __cplusplus
}
#endif

#endif
