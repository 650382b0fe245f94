/* mul_vec: the one argument of the binding's kernel for few rows of activations, on every backend.
 *
 *     y[m, n] = x[m, k] w[n, k]^T     in f32
 *
 * with w in ggml's blocks of Q8_0, which are read as they are: 32 integers of 8 bits behind their scale in f16. */
#ifndef GGML_KILN_MUL_VEC_ARGS_H
#define GGML_KILN_MUL_VEC_ARGS_H

#include "kernels/common/geometry.h"

enum {
    GGML_KILN_MUL_VEC_MOST = 8,   /* rows of x in a call */
    GGML_KILN_MUL_VEC_BLOCK = 32, /* weights of a block */
    GGML_KILN_MUL_VEC_BYTES = 34  /* and its bytes */
};

KILN_ARGS_BEGIN
typedef struct ggml_kiln_mul_vec_args {
    float *y;
    const float *x;   /* each row on 8 bytes */
    const void *w;    /* each row on 2 bytes */
    int64_t y_stride; /* elements */
    int64_t x_stride; /* elements */
    int64_t w_stride; /* bytes */
    uint32_t m;       /* at most GGML_KILN_MUL_VEC_MOST */
    uint32_t n;
    uint32_t blocks; /* of a row of w */
    uint32_t padding;
} ggml_kiln_mul_vec_args;
KILN_ARGS_END

#endif
