/* A matrix of every layer of the bench's model, [out, in], of random elements: as they are, or quantised as the program
 * quantises a checkpoint's (quantised.h). */
#ifndef LLAMA_BENCH_MATRIX_H
#define LLAMA_BENCH_MATRIX_H

#include "bench_memory.h"
#include "bench_operations.h"
#include "codes.h"
#include "quantised.h"

/* What all matrices of a model have in common. */
typedef struct bench_format {
    kiln_stream *stream;
    llama_precision precision;
    size_t element; /* bytes of the precision */
    llama_quantisation quantisation;
    const bench_operations *run;
    const llama_codes_operators *operators; /* of FP8 and INT8; NULL: activations stay as they are */
} bench_format;

typedef struct bench_matrix {
    const bench_format *format;
    int64_t layers, out, in;
    bool is_quantised;
    void *values, *scales, *zeros;     /* scales: of quantised ones; zeros: of W4A16 */
    uint64_t values_size, scales_size; /* bytes of a layer's */
    int64_t group;                     /* of W4A16 */
    int32_t layout;                    /* kiln_w4a16_layout */
} bench_matrix;

/* Random elements in host memory that the device reads, with which products of `size` terms have a variance of about 1;
 * all matrices repeat them. To be freed by kiln_host_free when the stream is done. */
kiln_status bench_pattern_make(const bench_format *format, int32_t size, void **out);

/* Sets every element of the pattern to 1. */
void bench_pattern_fill(const bench_format *format, void *pattern);

/* Allocates *matrix, whose layers, out and in are set, and puts its elements on the stream; where it is quantised, they
 * are there when this returns, and all layers have the same. The pattern begins at another place in each matrix. */
kiln_status bench_matrix_make(const bench_format *format, bench_memory *memory, const void *pattern, bool is_quantised,
                              bench_matrix *matrix);

/* The bytes that products with the matrices of all layers read. */
uint64_t bench_matrix_bytes(const bench_matrix *matrix);

/* What a product reads: rows of activations, or their codes where there are any, and its workspace. */
typedef struct bench_activations {
    const void *x; /* [rows, in] */
    llama_codes codes;
    int64_t rows;
    void *workspace;
    size_t workspace_size;
    /* Of matrices as they are or with 4 bits: */
    const void *norm_weight; /* [in]: the rows are normalised first; NULL: they are not */
    const void *added;       /* [rows, out]: added to the product; NULL: nothing is */
    bool is_gated;           /* the product is SwiGLU's, of half as many columns */
} bench_activations;

/* Puts d = x times the transpose of a layer's matrix on the stream. */
kiln_status bench_matrix_multiply(const bench_matrix *matrix, int64_t layer, const bench_activations *activations,
                                  void *d);

/* The bytes of workspace that this wants; of the activations only the number of rows is read. */
kiln_status bench_matrix_workspace(const bench_matrix *matrix, const bench_activations *activations, size_t *out);

#endif
