/* quantize_embedding: the one argument of its kernel, on every
 * backend. */
#ifndef KILN_KERNELS_QUANTIZE_EMBEDDING_ARGS_H
#define KILN_KERNELS_QUANTIZE_EMBEDDING_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_EMBEDDING_UNIT = 8 /* columns: a byte of bits, 4 of int4, 8 of int8 */ };

/* kiln_vector_code */
typedef enum kiln_embedding_code { KILN_CODE_BINARY, KILN_CODE_INT8, KILN_CODE_INT4 } kiln_embedding_code;

KILN_ARGS_BEGIN
typedef struct kiln_quantize_embedding_args {
    uint8_t *codes; /* [rows, code_cols] */
    float *scales;  /* [rows]; NULL: not wanted */
    const void *x;
    kiln_shape shape;     /* of x; a tile is a row */
    int64_t codes_stride; /* bytes */
    int64_t x_stride;
    uint32_t code_cols;
    uint32_t units;      /* of eight columns, in a row's codes */
    uint32_t unit_bytes; /* of codes */
    uint32_t code_type;
    uint32_t normalize;
    uint32_t whole; /* non-zero: every unit is whole, and its codes are aligned to their size */
    float smax;
    uint32_t padding;
} kiln_quantize_embedding_args;
KILN_ARGS_END

#endif
