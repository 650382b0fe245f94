/* The layers' operators on codes of 8 bits, FP8 (E4M3) or INT8: products of activations and matrices with a scale for
 * each row of both, and the operators in front of them, which leave such codes. */
#ifndef LLAMA_CODES_H
#define LLAMA_CODES_H

#include "weights.h"

typedef struct llama_codes {
    void *codes;   /* [rows, columns] */
    float *scales; /* [rows] */
} llama_codes;

typedef struct llama_codes_norm {
    llama_codes to;
    void *sum; /* of x and residual; NULL if residual is */
    const void *x, *residual, *weight;
    int64_t rows, cols;
} llama_codes_norm;

typedef struct llama_codes_gate {
    llama_codes to;
    const void *gate, *up; /* up NULL: a row of gate has both, gate first */
    int64_t rows, cols;
} llama_codes_gate;

/* d = x times the transpose of the matrix, [out, in] */
typedef struct llama_codes_product {
    void *d;
    llama_codes x, matrix;
    int64_t rows, out, in;
    void *workspace;
    size_t workspace_size;
} llama_codes_product;

/* Each puts its work on the stream. */
typedef struct llama_codes_operators {
    kiln_status (*norm)(kiln_stream *stream, llama_precision precision, const llama_codes_norm *norm);
    kiln_status (*gate)(kiln_stream *stream, llama_precision precision, const llama_codes_gate *gate);
    /* Of a matrix, or of activations. */
    kiln_status (*quantise)(kiln_stream *stream, llama_precision precision, llama_codes to, const void *x, int64_t rows,
                            int64_t cols);
    kiln_status (*multiply)(kiln_stream *stream, llama_precision precision, const llama_codes_product *product);
    kiln_status (*workspace_size)(kiln_stream *stream, llama_precision precision, const llama_codes_product *product,
                                  size_t *out);
} llama_codes_operators;

extern const llama_codes_operators llama_codes_fp8, llama_codes_int8;

#endif
