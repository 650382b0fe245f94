/* Embedding lookup: rows of a table by their ids. ops.h has the rules for every operator. */
#ifndef KILN_OPS_EMBEDDING_H
#define KILN_OPS_EMBEDDING_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- embedding: y = table[ids] ----------------------------------------------------------------------------------- */

typedef struct kiln_embedding_params {
    void *y;           /* [rows, cols] */
    const void *table; /* [vocabulary, cols]; may be NULL if vocabulary is 0 */
    const void *ids;   /* [rows], of index_type */
    int64_t rows;
    int64_t cols;
    int64_t vocabulary;
    int64_t y_stride;     /* 0: cols */
    int64_t table_stride; /* 0: cols */
    int64_t first;        /* id of the table's first row, if the table is a shard of a larger one. first + vocabulary is
                           * at most 2^63 - 1 */
    int32_t index_type;   /* kiln_index_type of ids */
    int32_t reserved;     /* must be 0 */
} kiln_embedding_params;

/* Copies row ids[i] - first of the table to row i of y, bit for bit. An id outside [first, first + vocabulary) produces
 * a row of zeros. */
KILN_OPERATOR_FUNCTION(embedding_f32, kiln_embedding_params)
KILN_OPERATOR_FUNCTION(embedding_f16, kiln_embedding_params)
KILN_OPERATOR_FUNCTION(embedding_bf16, kiln_embedding_params)

#ifdef __cplusplus
}
#endif

#endif
